"""Reports that compare runs, as tables or as an HTML page. The functions do not read or write files."""
