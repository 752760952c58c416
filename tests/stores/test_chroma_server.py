"""Vectors on a Chroma server: sharing, quotas and faults."""

import logging
import shlex
import shutil
import socket
import subprocess
from contextlib import suppress
from itertools import count

import numpy as np
import pytest

from kbkit.errors import ConfigError, StoreUnreachableError
from kbkit.models import SourceDocument
from kbkit.recipes import KnowledgeBaseSpec, StorageSpec
from kbkit.stores.backend import VectorPayload
from kbkit.stores.chroma_collections import ChromaAddress, ChromaServer
from tests.chroma import proxy
from tests.stores import workspaces
from tests.stores.vector_store_conformance import VectorStoreConformance
from tests.stores.workspaces import DRINKS, fill, ranked
from tests.waiting import until

pytestmark = [pytest.mark.local, pytest.mark.usefixtures("index_asked")]

SECRET = "s3cret-token"


@pytest.fixture
def database(chroma):
    return chroma.database()


def opened(folder, url="", token="", database=""):
    return workspaces.opened(folder, database, chroma_url=url, chroma_token=token)


def ids_of(kb):
    return sorted(chunk.id for chunk in kb.chunks)


def ids_by_collection(chroma, database):
    return {name: sorted(each["ids"]) for name, each in chroma.collections(database).items()}


def is_level(chroma, database, kb):
    """Whether the server reaches the state of the catalog; warming may still be busy."""

    def level():
        with suppress(AssertionError):  # a collection is being dropped
            return ids_by_collection(chroma, database) == {kb.info().collection: ids_of(kb)}

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


def test_vectors_are_on_the_server_only(tmp_path, chroma, database):
    with opened(tmp_path, chroma.url(database)) as workspace:
        kb = fill(workspace)
        assert is_level(chroma, database, kb)
        for drink in DRINKS:
            assert ranked(kb, f"serve {drink}")[0] == drink
        assert workspace._stores.vectors._sound == {kb.info().collection}
        kb.documents.delete("text:rum")
        assert is_level(chroma, database, kb)
        workspace.delete("drinks", forever=True)
    assert ids_by_collection(chroma, database) == {}
    assert not (tmp_path / "chroma").exists()


def test_workspaces_and_their_copies_share_a_server(tmp_path, chroma, database):
    url = chroma.url(database)
    with opened(tmp_path / "one", url) as one, opened(tmp_path / "two", url) as two:
        tea, wine = fill(one, ["green tea", "black tea"]), fill(two, ["red wine"])
        assert ranked(tea, "red wine") == ["green tea", "black tea"]
        assert ranked(wine, "red wine") == ["red wine"]
        assert len(ids_by_collection(chroma, database)) == 2
    shutil.copytree(tmp_path / "one", tmp_path / "three")
    with opened(tmp_path / "one", url) as one, opened(tmp_path / "three", url) as three:
        three["drinks"].documents.delete("text:green tea")
        three["drinks"].add("mate", "Mate is drunk from a gourd.")
        assert ranked(one["drinks"], "green tea") == ["green tea", "black tea"]
        assert ranked(three["drinks"], "mate gourd") == ["mate", "black tea"]
        kbs = (one["drinks"], wine, three["drinks"])
        assert len({kb.info().collection for kb in (one["drinks"], three["drinks"])}) == 2
        assert sorted(map(len, ids_by_collection(chroma, database).values())) == [1, 2, 2], kbs


@pytest.mark.slow
def test_two_machines_see_commits_of_each_other_at_once(tmp_path, chroma, database, postgres):
    catalog, url = postgres.catalog(), chroma.url(database)
    with (
        opened(tmp_path / "one", url, database=catalog) as one,
        opened(tmp_path / "two", url, database=catalog) as two,
    ):
        one_kb = fill(one, ["milk"])
        two_kb = two["drinks"]
        for n in ("oolong", "genmaicha"):
            two_kb.add(n, f"All about {n}.")
            assert ranked(one_kb, n)[0] == n
            one_kb.add(f"{n} latte", f"All about {n} latte.")
            assert ranked(two_kb, f"{n} latte")[0] == f"{n} latte"
            two_kb.documents.delete(f"text:{n}")
            assert n not in ranked(one_kb, n)
            assert is_level(chroma, database, one_kb)
        with opened(tmp_path / "three", database=catalog) as three:  # without the server
            three["drinks"].documents.delete("text:milk")
            three["drinks"].add("kvass", "Kvass is made of bread.")
        assert ranked(one_kb, "kvass bread")[0] == "kvass"
        assert "milk" not in ranked(two_kb, "cold milk")
        assert is_level(chroma, database, one_kb)


def test_search_works_without_the_server(tmp_path, chroma, database, caplog):
    with opened(tmp_path, chroma.url(database)) as workspace:
        kb = fill(workspace)
        vectors = workspace._stores.vectors
        assert ranked(kb, "serve black coffee")[0] == "black coffee"
        with chroma.away(), caplog.at_level(logging.WARNING):
            for drink in DRINKS:
                titles = ranked(kb, f"serve {drink}")
                assert (titles[0], len(titles)) == (drink, len(DRINKS))
            assert not vectors._sound
        (message,) = [each.getMessage() for each in caplog.records if each.name.startswith("kbkit")]
        assert "cannot be reached" in message
        numbers = count()

        def sound():
            assert ranked(kb, f"rum for {next(numbers)} guests")[0] == "rum"
            return vectors._sound == {kb.info().collection}

        until(sound)  # warming may delay the next search


def test_write_without_server_is_applied_later(tmp_path, chroma, database):
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
        assert ids_by_collection(chroma, database) == {collection: ids_of(kb)}
        with chroma.away():
            workspace.delete("drinks", forever=True)
            workspace.create("food")
    with opened(tmp_path, chroma.url(database)):
        assert ids_by_collection(chroma, database) == {}


def test_server_lost_during_a_write_gets_the_rest_later(tmp_path, chroma, database):
    sizes = []

    def judge(path, body):
        if path.endswith("/upsert"):
            sizes.append(len(body["ids"]))
            return () if len(sizes) == 2 else None
        return None

    documents = [SourceDocument(f"n:{n}", f"n{n}", f"Number {n}.") for n in range(400)]
    with proxy(chroma, judge=judge) as port:
        url = f"http://127.0.0.1:{port}?database={database}"
        with opened(tmp_path, url) as workspace:
            kb = workspace.create("numbers")
            with pytest.raises(StoreUnreachableError, match="is kept and searchable"):
                kb.ingest(documents)
            assert sizes == [300, 100]
            assert kb.info().pending == len(kb.chunks) == 400
            assert len(ranked(kb, "number", 500)) == 400
            kb.ingest(documents)
            assert kb.info().pending == 0
            assert is_level(chroma, database, kb)


def lose_a_vector(chroma, database, collection):
    with chroma.away():
        pass  # a restart flushes its writes
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
def test_damaged_collection_is_rebuilt(tmp_path, chroma, database, damage):
    with opened(tmp_path, chroma.url(database)) as workspace:
        damage(chroma, database, fill(workspace).info().collection)
    with opened(tmp_path, chroma.url(database)) as workspace:
        kb = workspace["drinks"]
        for drink in DRINKS:
            assert ranked(kb, f"serve {drink}")[0] == drink
        assert kb.info().pending == 0
        assert is_level(chroma, database, kb)


def test_collection_with_other_dimensions_is_replaced(tmp_path, chroma, database):
    with opened(tmp_path, chroma.url(database)) as workspace:
        kb = fill(workspace, ["tea"])
        kb.documents.delete("text:tea")
        get_other_dimensions(chroma, database, kb.info().collection)
    with opened(tmp_path, chroma.url(database)) as workspace:
        kb = workspace["drinks"]
        kb.add("rum", "Rum is distilled.")
        assert is_level(chroma, database, kb)


def test_workspace_moves_to_a_server_and_back(tmp_path, chroma, database):
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
    with opened(tmp_path, chroma.url(database)) as workspace:
        kb = workspace["drinks"]
        assert ranked(kb, "kvass bread")[0] == "kvass"
        assert is_level(chroma, database, kb)


def quotas(path, body):
    """Refuse what Chroma Cloud refuses."""
    within = (
        len(body.get("ids") or ()) <= 300
        and (body.get("n_results") or 0) <= 300
        and all(len(text.encode()) <= 16_384 for text in body.get("documents") or ())
        and all(len(each_id.encode()) <= 128 for each_id in body.get("ids") or ())
        and len(body.get("name") or "") <= 128
        and all(
            len(name) <= 36 and len(str(value).encode()) <= 4_096
            for each in body.get("metadatas") or ()
            for name, value in each.items()
        )
    )
    return None if within else (429, '{"error": "QuotaError", "message": "Quota exceeded"}')


@pytest.mark.slow
def test_quotas_of_chroma_cloud_are_respected(tmp_path, chroma, database):
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
        stored = chroma.collections(database)["notes.1"]
        assert {*stored["documents"]} == {"ä" * 8_192}
        assert stored["metadatas"][0] == {"document_id": "d"}
        url = f"http://127.0.0.1:{port}?database={database}"
        with opened(tmp_path, url) as workspace:
            kb = workspace.create("a" * 63)
            kb.configure(KnowledgeBaseSpec(storage=StorageSpec(text_in_chroma=True)))
            kb.add("Tea", "Steep it.", tags=["x"])
            collection = chroma.collections(database)[kb.info().collection]
            assert collection["documents"] == [chunk.text for chunk in kb.chunks]
            assert collection["metadatas"][0]["tags"] == ["x"]
        store.close()


def test_token_is_never_shown(tmp_path, chroma, database):
    with proxy(chroma, token=SECRET) as port:
        url = f"http://127.0.0.1:{port}?database={database}"
        with opened(tmp_path / "a", url, SECRET) as workspace:
            fill(workspace, ["tea"])
            assert SECRET not in repr(workspace._stores) + repr(workspace._stores.vectors.__dict__)
        for token, message in (("", "is not set"), ("wr0ng-token", "is not accepted")):
            with opened(tmp_path / "b", url, token) as workspace:
                kb = workspace[workspace.create(f"b{len(token)}").info().name]
                with pytest.raises(StoreUnreachableError, match=message) as caught:
                    kb.add("Tea", "Steep it.")
                assert ranked(kb, "steep") == ["Tea"]
            assert "wr0ng" not in str(caught.value)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Files of a self-signed certificate for loopback and of its key."""
    folder = tmp_path_factory.mktemp("certificate")
    files = folder / "certificate.pem", folder / "key.pem"
    command = shlex.split(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        " -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    )
    output = ["-out", files[0], "-keyout", files[1]]
    subprocess.run([*command, *output], check=True, capture_output=True)
    return files


def refused(folder, url):
    """The error of writing to an address without a usable Chroma."""
    with opened(folder, url) as workspace:
        kb = workspace.create("drinks")
        with pytest.raises(StoreUnreachableError) as caught:
            kb.add("Tea", "Steep it.")
        assert ranked(kb, "steep") == ["Tea"]
    return str(caught.value)


def test_certificates_are_checked(tmp_path, chroma, database, certificate, monkeypatch):
    with proxy(chroma, certificate=certificate) as port:
        url = f"https://127.0.0.1:{port}?database={database}"
        assert "certificate is trusted (SSL_CERT_FILE)" in refused(tmp_path / "a", url)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        with opened(tmp_path / "b", url) as workspace:
            kb = fill(workspace, ["tea"])
            assert is_level(chroma, database, kb)


def test_servers_that_are_not_chroma_are_explained(tmp_path, chroma, database):
    def old(path, body):
        """Answer as Chroma before 0.6 does, which has another API."""
        return (404, '{"detail": "Not Found"}') if path.startswith("/api/v2") else (200, "{}")

    with socket.create_server(("127.0.0.1", 0)) as unused:
        free = unused.getsockname()[1]
    assert "cannot be reached" in refused(tmp_path / "a", f"http://127.0.0.1:{free}")
    assert "cannot be reached" in refused(tmp_path / "b", f"https://127.0.0.1:{chroma.port}")
    missing = f"{chroma.root}?database=nowhere"
    assert "[nowhere] not found; make it" in refused(tmp_path / "c", missing)
    for name, judge, messages in (
        ("d", lambda path, body: (200, "<html>Welcome</html>"), "not a Chroma server"),
        ("e", old, "not a Chroma server"),
        ("f", lambda path, body: (502, "Bad gateway"), "502: Bad gateway"),
        ("g", lambda path, body: (200, "{}"), "not a Chroma server"),
        ("h", lambda path, body: (), "cannot be reached|not a Chroma"),
    ):
        with proxy(chroma, judge=judge) as port:
            error = refused(tmp_path / name, f"http://127.0.0.1:{port}")
        assert any(each in error for each in messages.split("|")), error


@pytest.mark.parametrize(
    ("url", "token", "message"),
    [
        ("chroma:8000", "", "is not a server's address; write http"),
        ("ftp://s3cret/", "", "is not a server's address"),
        ("http://s3cret:port", "", "is not a server's address"),
        ("http://", "", "is not a server's address"),
        ("http://ann:s3cret@db:8000", "", "set the server's token as KBKIT_CHROMA_TOKEN"),
        ("http://db:8000?token=s3cret", "", "nothing but tenant and database"),
        ("http://db:8000?s3cret", "", "is not a server's address"),
        ("http://db:0/s3cret", "", "is not a server's address"),
        ("http://db:8000#s3cret", "", "nothing but tenant and database"),
        ("http://db:8000?database=a/../s3cret", "", "3 to 128 letters"),
        ("https://db", "s3cret token", "copy it as it was shown"),
        ("http://db:8000", "s3cret", "write https://"),
    ],
)
def test_error_does_not_repeat_an_invalid_address(tmp_path, url, token, message):
    with pytest.raises(ConfigError, match=message) as caught:
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
def test_valid_addresses_are_parsed(url, place, port):
    address = ChromaAddress.parse(url, SECRET)
    assert address.place == (place or url.replace("/?", "?"))
    assert address.port == port
    assert ChromaAddress.parse(address.place, SECRET) == address
    assert SECRET not in repr(address)
