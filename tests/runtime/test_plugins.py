"""Plugins of a distribution in a folder on sys.path."""

from __future__ import annotations

import sys

import pytest

import kbkit
from kbkit.annotation import annotator_of
from kbkit.embedding import open_embedder
from kbkit.errors import ConfigError, RecipeError
from kbkit.recipes import NoAnnotation, PluginAnnotation, PluginEmbedding, PluginSource, load_recipe

CODE = """
from kbkit.models import SourceDocument
from kbkit.sources import Outcome, SourceEvent

class Wiki:
    exhaustive = True

    def __init__(self, space, fail=False):
        self.space, self.fail = space, fail

    def events(self, context):
        uri = f"wiki:{self.space}/home"
        text = f"# Home\\n\\nThe space {self.space} tells of lighthouses.\\n"
        yield SourceEvent(uri, Outcome.FETCHED, SourceDocument(uri, "Home", text, None, ("own",)))
        if self.fail:
            raise RuntimeError("the wiki is closed")

class Shouts:
    def __init__(self, mark="!"):
        self.fingerprint = f"shouts:{mark}"
        self.mark = mark

    def annotate(self, passages, gazetteer):
        return [[passage.chunk.text.upper() + self.mark] for passage in passages]

def nothing():
    return object()
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "installed"
    info = folder / "wikikit-1.2.dist-info"
    info.mkdir(parents=True)
    (folder / "wikikit.py").write_text(CODE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wikikit\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[kbkit.sources]\nwiki = wikikit:Wiki\nempty = wikikit:nothing\nlost = wikikit:gone\n"
        "[kbkit.embedders]\nhashes = kbkit.testing:HashEmbedder\n"
        "[kbkit.annotators]\nshouts = wikikit:Shouts\nempty = wikikit:nothing\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    yield
    sys.modules.pop("wikikit", None)


def test_recipe_with_plugin_source_and_embedder(package, tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text(
        "name: lights\nembedding: {type: plugin, name: hashes, options: {dimensions: 32}}\n"
        "sources:\n  - {type: plugin, name: wiki, options: {space: sea}, tags: [ours]}\n"
    )
    recipe = load_recipe(path)
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("lights", spec=recipe.spec)
        assert kb.sync(recipe.sources).new == 1
        document = kb.documents["wiki:sea/home"]
        assert document.tags == ("ours", "own")
        assert kb.search("lighthouses")[0].uri == document.uri
        assert kb.info().dimensions == 32
        assert kb.refresh().same == 1
        report = kb.ingest(PluginSource(name="wiki", options={"space": "land", "fail": True}))
        assert report.new == 1
        assert "RuntimeError: the wiki is closed" in report.failed[0].reason


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("weki", {}, r"package provides a source of that name \(there are: empty, lost, wiki\)"),
        ("wiki", {"room": 1}, "cannot be created with these options"),
        ("empty", {}, "is not a source: it lacks exhaustive, events"),
        ("lost", {}, "cannot be created"),
    ],
)
def test_unusable_plugin_is_refused(package, name, options, message):
    with pytest.raises(ConfigError, match=message):
        kbkit.sources.open_reader(PluginSource(name=name, options=options))
    with pytest.raises(ConfigError, match="no installed package provides an embedder"):
        open_embedder(PluginEmbedding(name="no"))


def test_unknown_keys_of_plugins_are_named(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text(
        "name: x\nembedding: {type: plugin, name: a, option: {}}\n"
        "sources: [{type: plugin, name: a, option: {}}]\n"
    )
    with pytest.raises(RecipeError) as raised:
        load_recipe(path)
    assert str(raised.value).count("did you mean 'options'?") == 2


def test_plugin_annotators(package, tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("lights")
        where = kb._stores.database, kb.id
        annotator = annotator_of(PluginAnnotation(name="shouts", options={"mark": "?"}), *where)
        assert annotator.fingerprint == "shouts:?"
        assert annotator_of(NoAnnotation(), *where) is None
        for name, message in (
            ("empty", "is not an annotator: it lacks fingerprint, annotate"),
            ("no", r"provides an annotator .* \(there are: empty, shouts"),
        ):
            with pytest.raises(ConfigError, match=message):
                annotator_of(PluginAnnotation(name=name), *where)
