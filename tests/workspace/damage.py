"""Ways to damage a workspace."""

import sqlite3
from contextlib import closing


def sql(folder, *statements):
    """Change the catalog of a closed workspace."""
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def flip(path, place):
    """Flip a bit of a file."""
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def flip_a_snapshot(folder):
    (path,) = (folder / "snapshots").glob("*[0-9a-f].safetensors")
    flip(path, -100)
