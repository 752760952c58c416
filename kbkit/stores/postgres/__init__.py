"""What only PostgreSQL can do: advisory locks, arrays, text-search vectors."""
