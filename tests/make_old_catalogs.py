"""Makes `tests/old_catalogs.zip`: a filled catalog of each revision that kbkit opens.

``python -m tests.make_old_catalogs`` adds the one of the newest revision, out of the oldest one.
"""

import sqlite3
import tempfile
import zipfile
from pathlib import Path

import sqlalchemy as sa

from kbkit.stores.catalog.database import upgrade
from kbkit.stores.catalog.schema import HEAD, OLDEST

ARCHIVE = Path(__file__).with_name("old_catalogs.zip")


def revisions() -> list[str]:
    """Return all revisions, the first one first."""
    return [OLDEST, HEAD]


def main() -> None:
    """Add the catalog of the newest revision."""
    with tempfile.TemporaryDirectory() as name, zipfile.ZipFile(ARCHIVE, "a") as archive:
        if f"{HEAD}.db" in archive.namelist():
            return
        path = Path(archive.extract(f"{OLDEST}.db", name))
        engine = sa.create_engine(f"sqlite:///{path}")
        with engine.begin() as connection:
            upgrade(connection)
        engine.dispose()
        with sqlite3.connect(path) as vacuumed:
            vacuumed.execute("VACUUM")
        archive.write(path, f"{HEAD}.db", zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    main()
