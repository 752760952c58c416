"""The gallery of recipes: listed, copied and checked."""

import json
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import kbkit
from kbkit.errors import ConflictError, NotFoundError
from kbkit.recipes import golden_questions, load_recipe
from kbkit.workflows.gallery import QUESTIONS, check_recipe, copy_recipe, list_recipes

ROOT = Path(__file__).parents[2]
ALL = list_recipes()


def test_gallery_has_recipes_of_several_kinds():
    assert len(ALL) >= 12
    kinds = {source for recipe in ALL for source in recipe.sources}
    assert kinds >= {"crawl", "files", "openapi", "package"}
    assert len({recipe.address for recipe in ALL}) == len(ALL)


@pytest.mark.parametrize("recipe", ALL, ids=lambda recipe: recipe.name)
def test_each_recipe_is_free_of_errors_and_warnings(recipe):
    assert [str(finding) for finding in check_recipe(recipe.path)] == []
    assert recipe.questions >= 8
    assert len(recipe.about) > 40
    assert load_recipe(recipe.path).name == recipe.name
    questions = [question.question for question in golden_questions(load_recipe(recipe.path))]
    assert len(set(questions)) == len(questions)
    if recipe.figures:
        assert recipe.figures["questions"] == recipe.questions, "run benchmarks/gallery.py"
        assert 0 <= recipe.figures["hit1"] <= 1
        assert recipe.figures["run"]


def test_figures_name_existing_recipes():
    figures = json.loads((ROOT / "recipes/figures.json").read_text("utf-8"))
    assert set(figures["recipes"]) <= {recipe.name for recipe in ALL}
    assert len(figures["recipes"]) >= 8


@pytest.mark.parametrize("name", ["handbook", "openapi", "pdf"])
def test_copied_offline_recipe_builds(tmp_path, name):
    files = copy_recipe(name, tmp_path / "mine")
    assert files[0] == tmp_path / "mine" / f"{name}.yaml"
    assert len(files) > 1
    with pytest.raises(ConflictError, match="--force"):
        copy_recipe(name, tmp_path / "mine")
    assert copy_recipe(name, tmp_path / "mine", force=True) == files
    with kbkit.open(tmp_path / "kb") as ws:
        report = kbkit.build(files[0], ws, site=False)
    assert report.info.documents >= 4
    assert report.evaluation is not None
    assert report.evaluation.summary()["mean"]["ndcg@10"] > 0.6


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(NotFoundError, match="did you mean 'handbook'"):
        copy_recipe("handbok")
    with pytest.raises(NotFoundError, match="kbkit recipes list"):
        copy_recipe("../../etc/passwd")


@pytest.mark.skipif(not find_spec("hatchling"), reason="needs hatchling, which builds wheels")
def test_wheel_contains_the_gallery(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        paths = {"figures.json", "openapi/lending.yaml", "pdf/care.pdf"}
        paths |= {f"{recipe.name}.yaml" for recipe in ALL}
        assert {f"kbkit/workflows/gallery/{path}" for path in paths} <= names
        assert "kbkit/workflows/gallery.py" in names
        assert not [name for name in names if "quickstart" in name or name.startswith("recipes/")]
        wheel.extractall(tmp_path / "installed")
    code = (
        "from kbkit.workflows.gallery import copy_recipe, list_recipes;"
        "print(len(list_recipes()), copy_recipe('handbook', 'out')[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(tmp_path / "installed"), "PATH": ""},
    )
    assert done.stdout.split() == [str(len(ALL)), "out/handbook.yaml"]
    assert (tmp_path / "out/handbook/backups.md").is_file()


GOOD = """\
name: vats
sources:
  - type: crawl
    url: https://vats.example.com/docs/
    delay: 0.5
    include: [/docs/guide/**]
questions:
""" + "".join(
    f"  - {{question: how {n}, relevant: [guide/page-{n}.html]}}\n" for n in range(QUESTIONS)
)


@pytest.mark.parametrize(
    ("change", "severity", "message"),
    [
        (("name: vats", "nmae: vats"), "error", "did you mean 'name'"),
        (("https://vats", "https://me:pw@vats"), "error", "password"),
        (("https://vats", "http://vats"), "warning", "https://"),
        (("com/docs/", "com:443/docs/"), "warning", "leave it out"),
        (("/docs/guide/**", "/blog/**"), "warning", "outside /docs/"),
        (("/docs/guide/**", "https://vats.example.com/docs/**"), "error", "has a host"),
        (("delay: 0.5", "delay: 0"), "warning", "polite"),
        (
            ("    delay", "    exclude: ['/docs/**']\n    delay"),
            "warning",
            "excludes the start page",
        ),
        (("how 3", "how 4"), "error", "asked twice"),
        (("  - {question: how 3, relevant: [guide/page-3.html]}\n", ""), "warning", "7 golden"),
    ],
)
def test_mistakes_are_found_offline(tmp_path, change, severity, message):
    path = tmp_path / "vats.yaml"
    path.write_text(GOOD, encoding="utf-8")
    assert check_recipe(path) == []
    assert change[0] in GOOD
    path.write_text(GOOD.replace(*change, 1), encoding="utf-8")
    found = check_recipe(path)
    assert [(one.severity, message in str(one)) for one in found].count((severity, True)) == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [("{type: files, path: dogs}", "dogs"), ("{type: package, name: nopackage}", "not installed")],
)
def test_missing_local_sources_are_found(tmp_path, source, message):
    path = tmp_path / "vats.yaml"
    path.write_text(f"name: vats\nsources: [{source}]\n", encoding="utf-8")
    assert any(message in str(one) for one in check_recipe(path) if one.severity == "error")


def cli(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kbkit", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.slow
def test_recipes_and_init_commands(tmp_path):
    listed = cli("recipes", "list", "--json", cwd=tmp_path)
    assert {one["name"] for one in json.loads(listed.stdout)} == {recipe.name for recipe in ALL}
    assert cli("recipes", "copy", "handbook", cwd=tmp_path).returncode == 0
    assert cli("recipes", "check", "handbook.yaml", cwd=tmp_path).returncode == 0
    (tmp_path / "handbook.yaml").write_text("name: X\n", encoding="utf-8")
    wrong = cli("recipes", "check", "handbook.yaml", "--json", cwd=tmp_path)
    assert wrong.returncode == 1
    assert {one["severity"] for one in json.loads(wrong.stdout)} == {"error"}
    fields = ("--name", "mine", "--description", "Runbooks")
    question = ("--question", "a disk is full = full-disk.md")
    done = cli("init", "handbook", "--yes", *fields, *question, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    recipe = load_recipe(tmp_path / "mine.yaml")
    assert (recipe.name, recipe.description) == ("mine", "Runbooks")
    assert golden_questions(recipe)[0].relevant == ("full-disk.md",)
    again = cli("init", "handbook", "--name", "mine", cwd=tmp_path)
    assert again.returncode == 1
    assert "--force" in again.stderr
