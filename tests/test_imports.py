"""Importing kbkit and asking for help cost next to nothing; the public names are pinned."""

import ast
import importlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import kbkit

HEAVY = {
    "IPython",
    "alembic",
    "altair",
    "chromadb",
    "fastapi",
    "griffe",
    "httpx",
    "ipywidgets",
    "llama_index",
    "lxml",
    "mcp",
    "mkdocs",
    "nbformat",
    "numpy",
    "onnxruntime",
    "pandas",
    "psycopg",
    "sqlalchemy",
    "tokenizers",
    "trafilatura",
    "vl_convert",
}

PUBLIC = {
    "Answer",
    "BuildReport",
    "Chunk",
    "ChunkingSpec",
    "CrawlSource",
    "Document",
    "DocumentInfo",
    "DocumentType",
    "Evaluation",
    "ExpandSpec",
    "Expansion",
    "ExportReport",
    "FidelityReport",
    "FilesSource",
    "Filters",
    "Hit",
    "Hits",
    "Improvement",
    "IngestReport",
    "JsonlSource",
    "Judgements",
    "KbkitError",
    "KnowledgeBase",
    "KnowledgeBaseInfo",
    "KnowledgeBaseSpec",
    "LearningSpec",
    "LlamaIndexEmbedding",
    "MirrorSource",
    "Mode",
    "MultilingualEmbedding",
    "OnnxEmbedding",
    "OpenApiSource",
    "PackageSource",
    "PageSource",
    "ParquetSource",
    "PluginEmbedding",
    "PluginSource",
    "PostprocessorSpec",
    "PublishedIndex",
    "Question",
    "Rating",
    "Recipe",
    "RetrievalSpec",
    "SiteSpec",
    "SourceInfo",
    "StaticEmbedding",
    "StorageSpec",
    "Target",
    "Workspace",
    "build",
    "connect",
    "fidelity",
    "load_recipe",
    "migrate",
}


def modules_of(code: str) -> list[str]:
    with tempfile.NamedTemporaryFile("r") as told:
        code += f"\nimport sys, json; json.dump(sorted(sys.modules), open({told.name!r}, 'w'))"
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        return list(json.load(told))


def loaded_by(code: str) -> set[str]:
    return {name.partition(".")[0] for name in modules_of(code)}


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
    "code", ["import kbkit", "import kbkit.testing", "import kbkit.recipes", HELP]
)
def test_nothing_heavy_is_loaded(code):
    assert not loaded_by(code) & HEAVY


def test_importing_and_asking_for_help_load_few_modules():
    # What takes time is loading modules: kbkit loads 40, its help 120, each well under a
    # millisecond (the promises are 0.1 and 0.2 s). Machines differ; these numbers do not.
    bare = number_loaded("pass")
    assert number_loaded("import kbkit") - bare < 80
    assert number_loaded(HELP) - bare < 200


@pytest.mark.slow
def test_adding_documents_loads_only_what_they_need(tmp_path):
    # llama-index takes a second, and cuts only paragraphs that are longer than a chunk
    add = (
        "import kbkit\n"
        f"kb = kbkit.open({str(tmp_path)!r}).create('drinks')\n"
        "kb.add('Tea', '# Tea\\n\\n' + 'Steep it for two minutes. ' * %d)"
    )
    assert "llama_index" not in loaded_by(add % 1)
    assert "llama_index" in loaded_by(add.replace("create('drinks')", "create('long')") % 100)


SEARCH_NEEDS_NO = {
    "chromadb",
    "faiss",
    "fastapi",
    "httpx",
    "kbkit.annotation",
    "kbkit.export",
    "kbkit.feedback",
    "kbkit.files",
    "kbkit.frames",
    "kbkit.graph",
    "kbkit.ingest",
    "kbkit.server",
    "llama_index",
    "lxml",
    "pandas",
    "psycopg",
    "trafilatura",
}


def test_a_search_loads_nothing_that_makes_or_measures(tmp_path):
    # each process of the command line loads anew what its search needs: half a second for these
    with kbkit.open(tmp_path) as workspace:
        workspace.create("drinks").add("Tea", "# Tea\n\nSteep it for two minutes.")
        workspace["drinks"].search("tea")  # makes the snapshot
    arguments = ["kbkit", "--workspace", str(tmp_path), "search", "steep", "--kb", "drinks"]
    search = (
        f"import sys; sys.argv = {arguments!r}\n"
        "from kbkit.cli import main; import gc\n"
        "def looked(): return gc.get_stats()[0]['collections'], gc.get_threshold(), gc.callbacks\n"
        "before = looked()\n"
        "try: main()\n"
        "except SystemExit as done: assert not done.code\n"
        "assert looked() == before and gc.get_freeze_count() > 10_000"
    )
    loaded = modules_of(search)
    assert "kbkit.retrieval.retriever" in loaded
    assert not SEARCH_NEEDS_NO.intersection(loaded)
    commands = {name for name in loaded if name.startswith("kbkit.cli.")}
    assert commands == {"kbkit.cli.app", "kbkit.cli.query", "kbkit.cli.terminal"}


def test_the_help_lists_commands_in_one_order_whichever_ran_first():
    code = (
        "import sys; from typer.testing import CliRunner; from kbkit.cli import app\n"
        "for arguments in sys.argv[1:]: said = CliRunner().invoke(app, arguments.split())\n"
        "print(said.output)"
    )

    def told(*arguments):
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    fresh = told("--help")
    assert told("trash --help", "models --help", "bundle --help", "--help") == fresh
    names = re.findall(r"(?m)^  ([a-z-]+) ", fresh.partition("Commands:")[2])
    assert len(names) > 40
    assert (names[0], names[-1]) == ("bundle", "token")
    # one that there is none of is likened to all of them
    assert "'search', 'serve'" in told("serch")


def test_every_module_of_the_command_line_is_loaded_for_its_commands():
    code = "from kbkit.cli.app import load_commands; load_commands()"
    files = {path.stem for path in Path(kbkit.__file__).with_name("cli").glob("[!_]*.py")}
    commands = files - {"dashboard"}  # `kbkit panel` imports it when it runs
    assert {f"kbkit.cli.{name}" for name in commands} <= set(modules_of(code))


def test_recipes_build_no_model_that_nothing_is_read_by():
    # each takes milliseconds, and a search reads one configuration
    code = (
        "import kbkit.recipes.schema as schema, kbkit.recipes.base as base, sys\n"
        "kinds = [kind for kind in vars(schema).values() if isinstance(kind, type)]\n"
        "kinds = [kind for kind in kinds if issubclass(kind, base.Spec)]\n"
        "built = [kind.__name__ for kind in kinds if kind.__pydantic_complete__]\n"
        "assert len(kinds) > 10 and not built, built"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.soak
def test_the_first_search_of_a_process_makes_a_snapshot_that_cannot_be_used(tmp_path):
    # as after an upgrade: else every search of the command line would do without one
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("drinks")
        kb.add("Tea", "# Tea\n\n" + "\n\n".join(f"## Cup {i}\n\nSteep." for i in range(1_100)))
    (kept,) = (tmp_path / "snapshots").glob("*.json")
    kept.write_text('{"format": 0}')
    search = f"import kbkit\nassert kbkit.open({str(tmp_path)!r})['drinks'].search('steep')"
    modules_of(search)
    assert json.loads(kept.read_text())["format"]
    assert not SEARCH_NEEDS_NO.intersection(modules_of(search))


def test_public_names_are_these():
    assert set(kbkit.__all__) == PUBLIC
    assert set(dir(kbkit)) >= PUBLIC
    for name in PUBLIC:
        assert getattr(kbkit, name).__name__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kbkit.nothing


@pytest.mark.parametrize("name", ["kbkit", "kbkit.models", "kbkit.panels", "kbkit.mcp.replies"])
def test_stubs_of_lazy_packages_have_their_names(name):
    package = importlib.import_module(name)
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text("utf-8"))
    imported = [each for each in stub.body if isinstance(each, ast.ImportFrom)]
    names = {alias.asname for each in imported for alias in each.names if alias.asname}
    assert names == set(package.__all__)
    assert all(getattr(package, each) is not None for each in names)


def test_a_star_import_leaves_the_builtins_alone():
    names: dict[str, object] = {}
    exec("from kbkit import *", names)
    import builtins

    assert "Workspace" in names
    assert not [name for name in names if hasattr(builtins, name) and not name.startswith("__")]
    assert kbkit.open.__module__ == "kbkit", "and still kbkit.open() opens a workspace"
