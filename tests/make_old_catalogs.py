"""Makes `tests/old_catalogs.zip`: a catalog of each revision there was, from the first on.

``python -m tests.make_old_catalogs`` adds those of new revisions; older ones are kept as they are,
since what migrations make of them is tested. Rows are those of the first revision, carried on.
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

import kbkit
from kbkit.stores.catalog import migrating

ARCHIVE = Path(__file__).with_name("old_catalogs.zip")
_FOLDER = Path(migrating.__file__).parent / "migrations"


def revisions() -> list[str]:
    """All of them, the first one first."""
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


def fill(path: Path, folder: Path) -> None:
    """Put into a catalog of the first revision what a workspace of today holds."""
    with kbkit.open(folder) as workspace:
        kb = workspace.create("drinks", description="Of drinks")
        for name in ("Tea", "Coffee", "Milk"):
            kb.add(name, f"# {name}\n\nAll about {name.lower()}, which people drink hot.\n")
        kb.rate(kb.documents["text:Tea"].id, 4, rater="ann", query="what is hot")
    with sqlite3.connect(path) as old:
        old.execute("ATTACH ? AS new", (str(folder / "catalog.db"),))
        for table in ("knowledge_bases", "documents", "chunks", "vectors", "ratings"):
            there = {row[1] for row in old.execute(f"PRAGMA new.table_info({table})")}
            own = [row[1] for row in old.execute(f"PRAGMA main.table_info({table})")]
            names = ", ".join(f'"{name}"' for name in own if name in there)
            old.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM new.{table}")
        find = "SELECT sql FROM new.sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'"
        for (made,) in old.execute(find).fetchall():
            old.execute(made)
            table = made.split()[3]
            terms = "SELECT seq, terms FROM main.chunks"
            old.execute(f"INSERT INTO main.{table} (rowid, terms) {terms}")


def main() -> None:
    """Add what lacks."""
    with tempfile.TemporaryDirectory() as name, zipfile.ZipFile(ARCHIVE, "a") as archive:
        there = set(archive.namelist())
        path = Path(name) / "catalog.db"
        for number, revision in enumerate(revisions()):
            upgrade(path, revision)
            if number == 0:
                fill(path, Path(name) / "kb")
            if f"{revision}.db" not in there:
                copy = Path(name) / f"{revision}.db"
                shutil.copy(path, copy)
                with sqlite3.connect(copy) as vacuumed:
                    vacuumed.execute("VACUUM")
                archive.write(copy, copy.name, zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    main()
