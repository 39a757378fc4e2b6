"""The durable record: a folder of plain files per run and study, and an index to find them."""
