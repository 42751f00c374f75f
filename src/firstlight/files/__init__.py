"""Files: rows of tables, plain YAML, locks, and a check for regular files."""
