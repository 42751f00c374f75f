"""The configuration: its schema, its checks and its messages."""
