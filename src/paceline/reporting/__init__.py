"""Pure: a study's summary -> text, CSV, JSON, Markdown, HTML. Nothing here writes a file."""
