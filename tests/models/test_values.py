"""Every value object that an interface shows is JSON, of the shape that its schema says."""

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
    Target,
    TargetKind,
    from_dict,
    schema,
)
from kbkit.recipes import FilesSource

PAGE = "<html><body><main><h1>Tea</h1><p>Green tea steeps.</p></main></body></html>"


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


NAMES = [
    "Document",
    "DocumentInfo",
    "Chunk",
    "Hit",
    "Hits",
    "Rating",
    "Target",
    "Answer",
    "IngestReport",
    "KnowledgeBaseInfo",
    "Evaluation",
    "SourceInfo",
    "ExportReport",
    "BuildReport",
    "FidelityReport",
    "Problem",
    "License",
    "Improvement",
    "Expansion",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_value_is_json_of_the_shape_that_its_schema_says(values, name):
    value = values[name]
    shown = json.loads(json.dumps(value.to_dict(), allow_nan=False))
    assert shown
    shape = schema(type(value))
    assert shape["type"] == "object"
    assert set(shape.get("required", ())) <= set(shown)
    jsonschema.Draft202012Validator(shape).validate(shown)
    wrong = {**shown, next(iter(shape["properties"])): object}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(shape).validate(wrong)


REPORTS_OF_ONE_MACHINE = {"Evaluation", "ExportReport", "BuildReport", "FidelityReport"}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in REPORTS_OF_ONE_MACHINE])
def test_a_value_is_read_back_from_what_it_says(values, name):
    value = values[name]
    shown = json.loads(json.dumps(value.to_dict()))
    found = from_dict(type(value), {**shown, "something_new": 1})
    assert type(found) is type(value)
    assert found == value or name == "Answer"  # which leaves out how long its search took
    assert from_dict(type(value), shown).to_dict() == value.to_dict()


def test_every_public_value_object_is_among_them():
    public = {name for name in kbkit.__all__ if hasattr(getattr(kbkit, name), "to_dict")}
    assert public <= set(NAMES)
    assert {"Hit", "Answer", "Rating", "Evaluation", "IngestReport"} <= public


def test_times_paths_and_kinds_are_text(tmp_path):
    assert ExportReport(tmp_path).to_dict()["folder"] == str(tmp_path)
    assert Target(TargetKind.CHUNK, "c1").to_dict() == {"kind": "chunk", "id": "c1"}
    at = datetime(2026, 1, 31, tzinfo=UTC)
    info = kbkit.SourceInfo("1", "files", "*.md", "/", False, at, {"tags": ("a",)})
    assert info.to_dict()["created_at"] == "2026-01-31T00:00:00+00:00"
    assert info.to_dict()["options"] == {"tags": ["a"]}


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in NAMES
        if name not in ("Evaluation", "ExportReport", "BuildReport", "FidelityReport")
    ],
)
def test_a_value_is_read_back_from_its_json(values, name):
    value = values[name]
    shown = json.loads(json.dumps(value.to_dict()))
    back = from_dict(type(value), {**shown, "of_a_newer_kbkit": 1})
    assert type(back) is type(value)
    assert back.to_dict() == value.to_dict()
    if name not in ("Answer",):  # which says no time
        assert back == value


def test_values_of_something_else_are_no_value():
    with pytest.raises(ValueError, match="planet"):
        from_dict(Target, {"kind": "planet", "id": "x"})
