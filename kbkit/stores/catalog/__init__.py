"""The catalog: tables, migrations, and functions of a transaction."""
