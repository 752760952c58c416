"""What is kept: the catalog (SQLite), lexical indexes (FTS5), vectors (Chroma), locks."""
