"""Modules that imports, help and searches load, and public names."""

import builtins
import importlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import kbkit

HEAVY = """
    IPython alembic altair chromadb fastapi griffe httpx ipywidgets llama_index lxml mcp mkdocs
    nbformat numpy onnxruntime pandas psycopg sqlalchemy tokenizers trafilatura vl_convert
"""

PUBLIC = """
    Answer AutoEmbedding BuildReport Chunk ChunkingSpec CrawlSource Document DocumentInfo
    DocumentType Evaluation ExpandSpec Expansion ExportReport FidelityReport FilesSource Filters
    Hit Hits Improvement IngestReport JsonlSource Judgements KbkitError KnowledgeBase
    KnowledgeBaseInfo KnowledgeBaseSpec LearningSpec LlamaIndexEmbedding MirrorSource Mode
    MultilingualEmbedding OnnxEmbedding OpenApiSource PackageSource PageSource ParquetSource
    PluginEmbedding PluginSource PostprocessorSpec PublishedIndex Question Rating Recipe
    RetrievalSpec SiteSpec SourceInfo StaticEmbedding StorageSpec Target Workspace build connect
    fidelity load_recipe migrate
"""


def modules_of(code: str) -> list[str]:
    with tempfile.NamedTemporaryFile("r") as file:
        code += f"\nimport sys, json; json.dump(sorted(sys.modules), open({file.name!r}, 'w'))"
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        return list(json.load(file))


def loaded_by(code: str) -> set[str]:
    return {name.partition(".")[0] for name in modules_of(code)}


HELP = (
    "import sys; sys.argv = ['kbkit', '--help']\n"
    "from kbkit.cli import app\n"
    "try: app()\n"
    "except SystemExit: pass"
)


@pytest.mark.parametrize(
    "code", [*(f"import kbkit{part}" for part in ("", ".testing", ".recipes", ".panels")), HELP]
)
def test_no_heavy_library_is_loaded(code):
    assert not loaded_by(code) & set(HEAVY.split())


def test_import_and_help_load_few_modules():
    # The promises are 0.1 and 0.2 s; the number of modules is the same on every machine
    bare, imported, helped = map(set, map(modules_of, ["pass", "import kbkit", HELP]))
    assert len(imported - bare) < 50
    assert len(helped - bare) < 180
    assert not (imported - bare) & {"logging", "pathlib"}
    assert not (helped - bare) & {"kbkit.models.documents", "kbkit.models.searches", "secrets"}


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


SEARCH_NEEDS_NO = """
    chromadb faiss fastapi http.server httpx kbkit.annotation kbkit.export
    kbkit.feedback kbkit.files kbkit.frames kbkit.graph kbkit.ingest kbkit.server llama_index lxml
    pandas psycopg sqlalchemy.dialects.postgresql trafilatura urllib.request
"""


def test_search_loads_only_needed_modules(tmp_path):
    # loading these takes half a second of each command
    with kbkit.open(tmp_path) as workspace:
        workspace.create("drinks").add("Tea", "# Tea\n\nSteep it for two minutes.")
        workspace["drinks"].search("tea")  # makes the snapshot
    arguments = ["kbkit", "--workspace", str(tmp_path), "search", "steep", "--kb", "drinks"]
    search = (
        f"import sys; sys.argv = {arguments!r}\n"
        "from kbkit.cli import main; import gc\n"
        "before = gc.get_stats()[0]['collections']\n"
        "try: main()\n"
        "except SystemExit as done: assert not done.code\n"
        "assert gc.get_stats()[0]['collections'] == before and gc.get_freeze_count() > 10_000"
    )
    loaded = modules_of(search)
    assert "kbkit.retrieval.retriever" in loaded
    assert not set(SEARCH_NEEDS_NO.split()).intersection(loaded)
    commands = {name for name in loaded if name.startswith("kbkit.cli.")}
    assert commands == {"kbkit.cli.query", "kbkit.cli.terminal"}


def test_help_lists_commands_in_a_fixed_order():
    code = (
        "import sys; from typer.testing import CliRunner; from kbkit.cli import app\n"
        "for arguments in sys.argv[1:]: result = CliRunner().invoke(app, arguments.split())\n"
        "print(result.output)"
    )

    def output(*arguments):
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    fresh = output("--help")
    assert output("trash --help", "models --help", "bundle --help", "--help") == fresh
    names = re.findall(r"(?m)^  ([a-z-]+) ", fresh.partition("Commands:")[2])
    assert len(names) > 40
    assert (names[0], names[-1]) == ("bundle", "token")
    assert "'search', 'serve'" in output("serch")


def test_every_command_module_is_loaded():
    code = "from kbkit.cli import load_commands; load_commands()"
    files = {path.stem for path in Path(kbkit.__file__).with_name("cli").glob("[!_]*.py")}
    commands = files - {"dashboard"}  # `kbkit panel` imports it when it runs
    assert {f"kbkit.cli.{name}" for name in commands} <= set(modules_of(code))


def test_recipes_build_pydantic_models_lazily():
    # each takes milliseconds
    code = (
        "import kbkit.recipes.schema as schema, kbkit.recipes.base as base, sys\n"
        "kinds = [kind for kind in vars(schema).values() if isinstance(kind, type)]\n"
        "kinds = [kind for kind in kinds if issubclass(kind, base.Spec)]\n"
        "built = [kind.__name__ for kind in kinds if kind.__pydantic_complete__]\n"
        "assert len(kinds) > 10 and not built, built"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.soak
def test_first_search_replaces_an_unusable_snapshot(tmp_path):
    # as after an upgrade
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("drinks")
        kb.add("Tea", "# Tea\n\n" + "\n\n".join(f"## Cup {i}\n\nSteep." for i in range(1_100)))
    (kept,) = (tmp_path / "snapshots").glob("*.json")
    kept.write_text('{"format": 0}')
    search = f"import kbkit\nassert kbkit.open({str(tmp_path)!r})['drinks'].search('steep')"
    modules_of(search)
    assert json.loads(kept.read_text())["format"]
    assert not set(SEARCH_NEEDS_NO.split()).intersection(modules_of(search))


def test_public_names_are_pinned():
    names = set(PUBLIC.split())
    assert set(kbkit.__all__) == names
    assert set(dir(kbkit)) >= names
    for name in names:
        assert getattr(kbkit, name).__name__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kbkit.nothing


@pytest.mark.parametrize("name", ["kbkit", "kbkit.models", "kbkit.panels"])
def test_names_of_lazy_packages_exist(name):
    package = importlib.import_module(name)
    stub = Path(package.__file__).with_suffix(".pyi").read_text("utf-8")
    assert len(package.__all__) == stub.count(" as ")
    assert all(getattr(package, each) is not None for each in package.__all__)


def test_star_import_leaves_builtins_alone():
    names: dict[str, object] = {}
    exec("from kbkit import *", names)
    assert "Workspace" in names
    assert not [name for name in names if hasattr(builtins, name) and not name.startswith("__")]
    assert kbkit.open.__module__ == "kbkit", "and still kbkit.open() opens a workspace"
