"""Code and paths in CONTRIBUTING.md, and files of the repository."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import mutants

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_code_in_contributing_works(tmp_path):
    """Files with a title are written, the rest of the Python is run."""
    shutil.copytree(ROOT / "kbkit", tmp_path / "kbkit")
    code = []
    for language, title, text in BLOCK.findall(TEXT):
        if title:
            (tmp_path / title).parent.mkdir(exist_ok=True)
            (tmp_path / title).write_text(text, encoding="utf-8")
        elif language == "python":
            code.append(text)
    assert [part for part in code if "assert" in part] == code
    assert len(code) == 5, "a source, a route, an embedder, a format, a panel"
    formats = tmp_path / "kbkit/sources/formats/__init__.py"
    suffixes = re.search(r'`("\w+": "[\w ]+",)` for this one', TEXT)[1]
    before = formats.read_text("utf-8")
    assert before.count("_SUFFIXES = {\n") == 1
    after = before.replace("_SUFFIXES = {\n", f"_SUFFIXES = {{\n    {suffixes}\n")
    formats.write_text(after, encoding="utf-8")
    points = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))["project"]
    info = tmp_path / "tea-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tea\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in brought.items())
            for group, brought in points["entry-points"].items()
        )
    )
    (tmp_path / "run.py").write_text(
        "if __name__ == '__main__':\n"  # processes that read files import it again
        + "".join(f"    {line}\n" for line in "\n".join(code).splitlines())
        + "    print('all of it')\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "run.py"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=200,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("all of it\n")


def tracked() -> list[tuple[str, Path]]:
    """Mode and path of the files in git."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    lines = subprocess.run(
        ["git", "ls-files", "-s", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return [(line.split()[0], ROOT / line.partition("\t")[2]) for line in lines if line]


def test_no_link_leaves_the_repository():
    for path in [path for mode, path in tracked() if mode == "120000" and path.is_symlink()]:
        target = path.readlink()
        assert not target.is_absolute(), path
        assert (path.parent / target).resolve().is_relative_to(ROOT), path


def test_no_file_is_large():
    files = [path for mode, path in tracked() if mode != "120000" and path.is_file()]
    assert [path for path in files if path.stat().st_size > 1_000_000] == []


def test_paths_in_contributing_exist():
    named = re.findall(r"`((?:kbkit|site|tests|\.ci|\.github)/[\w./-]+)`", TEXT)
    assert len(named) > 20
    for path in {*named, *re.findall(r"\]\(([\w./]+)\)", TEXT)} - {"kbkit/sources/formats/srt.py"}:
        assert (ROOT / path).exists(), path
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:^\$ |`)make ([a-z]+)", TEXT, re.MULTILINE)) <= targets


def test_each_mutant_finds_its_code():
    assert mutants.load()
