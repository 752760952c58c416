"""Value objects are JSON that their schema describes."""

import json
from datetime import UTC, datetime

import jsonschema
import pytest

import kbkit
from kbkit.export import ExportReport
from kbkit.feedback.judgements import Judgements
from kbkit.models import (
    Expansion,
    Improvement,
    License,
    Problem,
    SourceDocument,
    Target,
    TargetKind,
    from_dict,
    schema,
)
from kbkit.models.values import format_value
from kbkit.recipes import FilesSource

PAGE = "<html><body><main><h1>Tea</h1><p>Green tea steeps.</p></main></body></html>"


def test_values_are_shown_whole():
    texts = [
        format_value(each) for each in (12_345.6, 0.123456, 12_345, True, "x" * 1_000, ("a", None))
    ]
    assert texts == ["12,346", "0.1235", "12,345", "yes", "x" * 1_000, "a, "]


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    folder = tmp_path_factory.mktemp("values")
    (folder / "tea.md").write_text("# Tea\n\n## Green\n\nGreen tea steeps two minutes.\n")
    (folder / "tea.html").write_text(PAGE)
    (folder / "recipe.yaml").write_text("name: house\nsources: [{type: files, path: '*.md'}]\n")
    with kbkit.open(folder / "kb") as workspace:
        kb = workspace.create("drinks")
        report = kb.ingest(FilesSource(path=str(folder / "tea.md")))
        added = kb.add("Bread", "Bake for an hour.", tags=["food"])
        hits = kb.search("green tea")
        rating = kb.rate(hits[0].chunk.id, 5, query="green tea")
        evaluation = kb.feedback.evaluate(against="lexical")
        assert isinstance(kb.feedback.judgements(), Judgements)
        found = [
            kb.documents[added.id],
            added,
            hits[0].chunk,
            hits[0],
            hits,
            rating,
            rating.target,
            kb.ask("green tea"),
            report,
            kb.info(),
            evaluation,
            next(iter(kb.sources)),
            kb.export(folder=folder / "out", build=False),
            kbkit.build(folder / "recipe.yaml", workspace, site=False),
            kbkit.fidelity(folder / "tea.html"),
            Problem("a", "b"),
            License("MIT"),
            Improvement(3),
            Expansion("model", 2, failed=(Problem("a", "b"),)),
        ]
    return {type(value).__name__: value for value in found}


def test_values_match_their_schemas(values):
    for value in values.values():
        shown = json.loads(json.dumps(value.to_dict(), allow_nan=False))
        assert shown
        shape = schema(type(value))
        fields = shape["$defs"][type(value).__name__] if "$ref" in shape else shape
        assert fields["type"] == "object"
        assert set(fields.get("required", ())) <= set(shown)
        jsonschema.Draft202012Validator(shape).validate(shown)
        wrong = {**shown, next(iter(fields["properties"])): object}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(shape).validate(wrong)


def test_values_are_read_back_from_their_json(values):
    local = {"ExportReport", "BuildReport", "FidelityReport"}
    assert local < values.keys()
    for name in values.keys() - local:
        value = values[name]
        shown = json.loads(json.dumps(value.to_dict()))
        back = from_dict(type(value), {**shown, "of_a_newer_kbkit": 1})
        assert type(back) is type(value)
        assert back.to_dict() == value.to_dict()
        assert back == value or name == "Answer"  # its JSON has no time of the search


def test_every_public_value_object_is_tested(values):
    public = {name for name in kbkit.__all__ if hasattr(getattr(kbkit, name), "to_dict")}
    assert public <= values.keys()
    assert {"Hit", "Answer", "Rating", "Evaluation", "IngestReport"} <= public


def test_times_paths_and_kinds_become_text(tmp_path):
    assert ExportReport(tmp_path).to_dict()["folder"] == str(tmp_path)
    assert Target(TargetKind.CHUNK, "c1").to_dict() == {"kind": "chunk", "id": "c1"}
    at = datetime(2026, 1, 31, tzinfo=UTC)
    info = kbkit.SourceInfo("1", "files", "*.md", "/", False, at, {"tags": ("a",)})
    assert info.to_dict()["created_at"] == "2026-01-31T00:00:00+00:00"
    assert info.to_dict()["options"] == {"tags": ["a"]}


def test_invalid_value_is_refused():
    with pytest.raises(ValueError, match="planet"):
        from_dict(Target, {"kind": "planet", "id": "x"})


def test_metadata_of_documents_can_be_sent_as_json():
    infinite = {"size": float("nan"), "sizes": [1.5, float("inf")]}
    document = SourceDocument("x", "X", "Text", metadata=infinite)
    assert document.metadata == {"size": None, "sizes": [1.5, None]}
