"""Files: rows of tables, plain YAML, locks, and whether a path is a regular file."""
