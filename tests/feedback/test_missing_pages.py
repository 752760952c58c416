"""Questions with pages that do not exist are reported with the nearest page."""

import json
from functools import partial

import pytest

import kbkit
from kbkit import Question
from kbkit.feedback.evaluate import missing_notes
from kbkit.feedback.evaluation_set import is_page
from kbkit.feedback.judgements import Judgements


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("missing")


@pytest.fixture(scope="module")
def kb(folder):
    with kbkit.open(folder / "kb") as workspace:
        kb = workspace.create("drinks")
        for name in ("tea", "coffee"):
            kb.add(name.title(), f"All about {name}.", source=f"https://x.org/guide/{name}.html")
        kb.add("API", "Gets tea.", source="api.yaml#/paths/~1tea/get")
        kb.add("os", "Of the system.", source="python:os.path")
        yield kb


def ask(*pages):
    return [Question(question="all about tea", relevant=pages)]


def test_existing_pages_are_not_missing(kb):
    paths = ("tea.html", "guide/tea.html", "/guide/tea.html", "https://x.org/guide/tea.html")
    for page in (*paths, "tea.html#top", "api.yaml#/paths/~1tea/get", "os.path", "api.yaml"):
        assert kb.feedback.evaluate(ask(page)).missing == (), page


@pytest.mark.parametrize(
    ("page", "nearest"),
    [
        ("tee.html", "tea.html"),
        ("guide/cofee.html", "guide/coffee.html"),
        ("handbook/of/all/coffee.html", "https://x.org/guide/coffee.html"),
        ("nothing-like-it", ""),
    ],
)
def test_missing_page_is_reported_with_the_nearest(kb, page, nearest):
    evaluation = kb.feedback.evaluate(ask("tea.html", page))
    (missing,) = evaluation.missing
    assert (missing.page, missing.nearest, missing.query) == (page, nearest, "all about tea")
    assert page in evaluation.notes[0]
    assert page in evaluation._repr_html_()
    assert evaluation.to_dict()["missing"][0]["page"] == page


def test_deleted_page_is_missing(kb):
    added = kb.add("Milk", "All about milk.", source="https://x.org/guide/milk.html")
    assert kb.feedback.evaluate(ask("milk.html")).missing == ()
    kb.documents.delete(added.id)
    assert [each.page for each in kb.feedback.evaluate(ask("milk.html")).missing] == ["milk.html"]


def test_judgements_have_no_missing_pages(kb):
    chunk = kb.chunks.of("https://x.org/guide/tea.html")[0].id
    kb.rate(chunk, 5, query="all about tea")
    judgements = kb.feedback.judgements()
    assert isinstance(judgements, Judgements)
    assert kb.feedback.evaluate(judgements).missing == ()


def test_notes_of_many_missing_pages_are_summed_up(kb):
    pages = [f"no-{n}.html" for n in range(14)]
    missing = kb.feedback.evaluate(ask(*pages)).missing
    notes = missing_notes(missing)
    assert len(missing) == 14
    assert len(notes) == 11
    assert "4 more" in notes[-1]
    assert len(missing_notes(missing[:10])) == 10
    assert "1 more" in missing_notes(missing[:11])[-1]
    assert missing_notes(()) == ()


def test_nearest_page_is_given_for_fifty_missing_pages(kb):
    missing = kb.feedback.evaluate(ask(*(f"tea.htm{n}" for n in range(52)))).missing
    assert [each.nearest for each in missing] == ["tea.html"] * 50 + [""] * 2


def test_command_line_and_builds_report_missing_pages(kb, folder, run_kbkit):
    questions = folder / "q.tsv"
    questions.write_text("all about tea\ttee.html\n")

    run = partial(run_kbkit, "--workspace", folder / "kb")
    messages = run("eval", "drinks", "--questions", str(questions)).err
    assert "tee.html, which does not exist; did you mean tea.html?" in messages
    values = json.loads(run("eval", "drinks", "--questions", str(questions), "--json").out)
    assert values["missing"][0]["nearest"] == "tea.html"
    (folder / "notes").mkdir()
    (folder / "notes/a.md").write_text("# A\n\nAll about A.\n")
    recipe = folder / "recipe.yaml"
    recipe.write_text(
        "name: notes\nsources:\n  - type: files\n    path: notes\n"
        "questions:\n  - question: all about a\n    relevant: [b.md]\n"
    )
    report = kbkit.build(recipe, folder / "kb", site=False)
    assert ("note", report.evaluation.notes[0]) in report.lines()
    assert "b.md" in report.evaluation.notes[0]


@pytest.mark.parametrize(
    ("uri", "page", "same"),
    [
        ("https://h/recipes/", "/recipes/", True),
        ("https://h/api/recipes/", "/recipes/", False),
        ("https://h/api/recipes/", "recipes/", True),
        ("https://h:80/recipes/#part", "/recipes/#other", True),
        ("docs/a.md", "/docs/a.md", True),
        ("more/docs/a.md", "/docs/a.md", False),
        ("more/docs/a.md", "docs/a.md", True),
        ("moredocs/a.md", "docs/a.md", False),
        ("python:json.loads", "json.loads", True),
    ],
)
def test_page_is_named_by_segments_from_the_top_with_a_slash(uri, page, same):
    assert is_page(uri, page) is same
