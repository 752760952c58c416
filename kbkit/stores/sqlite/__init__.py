"""SQLite: pragmas, FTS5, raw rows."""
