"""Importing kbkit and asking for help cost next to nothing; the public names are pinned."""

import json
import statistics
import subprocess
import sys
import time

import pytest

import kbkit

HEAVY = {
    "IPython", "alembic", "altair", "chromadb", "fastapi", "griffe", "httpx", "ipywidgets",
    "llama_index", "lxml", "mcp", "mkdocs", "nbformat", "numpy", "onnxruntime", "pandas",
    "sqlalchemy", "tokenizers", "trafilatura", "vl_convert",
}  # fmt: skip

PUBLIC = {
    "BuildReport", "Chunk", "CrawlSource", "Document", "DocumentType", "FidelityReport",
    "FilesSource", "Hit",
    "Hits", "IngestReport", "JsonlSource", "KbkitError", "KnowledgeBase", "KnowledgeBaseConfig",
    "MirrorSource", "Mode", "OpenApiSource", "PackageSource", "PageSource", "Recipe", "Workspace",
    "Filters", "Judgements", "Question", "RetrievalSpec",
    "build", "fidelity", "load_recipe", "open",
}  # fmt: skip


def loaded_by(code: str) -> set[str]:
    code += "\nimport sys, json; json.dump(sorted(sys.modules), sys.stderr)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(run.stderr)}


def seconds(*arguments: str) -> float:
    """Median time of a fresh interpreter."""
    times = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


@pytest.mark.parametrize(
    "code",
    [
        "import kbkit",
        "import kbkit.testing",
        "import kbkit.recipes",
        "import sys; sys.argv = ['kbkit', '--help']\n"
        "from kbkit.cli import app\n"
        "try: app()\n"
        "except SystemExit: pass",
    ],
)
def test_nothing_heavy_is_loaded(code):
    assert not loaded_by(code) & HEAVY


def test_import_is_quick():
    # The promise is 0.1 s on an idle machine; the bound leaves room for busy ones.
    assert seconds("-c", "import kbkit") - seconds("-c", "pass") < 0.25


def test_help_is_quick():
    # The promise is 0.2 s on an idle machine.
    assert seconds("-m", "kbkit.cli", "--help") - seconds("-c", "pass") < 0.6


def test_public_names_are_these():
    assert set(kbkit.__all__) == PUBLIC
    assert set(dir(kbkit)) >= PUBLIC
    for name in PUBLIC:
        assert getattr(kbkit, name).__name__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kbkit.nothing
