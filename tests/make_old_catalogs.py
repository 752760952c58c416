"""Makes `tests/old_catalogs.zip`: a filled catalog of each revision that kbkit opens.

``python -m tests.make_old_catalogs`` adds those of new revisions, out of the oldest one.
"""

import shutil
import sqlite3
import tempfile
import zipfile
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from kbkit.stores.catalog import database as migrating
from kbkit.stores.catalog.schema import OLDEST

ARCHIVE = Path(__file__).with_name("old_catalogs.zip")
_FOLDER = Path(migrating.__file__).parent / "migrations"


def revisions() -> list[str]:
    """Return all revisions, the first one first."""
    config = Config()
    config.set_main_option("script_location", str(_FOLDER))
    return [each.revision for each in ScriptDirectory.from_config(config).walk_revisions()][::-1]


def upgrade(path: Path, revision: str) -> None:
    """Bring a catalog to a revision."""
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(_FOLDER))
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()


def main() -> None:
    """Add the catalogs of new revisions."""
    with tempfile.TemporaryDirectory() as name, zipfile.ZipFile(ARCHIVE, "a") as archive:
        there = archive.namelist()
        path = Path(archive.extract(f"{OLDEST}.db", name))
        for revision in revisions():
            upgrade(path, revision)
            if f"{revision}.db" not in there:
                copy = Path(shutil.copy(path, path.with_name(f"{revision}.db")))
                with sqlite3.connect(copy) as vacuumed:
                    vacuumed.execute("VACUUM")
                archive.write(copy, copy.name, zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    main()
