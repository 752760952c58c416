"""Public test doubles."""

import urllib.error
import urllib.request

import numpy as np
import pytest

from kbkit.errors import ConfigError
from kbkit.models import SourceDocument
from kbkit.sources import SourceContext
from kbkit.testing import DocumentsReader, HashEmbedder, serve_folder


def test_hash_embedder_is_deterministic_and_sees_shared_words():
    vectors = HashEmbedder().embed_passages(
        ["red apple", "Red, apple!", "red pear", "blue sky", ""]
    )
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert vectors[0] @ vectors[2] > vectors[0] @ vectors[3]
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 1, 0])
    assert HashEmbedder(salt="b").fingerprint != HashEmbedder().fingerprint
    assert HashEmbedder(8).embed_passages([]).shape == (0, 8)


def test_documents_source_yields_until_stopped():
    source = DocumentsReader([SourceDocument(f"d{n}", "T", "x") for n in range(3)])
    assert [event.uri for event in source.events(SourceContext())] == ["d0", "d1", "d2"]
    assert list(source.events(SourceContext(stop=lambda: True))) == []


def test_served_files_have_modification_times(tmp_path):
    (tmp_path / "a.html").write_text("<p>hello</p>")
    requests = []
    with serve_folder(tmp_path, on_request=requests.append) as base:
        with urllib.request.urlopen(base + "a.html") as response:
            assert response.read() == b"<p>hello</p>"
            modified = response.headers["Last-Modified"]
        request = urllib.request.Request(base + "a.html", headers={"If-Modified-Since": modified})
        with pytest.raises(urllib.error.HTTPError, match="304"):
            urllib.request.urlopen(request)
    assert requests == ["/a.html", "/a.html"]
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(base + "a.html", timeout=2)


def test_busy_port_and_missing_folder_are_clear_errors(tmp_path):
    with serve_folder(tmp_path) as base:
        port = int(base.rstrip("/").rpartition(":")[2])
        with (
            pytest.raises(ConfigError, match=f"port {port}.*choose another"),
            serve_folder(tmp_path, port),
        ):
            pass
    with pytest.raises(ConfigError, match="not a folder"), serve_folder(tmp_path / "none"):
        pass
    with pytest.raises(ConfigError, match="choose another"), serve_folder(tmp_path, 70000):
        pass
