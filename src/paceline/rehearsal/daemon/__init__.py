"""The process that holds a rehearsal: started, asked, and ended by `paceline rehearsal`."""
