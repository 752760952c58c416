"""The link checker of the site, and the workflow that publishes it."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "recipes/links.py"


@pytest.fixture
def site(tmp_path) -> Path:
    (tmp_path / "guide").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="guide/#one">a</a><a href="guide/index.html">b</a><a href="#top" id="top">c</a>'
        '<a href="https://elsewhere.example/none">d</a><img src="picture%20one.svg">'
    )
    (tmp_path / "picture one.svg").write_text("<svg/>")
    (tmp_path / "guide/index.html").write_text('<h1 id="one">x</h1><a href="../index.html">y</a>')
    return tmp_path


def test_valid_links_pass(site):
    done = subprocess.run([sys.executable, str(SCRIPT), str(site)], check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("link", ["none.html", "guide/#two", "#none", "guide/none.css", "../x/"])
def test_broken_links_are_found(site, link):
    (site / "guide/new.html").write_text(f'<a href="{link}">x</a>')
    found = list(runpy.run_path(str(SCRIPT))["broken"](site))
    assert found == [("guide/new.html", link)]


def test_workflow_publishes_existing_recipes():
    workflow = yaml.safe_load((ROOT / ".github/workflows/site.yml").read_text("utf-8"))
    for recipe in workflow["env"]["RECIPES"].split():
        assert (ROOT / recipe).is_file()
    steps = workflow["jobs"]["build"]["steps"]
    assert any("recipes/publish.py" in step.get("run", "") for step in steps)
    assert any(step.get("with", {}).get("path") == "build/publish/build/site" for step in steps)
