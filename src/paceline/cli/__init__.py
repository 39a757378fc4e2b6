"""The command line: parse, one call into `api`, render. One file per verb."""
