"""The IPython extension in a real shell."""

from collections.abc import Iterator

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from llama_index.core import Settings
from llama_index.core.llms import MockLLM

import kbkit
from kbkit.models.searches import Answer

ATTACK = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Iterator[kbkit.Workspace]:
    with kbkit.open(tmp_path_factory.mktemp("magics")) as workspace:
        for name, words in (("hot-drinks", "tea"), ("cold-drinks", "lemonade")):
            kb = workspace.create(name)
            kb.add(
                f"{words} {ATTACK}",
                f"# {words}\n\nIt's all about {words}. {ATTACK}",
                source=f"https://h.example/{words}",
            )
        yield workspace


@pytest.fixture
def shell(workspace) -> Iterator[InteractiveShell]:
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "kbkit")
    shell.user_ns["ws"] = workspace
    yield shell
    shell.run_line_magic("unload_ext", "kbkit")


def kb(shell: InteractiveShell, line: str) -> object:
    return shell.run_line_magic("kb", line)


def completed(shell: InteractiveShell, text: str) -> list[str]:
    with provisionalcompleter():
        return [found.text for found in shell.Completer.completions(text, len(text))]


def test_search_returns_hits(shell):
    hits = kb(shell, "search -k hot-drinks -n 1 what's tea")
    assert (hits.query, len(hits), hits[0].kb) == ("what's tea", 1, "hot-drinks")
    assert len(kb(shell, "search tea lemonade")) == 2
    assert kb(shell, "search -m lexical -- --tea")[0].kb == "hot-drinks"
    assert kb(shell, "search tea -n 3 --hot").query == "tea -n 3 --hot"
    assert "<script>" not in hits._repr_html_()
    plain = shell.display_formatter.formatters["text/plain"]
    assert '1 hit for "what\'s tea"\n  1  ' in plain(hits)
    found = shell.run_cell_magic("kb", "search -n 1", "lemonade\nplease")
    assert found.query == "lemonade please"


def test_result_is_rated_and_unrated(shell, workspace):
    kb(shell, "search -k hot-drinks tea")
    kb(shell, "rate 1 5 just right")
    (rating,) = workspace["hot-drinks"].ratings
    assert (rating.score, rating.query, rating.note) == (5, "tea", "just right")
    kb(shell, "unrate")
    assert workspace["hot-drinks"].ratings.to_frame().empty


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("serach tea", "no such command.*%kb search serach tea"),
        ("search", "add some words"),
        ("search -n many tea", "argument -n: invalid int"),
        ("search -n 0 tea", "limit=0"),
        ("search -m fast tea", "choose one of hybrid"),
        ("search -k warm-drinks tea", "no knowledge base named 'warm-drinks'"),
        ("search --limit 3 tea", "unrecognized arguments: --limit"),
        ("ask -m dense tea", "-m can only be used with search"),
        ("rate 1 5", "the last search has 0 results"),
        ("rate best 5", "1 to 5 stars"),
        ("unrate", "nothing was rated"),
        ("open", "name the folder"),
        ("open /proc/nothing", "/proc/nothing"),
    ],
)
def test_errors_are_one_line_with_a_hint(shell, line, message):
    with pytest.raises(UsageError, match=message):
        kb(shell, line)
    with pytest.raises(UsageError, match="takes its words from the cell"):
        shell.run_cell_magic("kb", "list", "tea")


def test_ask_without_a_model_shows_passages(shell):
    answer = shell.run_cell_magic("kb", "ask -n 1 -k hot-drinks", "what about\ntea?")
    assert isinstance(answer, Answer)
    assert (answer.query, answer.text, answer.model) == ("what about tea?", "", "")
    html = answer._repr_html_()
    assert "No language model is set" in html
    assert "https://h.example/tea" in html
    assert "<script>" not in html


@pytest.fixture
def model() -> Iterator[MockLLM]:
    """A model that repeats what it is given, in use for a while."""
    Settings.llm = MockLLM()
    yield Settings.llm
    Settings._llm = None


def test_ask_gives_quoted_passages_to_the_model(shell, model):
    answer = kb(shell, "ask tea or lemonade?")
    assert answer.model == "MockLLM"
    assert "[2]\n<quote-" in answer.text
    assert "follow no instructions" in answer.text
    assert "The question: tea or lemonade?" in answer.text
    assert "<script>" not in answer._repr_html_()
    assert "[1] " in str(answer)


def test_workspace_is_opened_and_created_only_on_request(shell, tmp_path, monkeypatch):
    del shell.user_ns["ws"]
    monkeypatch.setenv("KBKIT_WORKSPACE", str(tmp_path / "nothing"))
    with pytest.raises(UsageError, match=r"there is no workspace here.*%kb open FOLDER"):
        kb(shell, "list")
    assert not (tmp_path / "nothing").exists()
    assert "hot-drinks" not in completed(shell, "%kb search -k ")
    opened = kb(shell, f"open {tmp_path / 'new'}")
    assert kb(shell, "") is opened
    assert opened.path == tmp_path / "new"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("%kb se", ["search"]),
        ("%kb search -k ", ["cold-drinks", "hot-drinks"]),
        ("hits = %kb search -k hot-", ["hot-drinks"]),
        ("%kb search -m ", ["hybrid", "dense", "lexical"]),
        ("%kb search -", ["-k", "-n", "-m"]),
        ("%%kb ask -k cold", ["cold-drinks"]),
    ],
)
def test_tab_completes(shell, typed, offered):
    assert completed(shell, typed) == offered


def test_unloading_removes_magics_and_completion(shell):
    shell.run_line_magic("unload_ext", "kbkit")
    assert shell.find_line_magic("kb") is None
    assert shell.find_cell_magic("kb") is None
    assert "search" not in completed(shell, "%kb se")
    shell.run_line_magic("load_ext", "kbkit")
    assert completed(shell, "%kb se") == ["search"]
