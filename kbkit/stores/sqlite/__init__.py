"""What only SQLite can do: its pragmas, FTS5, raw rows."""
