"""The commands of the memory tool, word for word as its public specification has them."""

from __future__ import annotations

import json

import pytest

import kbkit


@pytest.fixture
def tool(files):
    return files.memory_tool()


def do(tool, command, **arguments):
    return tool.handle({"command": command, **arguments})


def test_an_empty_memory_is_there(tool):
    said = do(tool, "view", path="/memories")
    assert said == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden "
        "items and node_modules:\n0B\t/memories"
    )
    assert not said.is_error


def test_view_lists_two_levels_with_sizes(tool, files):
    files.write("big.md", "x" * 5632)
    files.write("a/b/c/deep.md", "x" * 100)
    files.write("node_modules/x.js", "x")
    (files.path / ".hidden").write_text("x")
    assert do(tool, "view", path="/memories/").splitlines()[1:] == [
        "5.6K\t/memories",
        "100B\t/memories/a",
        "100B\t/memories/a/b",
        "5.5K\t/memories/big.md",
    ]
    assert do(tool, "view", path="/memories/a/b").splitlines()[1:] == [
        "100B\t/memories/a/b",
        "100B\t/memories/a/b/c",
        "100B\t/memories/a/b/c/deep.md",
    ]


def test_view_numbers_the_lines_of_a_file(tool, files):
    files.write("notes.txt", "Hello World\nThis is line two\n" + "x\n" * 98)
    said = do(tool, "view", path="/memories/notes.txt")
    lines = said.split("\n")
    assert lines[:3] == [
        "Here's the content of /memories/notes.txt with line numbers:",
        "     1\tHello World",
        "     2\tThis is line two",
    ]
    assert lines[100] == "   100\tx"
    assert len(lines) == 101
    some = do(tool, "view", path="/memories/notes.txt", view_range=[2, 3])
    assert some.split("\n")[1:] == ["     2\tThis is line two", "     3\tx"]
    rest = do(tool, "view", path="/memories/notes.txt", view_range=[100, -1])
    assert rest.split("\n")[1:] == ["   100\tx"]
    wrong = do(tool, "view", path="/memories/notes.txt", view_range=[101, 102])
    assert wrong.is_error
    assert "Invalid `view_range` parameter: [101, 102]" in wrong
    assert "[1, 100]" in wrong


def test_view_of_nothing_and_of_too_much(tool, files):
    said = do(tool, "view", path="/memories/x")
    assert said == "The path /memories/x does not exist. Please provide a valid path."
    assert said.is_error
    files.write("long.txt", "\n" * 1_000_000)
    said = do(tool, "view", path="/memories/long.txt")
    assert said == "File /memories/long.txt exceeds maximum line limit of 999,999 lines."


def test_create_makes_a_file_that_is_not_there(tool, files):
    said = do(tool, "create", path="/memories/deep/notes.txt", file_text="Meeting notes:\n")
    assert said == "File created successfully at: /memories/deep/notes.txt"
    assert files.read("deep/notes.txt") == "Meeting notes:\n"
    for path in ("/memories/deep/notes.txt", "/memories/deep"):
        said = do(tool, "create", path=path, file_text="other")
        assert said == f"Error: File {path} already exists"
        assert said.is_error
    assert files.read("deep/notes.txt") == "Meeting notes:\n"


def test_str_replace_changes_one_place(tool, files):
    files.write("p.txt", "a\nFavorite color: blue\nb\nb\n")
    said = do(
        tool, "str_replace", path="/memories/p.txt", old_str="color: blue", new_str="color: green"
    )
    assert said.split("\n")[0] == "The memory file has been edited."
    assert "     2\tFavorite color: green" in said
    said = do(tool, "str_replace", path="/memories/p.txt", old_str="red", new_str="x")
    assert said == (
        "No replacement was performed, old_str `red` did not appear verbatim in /memories/p.txt."
    )
    said = do(tool, "str_replace", path="/memories/p.txt", old_str="b\n", new_str="x")
    assert said == (
        "No replacement was performed. Multiple occurrences of old_str `b\n` in lines: 3, 4. "
        "Please ensure it is unique"
    )
    files.mkdir("d")
    for path in ("/memories/none", "/memories/d"):
        said = do(tool, "str_replace", path=path, old_str="a", new_str="b")
        assert said == f"Error: The path {path} does not exist. Please provide a valid path."
    do(tool, "str_replace", path="/memories/p.txt", old_str="a\n")
    assert files.read("p.txt") == "Favorite color: green\nb\nb\n"


def test_insert_puts_text_behind_a_line(tool, files):
    files.write("todo.txt", "one\ntwo\n")
    said = do(tool, "insert", path="/memories/todo.txt", insert_line=2, insert_text="- three\n")
    assert said == "The file /memories/todo.txt has been edited."
    do(tool, "insert", path="/memories/todo.txt", insert_line=0, insert_text="zero")
    assert files.read("todo.txt") == "zero\none\ntwo\n- three\n"
    for line in (5, -1, "2", None):
        said = do(tool, "insert", path="/memories/todo.txt", insert_line=line, insert_text="x")
        assert said == (
            f"Error: Invalid `insert_line` parameter: {line}. It should be within the range of "
            "lines of the file: [0, 4]"
        )
    files.mkdir("d")
    for path in ("/memories/none", "/memories/d"):
        said = do(tool, "insert", path=path, insert_line=0, insert_text="x")
        assert said == f"Error: The path {path} does not exist"


def test_delete_takes_files_and_folders_which_the_trash_keeps(tool, files):
    files.write("a/b.txt", "x")
    assert do(tool, "delete", path="/memories/a") == "Successfully deleted /memories/a"
    assert files.list() == []
    assert [each.path for each in files.trash()] == ["a"]
    assert do(tool, "delete", path="/memories/a") == "Error: The path /memories/a does not exist"
    assert do(tool, "delete", path="/memories").is_error


def test_rename_overwrites_nothing(tool, files):
    files.write("draft.txt", "x")
    said = do(tool, "rename", old_path="/memories/draft.txt", new_path="/memories/d/final.txt")
    assert said == "Successfully renamed /memories/draft.txt to /memories/d/final.txt"
    assert files.read("d/final.txt") == "x"
    files.write("other.txt", "y")
    said = do(tool, "rename", old_path="/memories/other.txt", new_path="/memories/d/final.txt")
    assert said == "Error: The destination /memories/d/final.txt already exists"
    said = do(tool, "rename", old_path="/memories/none", new_path="/memories/x")
    assert said == "Error: The path /memories/none does not exist"
    assert do(tool, "rename", old_path="/memories/d", new_path="/memories/e").startswith("Succ")


@pytest.mark.parametrize(
    "path",
    [
        "/memories/../x",
        "/memories/a/../../x",
        "/memories/..",
        "/memories/%2e%2e/x",
        "/memories\\x",
        "/memories/..\\x",
        "/etc/passwd",
        "memories/x",
        "",
        "/memoriesx",
        "/",
        "../memories/x",
        "/memories/%2E%2e%2fx",
        "/memories/x\0",
        "/memories//../x",
        "/memories/.git/config",
    ],
)
def test_no_command_leaves_the_memory(tool, files, path):
    files.write("a.txt", "a")
    for arguments in (
        {"command": "view"},
        {"command": "create", "file_text": "x"},
        {"command": "delete"},
        {"command": "str_replace", "old_str": "a", "new_str": "b"},
        {"command": "insert", "insert_line": 0, "insert_text": "x"},
    ):
        said = tool.handle({**arguments, "path": path})
        assert said.is_error, (arguments, said)
    for old, new in ((path, "/memories/new"), ("/memories/a.txt", path)):
        assert do(tool, "rename", old_path=old, new_path=new).is_error
    assert files.read("a.txt") == "a"
    assert [info.path for info in files.list()] == ["a.txt"]


@pytest.mark.parametrize(
    "command",
    [
        {},
        {"command": "undo"},
        {"command": None},
        {"command": "view"},
        {"command": "view", "path": 3},
        {"command": "create", "path": "/memories/x"},
        "no json",
        "[]",
        "3",
        7,
        None,
        {"command": "create", "path": "/memories/x", "file_text": "\ud800"},
    ],
)
def test_whatever_a_model_says_is_answered(tool, command):
    said = tool.handle(command)
    assert isinstance(said, str)
    assert said.is_error
    assert said.startswith("Error: ")


def test_it_takes_what_sdks_hand_over(tool, files):
    class Input:
        def model_dump(self):
            return {"command": "create", "path": "/memories/a.txt", "file_text": "a"}

    assert not tool.handle(Input()).is_error
    assert not tool.handle(json.dumps({"command": "view", "path": "/memories/a.txt"})).is_error
    assert tool.definition == {"type": "memory_20250818", "name": "memory"}
    assert tool.schema["properties"]["command"]["enum"] == [
        "view",
        "create",
        "str_replace",
        "insert",
        "delete",
        "rename",
    ]
    json.dumps(tool.schema)


def test_it_can_be_confined_to_a_folder(files):
    files.write("mine.md", "mine")
    tool = files.memory_tool(folder="agents/one")
    assert do(tool, "view", path="/memories").endswith("\n0B\t/memories")
    do(tool, "create", path="/memories/a.txt", file_text="a")
    assert files.read("agents/one/a.txt") == "a"
    assert do(tool, "view", path="/memories/mine.md").is_error
    assert "mine" not in do(tool, "view", path="/memories")


class ScriptedModel:
    """Asks for what its script says, and remembers what it was told."""

    def __init__(self, *commands):
        self.commands = list(commands)
        self.told = []

    def next(self, results):
        self.told += results
        if not self.commands:
            return {"stop_reason": "end_turn", "content": []}
        block = {
            "type": "tool_use",
            "id": f"call-{len(self.told)}",
            "name": "memory",
            "input": self.commands.pop(0),
        }
        return {"stop_reason": "tool_use", "content": [block]}


def converse(model, files):
    """The loop that agents run, whatever the SDK."""
    tool, results = files.memory_tool(), []
    while True:
        message = model.next(results)
        if message["stop_reason"] != "tool_use":
            return model.told
        results = [
            {
                "type": "tool_result",
                "tool_use_id": block["id"],
                "content": str(answer := tool.handle(block["input"])),
                "is_error": answer.is_error,
            }
            for block in message["content"]
            if block["name"] == tool.name
        ]


def test_an_agent_goes_on_in_the_next_conversation_from_what_it_wrote_down(tmp_path):
    plan = "# Plan\n\n- [ ] read the recipe\n- [ ] boil water\n"
    with kbkit.open(tmp_path / "ws") as workspace:
        told = converse(
            ScriptedModel(
                {"command": "view", "path": "/memories"},
                {"command": "create", "path": "/memories/tea/plan.md", "file_text": plan},
                {
                    "command": "str_replace",
                    "path": "/memories/tea/plan.md",
                    "old_str": "- [ ] read",
                    "new_str": "- [x] read",
                },
                {
                    "command": "str_replace",
                    "path": "/memories/tea/plan.md",
                    "old_str": "- [",
                    "new_str": "* [",
                },
                {
                    "command": "insert",
                    "path": "/memories/tea/plan.md",
                    "insert_line": 4,
                    "insert_text": "- [ ] steep the oolong\n",
                },
            ),
            workspace.files,
        )
        assert [each["is_error"] for each in told] == [False, False, False, True, False]
    with kbkit.open(tmp_path / "ws") as workspace:
        told = converse(
            ScriptedModel(
                {"command": "view", "path": "/memories"},
                {"command": "view", "path": "/memories/tea/plan.md", "view_range": [3, -1]},
                {"command": "rename", "old_path": "/memories/tea", "new_path": "/memories/done"},
            ),
            workspace.files,
        )
        assert told[0]["content"].endswith("\t/memories/tea/plan.md")
        assert told[1]["content"].splitlines()[1:] == [
            "     3\t- [x] read the recipe",
            "     4\t- [ ] boil water",
            "     5\t- [ ] steep the oolong",
        ]
        hits = workspace.search("oolong", mode="lexical")
        assert [(hit.kb, hit.uri) for hit in hits] == [("files", "done/plan.md")]
