"""Vectors on a Chroma server: who shares it, what it is given, what is said of faults."""

import logging
import shutil
import socket
import subprocess
from contextlib import suppress
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

import kbkit
from kbkit.errors import ConfigError, StoreUnreachableError
from kbkit.models import SourceDocument
from kbkit.recipes import KnowledgeBaseSpec, StorageSpec
from kbkit.runtime.config import Settings
from kbkit.stores.chroma.address import ChromaAddress
from kbkit.stores.chroma.server import ChromaServer
from kbkit.stores.stores import StoresAddress
from kbkit.stores.vector_store import VectorPayload
from tests.chroma import proxy
from tests.stores.vector_store_conformance import VectorStoreConformance
from tests.waiting import until

pytestmark = pytest.mark.local

DRINKS = ["green tea", "black coffee", "cold milk", "red wine", "rum"]
SECRET = "s3cret-token"


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    """Searches ask the server, as if there were too many vectors to scan, and no snapshots."""
    monkeypatch.setattr("kbkit.retrieval.retriever._SMALL", 0)
    for name in ("get", "seen"):
        monkeypatch.setattr(f"kbkit.stores.snapshots.snapshots.Snapshots.{name}", lambda *_: None)
    monkeypatch.setattr("kbkit.stores.vector_index._RETRY_SECONDS", 0.0)


@pytest.fixture
def database(chroma):
    return chroma.database()


def opened(folder, url="", token="", database=""):
    settings = replace(Settings.load({}), chroma_url=url, chroma_token=token, database_url=database)
    return kbkit.Workspace(folder, settings=settings)


def fill(workspace, drinks=DRINKS):
    kb = workspace.create("drinks")
    for drink in drinks:
        kb.add(drink, f"# {drink}\n\nHow to serve {drink} to guests.\n")
    return kb


def ranked(kb, query, limit=10):
    return [hit.title for hit in kb.search(query, limit=limit, mode="dense")]


def ids_of(kb):
    return sorted(chunk.id for chunk in kb.chunks)


def held(chroma, database):
    """Ids that each collection of a database holds."""
    return {name: sorted(each["ids"]) for name, each in chroma.collections(database).items()}


def is_level(chroma, database, kb):
    """Whether the server comes to hold what the catalog does; what warms up may be at it."""

    def level():
        with suppress(AssertionError):  # a collection is being dropped
            return held(chroma, database) == {kb.info().collection: ids_of(kb)}

    return until(level)


class TestChromaServer(VectorStoreConformance):
    most = 701

    @pytest.fixture(autouse=True)
    def server(self, chroma, database):
        self.chroma, self.database = chroma, database

    def open_store(self, folder):
        return ChromaServer(ChromaAddress.parse(self.chroma.url(self.database)), str(folder))

    def damage(self, folder):
        for name in self.chroma.collections(self.database):
            self.chroma.drop(self.database, name)


def test_vectors_are_on_the_server_and_not_in_the_folder(tmp_path, chroma, database):
    with opened(tmp_path, chroma.url(database)) as workspace:
        kb = fill(workspace)
        assert is_level(chroma, database, kb)
        for drink in DRINKS:
            assert ranked(kb, f"serve {drink}")[0] == drink
        assert workspace._stores.vectors._collections.state.sound == {kb.info().collection}
        kb.documents.delete("text:rum")
        assert is_level(chroma, database, kb)
        workspace.delete("drinks", forever=True)
    assert held(chroma, database) == {}
    assert not (tmp_path / "chroma").exists()


def test_workspaces_and_copies_of_them_share_a_server(tmp_path, chroma, database):
    url = chroma.url(database)
    with opened(tmp_path / "one", url) as one, opened(tmp_path / "two", url) as two:
        tea, wine = fill(one, ["green tea", "black tea"]), fill(two, ["red wine"])
        assert ranked(tea, "red wine") == ["green tea", "black tea"]
        assert ranked(wine, "red wine") == ["red wine"]
        assert len(held(chroma, database)) == 2
    shutil.copytree(tmp_path / "one", tmp_path / "three")
    with opened(tmp_path / "one", url) as one, opened(tmp_path / "three", url) as three:
        three["drinks"].documents.delete("text:green tea")
        three["drinks"].add("mate", "Mate is drunk from a gourd.")
        assert ranked(one["drinks"], "green tea") == ["green tea", "black tea"]
        assert ranked(three["drinks"], "mate gourd") == ["mate", "black tea"]
        kbs = (one["drinks"], wine, three["drinks"])
        assert len({kb.info().collection for kb in (one["drinks"], three["drinks"])}) == 2
        assert sorted(map(len, held(chroma, database).values())) == [1, 2, 2], kbs


@pytest.mark.slow
def test_two_machines_see_each_others_commits_at_the_next_call(
    tmp_path, chroma, database, postgres
):
    catalog, url = postgres.catalog(), chroma.url(database)
    with (
        opened(tmp_path / "one", url, database=catalog) as one,
        opened(tmp_path / "two", url, database=catalog) as two,
    ):
        here = fill(one, ["milk"])
        there = two["drinks"]
        for n in ("oolong", "genmaicha"):
            there.add(n, f"All about {n}.")
            assert ranked(here, n)[0] == n
            here.add(f"{n} latte", f"All about {n} latte.")
            assert ranked(there, f"{n} latte")[0] == f"{n} latte"
            there.documents.delete(f"text:{n}")
            assert n not in ranked(here, n)
            assert is_level(chroma, database, here)
        with opened(tmp_path / "three", database=catalog) as three:  # without the server
            three["drinks"].documents.delete("text:milk")
            three["drinks"].add("kvass", "Kvass is made of bread.")
        assert ranked(here, "kvass bread")[0] == "kvass"
        assert "milk" not in ranked(there, "cold milk")
        assert is_level(chroma, database, here)


def test_a_search_does_without_a_server_that_is_away(tmp_path, chroma, database, caplog):
    with opened(tmp_path, chroma.url(database)) as workspace:
        kb = fill(workspace)
        known = workspace._stores.vectors._collections.state
        assert ranked(kb, "serve black coffee")[0] == "black coffee"
        with chroma.away(), caplog.at_level(logging.WARNING):
            for drink in DRINKS:
                found = ranked(kb, f"serve {drink}")
                assert (found[0], len(found)) == (drink, len(DRINKS))
            assert not known.sound
        (said,) = [each.getMessage() for each in caplog.records if each.name.startswith("kbkit")]
        assert "cannot be reached" in said
        numbers = count()

        def sound():
            assert ranked(kb, f"rum for {next(numbers)} guests")[0] == "rum"
            return known.sound == {kb.info().collection}

        until(sound)  # what warms up behind a search may be in the way of the next


def test_a_write_that_loses_the_server_is_kept_and_handed_over_later(tmp_path, chroma, database):
    with opened(tmp_path, chroma.url(database)) as workspace:
        kb = fill(workspace)
        collection = kb.info().collection
        with chroma.away():
            for change in (
                lambda: kb.add("mate", "Mate is drunk from a gourd."),
                lambda: kb.documents.delete("text:rum"),
            ):
                with pytest.raises(StoreUnreachableError, match=r"cannot be reached.*is kept"):
                    change()
            assert kb.info().pending == 2
            assert ranked(kb, "mate gourd")[0] == "mate"
            assert "rum" not in ranked(kb, "rum")
            workspace._stores.vectors.gather()  # as a server does
            kb.documents.delete("text:cold milk")
            assert kb.info().pending == 3
            workspace._stores.vectors.gather(more=False)
        kb.add("kvass", "Kvass is made of bread.")
        assert kb.info().pending == 0
        # it was brought level, not made anew
        assert held(chroma, database) == {collection: ids_of(kb)}
        with chroma.away():
            workspace.delete("drinks", forever=True)
            workspace.create("food")
    with opened(tmp_path, chroma.url(database)):
        assert held(chroma, database) == {}


def test_a_server_that_goes_away_within_a_write_gets_the_rest_later(tmp_path, chroma, database):
    told = []

    def judge(path, body):
        if path.endswith("/upsert"):
            told.append(len(body["ids"]))
            return () if len(told) == 2 else None
        return None

    documents = [SourceDocument(f"n:{n}", f"n{n}", f"Number {n}.") for n in range(400)]
    with proxy(chroma, judge=judge) as port:
        url = f"http://127.0.0.1:{port}?database={database}"
        with opened(tmp_path, url) as workspace:
            kb = workspace.create("numbers")
            with pytest.raises(StoreUnreachableError, match="is kept and searchable"):
                kb.ingest(documents)
            assert told == [300, 100]
            assert kb.info().pending == len(kb.chunks) == 400
            assert len(ranked(kb, "number", 500)) == 400
            kb.ingest(documents)
            assert kb.info().pending == 0
            assert is_level(chroma, database, kb)


def lose_a_vector(chroma, database, collection):
    with chroma.away():
        pass  # what it was told is kept
    store = ChromaServer(ChromaAddress.parse(chroma.url(database)), "")
    store.delete(collection, chroma.collections(database)[collection]["ids"][:1])
    store.close()


def lose_the_collection(chroma, database, collection):
    chroma.drop(database, collection)


def get_other_dimensions(chroma, database, collection):
    chroma.drop(database, collection)
    chroma.make(database, collection, [1.0, 0.0])


@pytest.mark.slow
@pytest.mark.parametrize("damage", [lose_a_vector, lose_the_collection, get_other_dimensions])
def test_a_collection_that_is_not_as_it_should_be_is_made_anew(tmp_path, chroma, database, damage):
    with opened(tmp_path, chroma.url(database)) as workspace:
        damage(chroma, database, fill(workspace).info().collection)
    with opened(tmp_path, chroma.url(database)) as workspace:
        kb = workspace["drinks"]
        for drink in DRINKS:
            assert ranked(kb, f"serve {drink}")[0] == drink
        assert kb.info().pending == 0
        assert is_level(chroma, database, kb)


def test_other_dimensions_under_a_name_that_was_not_used_yet(tmp_path, chroma, database):
    with opened(tmp_path, chroma.url(database)) as workspace:
        kb = fill(workspace, ["tea"])
        kb.documents.delete("text:tea")
        get_other_dimensions(chroma, database, kb.info().collection)
    with opened(tmp_path, chroma.url(database)) as workspace:
        kb = workspace["drinks"]
        kb.add("rum", "Rum is distilled.")
        assert is_level(chroma, database, kb)


def test_a_workspace_goes_to_a_server_and_comes_back(tmp_path, chroma, database):
    with opened(tmp_path) as workspace:
        fill(workspace)
    with opened(tmp_path, chroma.url(database)) as workspace:
        kb = workspace["drinks"]
        workspace.compact()
        assert is_level(chroma, database, kb)
        assert ranked(kb, "serve red wine")[0] == "red wine"
        kb.documents.delete("text:red wine")
        kb.add("mate", "Mate is drunk from a gourd.")
        assert is_level(chroma, database, kb)
    with opened(tmp_path) as workspace:
        kb = workspace["drinks"]
        workspace.compact()
        assert (tmp_path / "chroma").exists()
        kb.add("kvass", "Kvass is made of bread.")
        assert ranked(kb, "kvass bread")[0] == "kvass"
        assert ranked(kb, "mate gourd")[0] == "mate"
        assert "red wine" not in ranked(kb, "red wine")
    with opened(tmp_path, chroma.url(database)) as workspace:  # which heard of nothing meanwhile
        kb = workspace["drinks"]
        assert ranked(kb, "kvass bread")[0] == "kvass"
        assert is_level(chroma, database, kb)


def quotas(path, body):
    """What Chroma Cloud refuses."""
    fine = (
        len(body.get("ids") or ()) <= 300
        and (body.get("n_results") or 0) <= 300
        and all(len(text.encode()) <= 16_384 for text in body.get("documents") or ())
        and all(len(known.encode()) <= 128 for known in body.get("ids") or ())
        and len(body.get("name") or "") <= 128
        and all(
            len(name) <= 36 and len(str(value).encode()) <= 4_096
            for each in body.get("metadatas") or ()
            for name, value in each.items()
        )
    )
    return None if fine else (429, '{"error": "QuotaError", "message": "Quota exceeded"}')


@pytest.mark.slow
def test_quotas_are_kept(tmp_path, chroma, database):
    vectors = np.random.default_rng(0).standard_normal((700, 16)).astype(np.float32)
    payloads = [
        VectorPayload("ä" * 10_000, {"document_id": "d", "uri": "x" * 5_000, "tags": ["a"]})
    ] * 700
    with proxy(chroma, judge=quotas) as port:
        address = ChromaAddress.parse(f"http://127.0.0.1:{port}?database={database}")
        store = ChromaServer(address, "here")
        store.create("notes.1", 16)
        store.upsert("notes.1", [f"{n:032x}" for n in range(700)], vectors, payloads)
        assert store.count("notes.1") == 700
        assert len(store.nearest("notes.1", vectors[0], 500)) == 300
        store.delete("notes.1", [f"{n:032x}" for n in range(650)])
        there = chroma.collections(database)["notes.1"]
        assert {*there["documents"]} == {"ä" * 8_192}
        assert there["metadatas"][0] == {"document_id": "d"}
        url = f"http://127.0.0.1:{port}?database={database}"
        with opened(tmp_path, url) as workspace:
            kb = workspace.create("a" * 63)
            kb.configure(KnowledgeBaseSpec(storage=StorageSpec(text_in_chroma=True)))
            kb.add("Tea", "Steep it.", tags=["x"])
            found = chroma.collections(database)[kb.info().collection]
            assert found["documents"] == [chunk.text for chunk in kb.chunks]
            assert found["metadatas"][0]["tags"] == ["x"]
        store.close()


def test_a_token_is_shown_and_told_to_nobody(tmp_path, chroma, database, monkeypatch):
    with proxy(chroma, token=SECRET) as port:
        url = f"http://127.0.0.1:{port}?database={database}"
        with opened(tmp_path / "a", url, SECRET) as workspace:
            fill(workspace, ["tea"])
            assert SECRET not in repr(workspace._stores) + repr(workspace._stores.vectors.__dict__)
            told = workspace._stores.address.to_json()
        assert SECRET not in told
        for token, says in (("", "is not set"), ("wr0ng-token", "is not taken")):
            with opened(tmp_path / "b", url, token) as workspace:
                kb = workspace[workspace.create(f"b{len(token)}").info().name]
                with pytest.raises(StoreUnreachableError, match=says) as caught:
                    kb.add("Tea", "Steep it.")
                assert ranked(kb, "steep") == ["Tea"]
            assert "wr0ng" not in str(caught.value)
        monkeypatch.setenv("KBKIT_CHROMA_URL", url)
        monkeypatch.setenv("KBKIT_CHROMA_TOKEN", SECRET)
        again = StoresAddress.from_json(told).open()
        assert again.vectors._collections._store.address.token == SECRET
        again.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Files of a certificate for loopback, which is its own authority, and of its key."""
    folder = tmp_path_factory.mktemp("certificate")
    files = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=127.0.0.1",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-out",
            files[0],
            "-keyout",
            files[1],
        ],
        check=True,
        capture_output=True,
    )
    return files


def refused(folder, url):
    """What is said of an address where there is no Chroma for us."""
    with opened(folder, url) as workspace:
        kb = workspace.create("drinks")
        with pytest.raises(StoreUnreachableError) as caught:
            kb.add("Tea", "Steep it.")
        assert ranked(kb, "steep") == ["Tea"]
    return str(caught.value)


def test_certificates_are_checked(tmp_path, chroma, database, certificate, monkeypatch):
    with proxy(chroma, certificate=certificate) as port:
        url = f"https://127.0.0.1:{port}?database={database}"
        assert "certificate is not trusted" in refused(tmp_path / "a", url)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        with opened(tmp_path / "b", url) as workspace:
            kb = fill(workspace, ["tea"])
            assert is_level(chroma, database, kb)


def test_what_answers_otherwise_is_told(tmp_path, chroma, database):
    def old(path, body):
        """As Chroma before 0.6 does, which has another API."""
        return (404, '{"detail": "Not Found"}') if path.startswith("/api/v2") else (200, "{}")

    with socket.create_server(("127.0.0.1", 0)) as nobody:
        free = nobody.getsockname()[1]
    assert "cannot be reached" in refused(tmp_path / "a", f"http://127.0.0.1:{free}")
    assert "does not speak TLS" in refused(tmp_path / "b", f"https://127.0.0.1:{chroma.port}")
    missing = f"{chroma.root}?database=nowhere"
    assert "[nowhere] not found; make it" in refused(tmp_path / "c", missing)
    for name, judge, says in (
        ("d", lambda path, body: (200, "<html>Welcome</html>"), "no Chroma of version 1"),
        ("e", old, "no Chroma of version 1"),
        ("f", lambda path, body: (502, "Bad gateway"), "502: Bad gateway"),
        ("g", lambda path, body: (200, "{}"), "no Chroma of version 1"),
        ("h", lambda path, body: (), "cannot be reached|no Chroma"),
    ):
        with proxy(chroma, judge=judge) as port:
            said = refused(tmp_path / name, f"http://127.0.0.1:{port}")
        assert any(each in said for each in says.split("|")), said


@pytest.mark.parametrize(
    ("url", "token", "says"),
    [
        ("chroma:8000", "", "is no address of a server; write http"),
        ("ftp://s3cret/", "", "is no address of a server"),
        ("http://s3cret:port", "", "is no address of a server"),
        ("http://", "", "is no address of a server"),
        ("http://ann:s3cret@db:8000", "", "set the server's token as KBKIT_CHROMA_TOKEN"),
        ("http://db:8000?token=s3cret", "", "nothing but tenant and database"),
        ("http://db:8000?s3cret", "", "is no address of a server"),
        ("http://db:0/s3cret", "", "is no address of a server"),
        ("http://db:8000#s3cret", "", "nothing but tenant and database"),
        ("http://db:8000?database=a/../s3cret", "", "3 to 128 letters"),
        ("https://db", "s3cret token", "copy it as it was shown"),
        ("http://db:8000", "s3cret", "write https://"),
    ],
)
def test_an_address_that_is_none_is_not_repeated(tmp_path, url, token, says):
    with pytest.raises(ConfigError, match=says) as caught:
        opened(tmp_path, url, token)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "place", "port"),
    [
        ("https://api.example.org/?tenant=t-1&database=kbs", None, 443),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000", 8000),
        ("http://127.0.0.1:1/", "http://127.0.0.1:1", 1),
        ("http://[::1]:8000/chroma/", "http://[::1]:8000/chroma", 8000),
    ],
)
def test_addresses_that_are_some(url, place, port):
    found = ChromaAddress.parse(url, SECRET)
    assert found.place == (place or url.replace("/?", "?"))
    assert found.port == port
    assert ChromaAddress.parse(found.place, SECRET) == found
    assert SECRET not in repr(found)
