"""Importing kbkit and asking for help cost next to nothing; the public names are pinned."""

import json
import subprocess
import sys

import pytest

import kbkit

HEAVY = {
    "IPython", "alembic", "altair", "chromadb", "fastapi", "griffe", "httpx", "ipywidgets",
    "llama_index", "lxml", "mcp", "mkdocs", "nbformat", "numpy", "onnxruntime", "pandas",
    "psycopg", "sqlalchemy", "tokenizers", "trafilatura", "vl_convert",
}  # fmt: skip

PUBLIC = {
    "Answer", "BuildReport", "Chunk", "ChunkingSpec", "CrawlSource", "Document", "DocumentInfo",
    "DocumentType", "Evaluation", "ExpandSpec", "Expansion", "ExportReport", "FidelityReport",
    "FilesSource", "Filters", "Hit", "Hits", "Improvement", "IngestReport", "JsonlSource",
    "Judgements", "KbkitError",
    "KnowledgeBase", "KnowledgeBaseInfo", "KnowledgeBaseSpec", "LearningSpec",
    "LlamaIndexEmbedding", "MirrorSource", "Mode", "MultilingualEmbedding", "OnnxEmbedding",
    "OpenApiSource", "PackageSource", "PageSource", "PluginEmbedding", "PluginSource",
    "PostprocessorSpec", "PublishedIndex", "Question", "Rating", "Recipe", "RetrievalSpec",
    "SiteSpec", "SourceInfo", "StaticEmbedding", "StorageSpec", "Target", "Workspace", "build",
    "connect", "fidelity", "load_recipe", "migrate",
}  # fmt: skip


def loaded_by(code: str) -> set[str]:
    code += "\nimport sys, json; json.dump(sorted(sys.modules), sys.stderr)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(run.stderr)}


def number_loaded(code: str) -> int:
    code += "\nimport sys; print(len(sys.modules), file=sys.stderr)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(run.stderr)


HELP = (
    "import sys; sys.argv = ['kbkit', '--help']\n"
    "from kbkit.cli import app\n"
    "try: app()\n"
    "except SystemExit: pass"
)


@pytest.mark.parametrize(
    "code",
    [
        "import kbkit",
        "import kbkit.testing",
        "import kbkit.recipes",
        HELP,
    ],
)
def test_nothing_heavy_is_loaded(code):
    assert not loaded_by(code) & HEAVY


def test_importing_and_asking_for_help_load_few_modules():
    # What takes time is loading modules: kbkit loads 40, its help 120, each well under a
    # millisecond (the promises are 0.1 and 0.2 s). Machines differ; these numbers do not.
    bare = number_loaded("pass")
    assert number_loaded("import kbkit") - bare < 80
    assert number_loaded(HELP) - bare < 200


def test_adding_documents_loads_only_what_they_need(tmp_path):
    # llama-index takes a second, and cuts only paragraphs that are longer than a chunk
    add = (
        "import kbkit\n"
        f"kb = kbkit.open({str(tmp_path)!r}).create('drinks')\n"
        "kb.add('Tea', '# Tea\\n\\n' + 'Steep it for two minutes. ' * %d)"
    )
    assert "llama_index" not in loaded_by(add % 1)
    assert "llama_index" in loaded_by(add.replace("create('drinks')", "create('long')") % 100)


def test_public_names_are_these():
    assert set(kbkit.__all__) == PUBLIC
    assert set(dir(kbkit)) >= PUBLIC
    for name in PUBLIC:
        assert getattr(kbkit, name).__name__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kbkit.nothing


def test_a_star_import_leaves_the_builtins_alone():
    names: dict[str, object] = {}
    exec("from kbkit import *", names)
    import builtins

    assert "Workspace" in names
    assert not [name for name in names if hasattr(builtins, name) and not name.startswith("__")]
    assert kbkit.open.__module__ == "kbkit", "and still kbkit.open() opens a workspace"
