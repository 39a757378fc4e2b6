"""Pure: events -> samples -> statistics -> scaling. Nothing here reads a file or a clock."""
