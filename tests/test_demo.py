"""Answers that `make demo` prints."""

import importlib.util
from pathlib import Path

import kbkit
from kbkit.recipes import golden_questions, load_recipe

ROOT = Path(__file__).parents[1]
RECIPE = """\
name: vats
sources: [{type: files, path: docs}]
questions:
  - {question: fill the vat, relevant: [docs/filling.md]}
  - {question: clean the brushes, relevant: [docs/filling.md]}
  - {question: clean the brushes, relevant: [docs/nothing.md]}
"""


def test_demo_marks_right_and_wrong_answers(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("demo", ROOT / "recipes/demo.py")
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/filling.md").write_text("# Filling\n\nFill the vat with dye.\n", "utf-8")
    (tmp_path / "docs/brushes.md").write_text("# Brushes\n\nClean brushes at once.\n", "utf-8")
    (tmp_path / "vats.yaml").write_text(RECIPE, encoding="utf-8")
    monkeypatch.setattr(demo, "RECIPE", tmp_path / "vats.yaml")
    with kbkit.open(tmp_path / "kb") as ws:
        kbkit.build(tmp_path / "vats.yaml", ws, site=False)
        demo.ask(ws["vats"])
    printed = capsys.readouterr().out
    first, second, third = printed.strip().split("\n\n")[:3]
    assert first.split("\n")[0].strip().startswith("fill the vat")
    assert first.split("\n")[0].endswith("  right")
    assert "> " not in first
    assert "wrong; the right page is number 2" in second
    assert "> Filling" in second
    assert "not among the first ten" in third
    assert "1 of 3 first answers are right." in printed


def test_demo_questions_name_pages_of_both_sources():
    questions = golden_questions(load_recipe(ROOT / "recipes/quickstart.yaml"))
    assert len(questions) >= 8
    pages = [page for question in questions for page in question.relevant]
    guides = [page for page in pages if page.endswith("/")]
    for page in guides:
        top, _, name = page.strip("/").rpartition("/")
        places = {
            "": ROOT / "site" / f"{name}.md",
            "notebooks": ROOT / "notebooks" / f"{name}.ipynb",
            "api": ROOT / "kbkit" / f"{name}.py",
        }
        assert places[top].is_file(), page
    assert len(guides) < len(pages)
