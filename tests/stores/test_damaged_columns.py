"""An invalid value in a column of the catalog is one clear error or harmless."""

import itertools
import shutil
import sqlite3
import traceback
from contextlib import closing, suppress

import pytest

import kbkit
from kbkit.errors import KbkitError
from kbkit.stores.catalog.schema import metadata

pytestmark = pytest.mark.local

DAMAGES = {
    "bad UTF-8": "CAST(x'fffe80' AS TEXT)",
    "bytes": "x'0102'",
    "a word": "'high'",
    "a number": "7",
    "a list": "'[1, 2]'",
    "JSON's null": "'null'",
    "a huge number": "1000000000000000",
    "a negative number": "-3",
    "nested deeply": f"'{'[' * 20_000}{']' * 20_000}'",
}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    (root / "tea.md").write_text("# Tea\n\n## Green\n\nSteep for two minutes.\n")
    with kbkit.open(root / "kb") as workspace:
        kb = workspace.create("notes")
        kb.add("Milk", "# Milk\n\nKeep milk cold.\n", tags=("cold",), metadata={"version": "1"})
        kb.ingest({"type": "files", "path": str(root / "tea.md")})
        kb.rate(kb.search("steep", mode="lexical")[0].chunk.id, 5, query="steep")
    with closing(sqlite3.connect(root / "kb/catalog.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return root / "kb/catalog.db"


def columns(catalog, tables):
    """Columns of the tables that have rows."""
    with closing(sqlite3.connect(catalog)) as connection:
        for table in tables:
            if connection.execute(f'SELECT 1 FROM "{table}"').fetchone():
                for row in connection.execute(f'PRAGMA table_info("{table}")'):
                    yield table, row[1]


def use(folder):
    """Use the workspace; errors of kbkit are fine."""
    with kbkit.open(folder) as workspace:
        kb = workspace["notes"]
        for read in (
            lambda: kb.search("steep for two minutes", mode="lexical").to_dicts(),
            lambda: [document.to_dict() for document in kb.documents],
            lambda: [chunk.to_dict() for chunk in kb.chunks],
            lambda: [rating.to_dict() for rating in kb.ratings],
            lambda: [info.to_dict() for info in workspace.list()],
            lambda: [source.to_dict() for source in kb.sources],
            workspace.runs,
        ):
            with suppress(KbkitError):
                read()


def raw_errors(catalog, folder, damages):
    """Damage one column after the other; yield errors that are not kbkit's."""
    for (table, column), damage in damages:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copy(catalog, folder)
        with closing(sqlite3.connect(folder / "catalog.db")) as connection:
            try:
                connection.execute(f'UPDATE "{table}" SET "{column}" = {damage}')
            except sqlite3.Error:
                continue  # SQLite itself refuses
            connection.commit()
        try:
            use(folder)
        except KbkitError:
            pass
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            yield f"{table}.{column} = {damage:.30}: {error!r:.90} ({place.name}:{place.lineno})"


@pytest.mark.soak
@pytest.mark.parametrize("name", DAMAGES)
def test_no_damage_of_any_column_is_a_raw_error(catalog, tmp_path, name):
    tables = ["alembic_version", *(table.name for table in metadata.sorted_tables)]
    damages = zip(columns(catalog, tables), itertools.repeat(DAMAGES[name]), strict=False)
    assert list(raw_errors(catalog, tmp_path / "kb", damages)) == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE chunks SET page = 'high'",
        "UPDATE chunks SET heading_path = 7",
        "INSERT INTO alembic_version VALUES ('0001')",
    ],
)
def test_damage_seen_by_a_single_check_is_an_error(catalog, tmp_path, damage):
    (tmp_path / "kb").mkdir()
    shutil.copy(catalog, tmp_path / "kb")
    with closing(sqlite3.connect(tmp_path / "kb/catalog.db")) as connection:
        connection.execute(damage)
        connection.commit()
    with pytest.raises(KbkitError), kbkit.open(tmp_path / "kb") as workspace:
        workspace["notes"].search("steep for two minutes", mode="lexical").to_dicts()
