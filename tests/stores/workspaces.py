"""Workspaces on servers, and what stores' tests fill them with."""

import zipfile
from dataclasses import replace
from pathlib import Path

import sqlalchemy as sa

import kbkit
from kbkit.models.values import Target, TargetKind
from kbkit.runtime.config import Settings
from kbkit.stores.catalog import knowledge_bases, ratings
from kbkit.stores.catalog.schema import OLDEST

DRINKS = ["green tea", "black coffee", "cold milk", "red wine", "rum"]


def oldest_catalog(folder):
    """Write a filled catalog of the oldest kbkit into a new folder."""
    folder.mkdir(parents=True)
    with zipfile.ZipFile(Path(__file__).parents[1] / "old_catalogs.zip") as archive:
        (folder / "catalog.db").write_bytes(archive.read(f"{OLDEST}.db"))
    return folder / "catalog.db"


def opened(folder, database="", **settings):
    """Open a workspace whose catalog may be on a server."""
    loaded = replace(Settings.load(), database_url=database, **settings)
    return kbkit.Workspace(folder, settings=loaded)


def fill(workspace, drinks=DRINKS):
    kb = workspace.create("drinks")
    for drink in drinks:
        kb.add(drink, f"# {drink}\n\nHow to serve {drink} to guests.\n")
    return kb


def ranked(kb, query, limit=10):
    return [hit.title for hit in kb.search(query, limit=limit, mode="dense")]


def execute(server, url, *statements):
    """Execute SQL in the database of an address."""
    for statement in statements:
        server.execute(statement, sa.make_url(url).database)


def as_reader(server, url):
    """The address of a database for a role that may only read."""
    execute(
        server,
        url,
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
    )
    return server.url(sa.make_url(url).database, "reader")


def create_row(transaction, name):
    """Create an empty knowledge base in a catalog without a workspace."""
    return knowledge_bases.create(
        transaction, name, description="", config={}, embedder="e", dimensions=2
    )


def rate_row(transaction, kb_id, chunk_id, rater, score, query="", note=""):
    target = Target(TargetKind.CHUNK, chunk_id)
    return ratings.add(
        transaction, kb_id, target=target, score=score, query=query, rater=rater, note=note
    )
