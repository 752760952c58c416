"""PostgreSQL: advisory locks, arrays, text search."""
