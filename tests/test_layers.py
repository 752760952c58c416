"""Contracts of imports."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOMES = {
    "chromadb": ("stores/chroma_",),
    "trafilatura": ("sources/html/extract.py", "sources/web/readers.py"),
    "mkdocs": ("export/",),
    "ipywidgets": ("panels/",),
}


def test_import_contracts_hold():
    run = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_public_class_names_are_unique():
    homes: dict[str, set[str]] = {}
    for path in (ROOT / "kbkit").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, set()).add(str(path))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


@cache
def imports(path: Path) -> set[str]:
    """Top-level names of every module that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f"{path}: relative import"
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.parametrize("library", sorted(HOMES))
def test_big_libraries_are_imported_in_one_place(library):
    package = ROOT / "kbkit"
    users = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if library in imports(path)
    }
    assert not [user for user in users if not user.startswith(HOMES[library])]
