"""Guides agree with the code."""

import importlib
import multiprocessing
import os
import re
import shlex
import shutil
import subprocess
import sys
import types
from functools import cached_property
from pathlib import Path

import pytest
import yaml

from kbkit.embedding import static
from kbkit.export import export_pages
from kbkit.export.facts import MANIFEST
from kbkit.export.mkdocs.build import SEPARATOR, theme
from kbkit.recipes import SiteSpec, load_recipe
from kbkit.runtime import config
from tests.export.conftest import ROOT

GUIDES = [ROOT / "README.md", *sorted((ROOT / "site").glob("*.md"))]
GATED = ("README.md", "concepts.md")
"""Guides whose code the gate runs; `make slow` runs all."""
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)


def blocks(path: Path, language: str) -> list[tuple[str, str]]:
    """Return title and text of the code blocks of a guide in one language."""
    found = BLOCK.findall(path.read_text("utf-8"))
    return [(title, text) for kind, title, text in found if kind == language]


def run_python(*arguments, folder=None, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
    )


def test_generated_parts_are_up_to_date():
    done = run_python(str(ROOT / "site/_generate.py"), "--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[] if path.name in GATED else pytest.mark.slow, id=path.name)
        for path in GUIDES
        if blocks(path, "python")
    ],
)
def test_python_in_guides_runs(path, tmp_path):
    for title, text in blocks(path, "yaml"):
        if title:
            (tmp_path / title).write_text(text, encoding="utf-8")
    code = "\n".join(text for _, text in blocks(path, "python"))
    # its parent process has imported what most guides use
    context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
    context.set_forkserver_preload(["kbkit.workspace", "kbkit.ingest.pipeline", "pandas"])
    errors = tmp_path / "stderr"
    setup = f"""\
import os, sys
os.chdir({str(tmp_path)!r})
os.environ["KBKIT_WORKSPACE"] = {str(tmp_path / "kb")!r}
sys.stderr = open({str(errors)!r}, "w")
"""
    child = context.Process(target=exec, args=(setup + code, {"__name__": "__main__"}))
    child.start()
    child.join()
    assert child.exitcode == 0, errors.read_text("utf-8")


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.name)
def test_recipes_in_guides_are_valid(path, tmp_path):
    for _, text in blocks(path, "yaml"):
        if "\nsources:" in text:
            recipe = tmp_path / "recipe.yaml"
            recipe.write_text(text, encoding="utf-8")
            assert load_recipe(recipe).name


def commands() -> list[tuple[str, str]]:
    """Return each kbkit command in a guide, with the guide's name."""
    return [
        (path.name, line.removeprefix("$ "))
        for path in GUIDES
        for _, text in blocks(path, "console")
        for line in text.splitlines()
        if line.startswith("$ kbkit ")
    ]


@pytest.mark.parametrize(("guide", "line"), commands())
def test_commands_in_guides_exist(guide, line):
    reference = (ROOT / "site/cli.md").read_text("utf-8")
    _, name, *arguments = shlex.split(line, comments=True)
    if arguments and f" {{#{name}-{arguments[0]}}}\n" in reference:
        name = f"{name}-{arguments.pop(0)}"  # a command of a group
    part = reference.split(f" {{#{name}}}\n")
    assert len(part) == 2, f"{guide}: {line}"
    options = part[1].split("\n## ")[0]
    if "(#source-options)" in options:
        options += reference.split("{#source-options}")[1].split("\n## ")[0]
    for argument in arguments:
        if argument.startswith("-"):
            # an option and its opposite are listed together
            assert re.search(rf"[`/]{re.escape(argument)}[`/]", options), f"{guide}: {line}"


def test_all_settings_are_documented():
    source = Path(config.__file__).read_text("utf-8")
    documented = (ROOT / "site/settings.md").read_text("utf-8")
    names = set(re.findall(r"KBKIT_[A-Z_]+", source))
    assert names
    assert names == set(re.findall(r"\| `(KBKIT_[A-Z_]+)` \|", documented))
    elsewhere = {
        name
        for path in (ROOT / "kbkit").rglob("*.py")
        for name in re.findall(r"KBKIT_[A-Z_]+", path.read_text("utf-8"))
    }
    assert elsewhere == names


def test_hash_of_the_weights_is_documented():
    assert static.WEIGHTS_SHA256 in (ROOT / "site/embedders.md").read_text("utf-8")


def test_published_site_has_theme_and_separator_of_exports():
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    assert settings["plugins"][0]["search"]["separator"] == SEPARATOR
    assert settings["theme"] == theme()


def test_links_and_pictures_of_the_readme_exist():
    text = (ROOT / "README.md").read_text("utf-8")
    for target in re.findall(r"\[[^\]]*\]\(([^)#:]+)\)", text):
        assert (ROOT / target).exists(), target


def public_names() -> set[str]:
    """Return the path of each public class, function, method and property."""
    found: set[str] = set()
    for root in ("", ".models", ".recipes", ".panels", ".testing", ".errors"):
        module = importlib.import_module(f"kbkit{root}")
        names = getattr(module, "__all__", None) or [
            name
            for name, item in vars(module).items()
            if str(getattr(item, "__module__", "")).startswith(module.__name__)
            and not name.startswith("_")
        ]
        for item in (getattr(module, name) for name in names):
            if not isinstance(item, type | types.FunctionType):
                continue
            path = f"{item.__module__}.{item.__qualname__}"
            found.add(path)
            members = vars(item) if isinstance(item, type) else {}
            found |= {
                f"{path}.{name}"
                for name, member in members.items()
                if not name.startswith("_")
                and isinstance(
                    member, types.FunctionType | property | cached_property | classmethod
                )
                and not getattr(member, "__module__", "kbkit").startswith("pydantic")
            }
    assert {"kbkit.workspace.workspace.Workspace", "kbkit.errors.RecipeError"} <= found
    return found


def test_public_name_without_a_docstring_fails_the_build(tmp_path):
    shutil.copytree(ROOT / "kbkit", tmp_path / "kbkit")
    with (tmp_path / "kbkit/errors.py").open("a", encoding="utf-8") as file:
        file.write("\n\nclass NewError(KbkitError):\n    pass\n")
    code = "import _reference; _reference.public()"
    path = os.pathsep.join([str(tmp_path), str(ROOT / "site")])
    done = run_python("-c", code, folder=tmp_path, PYTHONPATH=path)
    assert "PluginError: without a docstring: kbkit.errors.NewError\n" in done.stderr


def test_published_site_builds_strictly(tmp_path, document, info):
    """`make publish` builds it without knowledge bases in site/kb."""
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(ROOT / "site", tmp_path / "site", ignore=shutil.ignore_patterns("kb"))
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    for number in range(2):
        pages = [
            document(f"https://h/{part}/{n}", f"word{number} [x](/a/1)", title=f"{part} {n}")
            for part in "ab"
            for n in range(4)
        ]
        target = tmp_path / "site/kb" / f"kb{number}"
        export_pages(info(f"kb{number}"), pages, target, SiteSpec(title=f"Base <{number}>"))
        assert (target / MANIFEST).exists()
    command = ("-m", "mkdocs", "build", "--strict")
    done = run_python(*command, folder=tmp_path, NO_MKDOCS_2_WARNING="true")
    assert done.returncode == 0, done.stderr
    built = tmp_path / "build/site"
    home = (built / "index.html").read_text("utf-8")
    assert not re.search(r'(?:src|<link[^>]*href)="(?:https?:)?//(?!kbkit\.github\.io)', home)
    assert "Knowledge bases" in home
    assert "Base &lt;1&gt;" in home
    assert "Base <" not in home
    assert (built / "kb/kb1/pages/h/a/1/index.html").exists()
    assert not list(built.glob("_*.py"))
    described = {
        found
        for path in (built / "api").rglob("*.html")
        for found in re.findall(r'\bid="(kbkit[\w.]*)"', path.read_text("utf-8"))
    }
    assert public_names() <= described
    notebook = (built / "notebooks/01-build-a-knowledge-base/index.html").read_text("utf-8")
    assert "Build from a recipe" in notebook
    assert "<h1" in notebook
