"""Reports that compare runs: rows in, a table or a page out; nothing of files."""
