"""The catalog: its tables, its migrations, and functions of a transaction with domain names."""
