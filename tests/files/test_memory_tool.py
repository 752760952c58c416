"""The memory tool answers in the words of its public specification."""

import json

import pytest

import kbkit


@pytest.fixture
def tool(files):
    return files.memory_tool()


def do(tool, command, **arguments):
    return tool.handle({"command": command, **arguments})


def test_empty_memory_is_listed(tool):
    answer = do(tool, "view", path="/memories")
    assert answer == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden "
        "items and node_modules:\n0B\t/memories"
    )
    assert not answer.is_error


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
    answer = do(tool, "view", path="/memories/notes.txt")
    lines = answer.split("\n")
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


def test_view_of_missing_and_too_long_files(tool, files):
    answer = do(tool, "view", path="/memories/x")
    assert answer == "The path /memories/x does not exist. Please provide a valid path."
    assert answer.is_error
    files.write("long.txt", "\n" * 1_000_000)
    answer = do(tool, "view", path="/memories/long.txt")
    assert answer == "File /memories/long.txt exceeds maximum line limit of 999,999 lines."


def test_create_overwrites_nothing(tool, files):
    answer = do(tool, "create", path="/memories/deep/notes.txt", file_text="Meeting notes:\n")
    assert answer == "File created successfully at: /memories/deep/notes.txt"
    assert files.read("deep/notes.txt") == "Meeting notes:\n"
    for path in ("/memories/deep/notes.txt", "/memories/deep"):
        answer = do(tool, "create", path=path, file_text="other")
        assert answer == f"Error: File {path} already exists"
        assert answer.is_error
    assert files.read("deep/notes.txt") == "Meeting notes:\n"


def test_str_replace_changes_one_place(tool, files):
    files.write("p.txt", "a\nFavorite color: blue\nb\nb\n")

    def replace(old, new="x", path="/memories/p.txt"):
        return do(tool, "str_replace", path=path, old_str=old, new_str=new)

    answer = replace("color: blue", "color: green")
    assert answer.split("\n")[0] == "The memory file has been edited."
    assert "     2\tFavorite color: green" in answer
    assert replace("red") == (
        "No replacement was performed, old_str `red` did not appear verbatim in /memories/p.txt."
    )
    assert replace("b\n") == (
        "No replacement was performed. Multiple occurrences of old_str `b\n` in lines: 3, 4. "
        "Please ensure it is unique"
    )
    files.mkdir("d")
    for path in ("/memories/none", "/memories/d"):
        missing = f"Error: The path {path} does not exist. Please provide a valid path."
        assert replace("a", path=path) == missing
    do(tool, "str_replace", path="/memories/p.txt", old_str="a\n")
    assert files.read("p.txt") == "Favorite color: green\nb\nb\n"


def test_insert_adds_text_after_a_line(tool, files):
    files.write("todo.txt", "one\ntwo\n")

    def insert(line, text="x", path="/memories/todo.txt"):
        return do(tool, "insert", path=path, insert_line=line, insert_text=text)

    assert insert(2, "- three\n") == "The file /memories/todo.txt has been edited."
    insert(0, "zero")
    assert files.read("todo.txt") == "zero\none\ntwo\n- three\n"
    for line in (5, -1, "2", None):
        assert insert(line) == (
            f"Error: Invalid `insert_line` parameter: {line}. It should be within the range of "
            "lines of the file: [0, 4]"
        )
    files.mkdir("d")
    for path in ("/memories/none", "/memories/d"):
        assert insert(0, path=path) == f"Error: The path {path} does not exist"


def test_delete_moves_folders_to_the_trash(tool, files):
    files.write("a/b.txt", "x")
    assert do(tool, "delete", path="/memories/a") == "Successfully deleted /memories/a"
    assert files.list() == []
    assert [each.path for each in files.trash()] == ["a"]
    assert do(tool, "delete", path="/memories/a") == "Error: The path /memories/a does not exist"
    assert do(tool, "delete", path="/memories").is_error


def test_rename_overwrites_nothing(tool, files):
    files.write("draft.txt", "x")

    def rename(old, new):
        return do(tool, "rename", old_path=f"/memories/{old}", new_path=f"/memories/{new}")

    success = "Successfully renamed /memories/draft.txt to /memories/d/final.txt"
    assert rename("draft.txt", "d/final.txt") == success
    assert files.read("d/final.txt") == "x"
    files.write("other.txt", "y")
    exists = "Error: The destination /memories/d/final.txt already exists"
    assert rename("other.txt", "d/final.txt") == exists
    assert rename("none", "x") == "Error: The path /memories/none does not exist"
    assert rename("d", "e").startswith("Succ")


OUTSIDE = (
    "/memories/../x /memories/a/../../x /memories/.. /memories/%2e%2e/x /memories\\x "
    "/memories/..\\x /etc/passwd memories/x /memoriesx / ../memories/x /memories/%2E%2e%2fx "
    "/memories/x\0 /memories//../x /memories/.git/config"
)


@pytest.mark.parametrize("path", ["", *OUTSIDE.split(" ")])
def test_no_command_leaves_the_memory(tool, files, path):
    files.write("a.txt", "a")
    for arguments in (
        {"command": "view"},
        {"command": "create", "file_text": "x"},
        {"command": "delete"},
        {"command": "str_replace", "old_str": "a", "new_str": "b"},
        {"command": "insert", "insert_line": 0, "insert_text": "x"},
    ):
        answer = tool.handle({**arguments, "path": path})
        assert answer.is_error, (arguments, answer)
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
def test_malformed_commands_are_answered(tool, command):
    answer = tool.handle(command)
    assert isinstance(answer, str)
    assert answer.is_error
    assert answer.startswith("Error: ")


def test_tool_accepts_models_and_json(tool, files):
    class Input:
        def model_dump(self):
            return {"command": "create", "path": "/memories/a.txt", "file_text": "a"}

    assert not tool.handle(Input()).is_error
    assert not tool.handle(json.dumps({"command": "view", "path": "/memories/a.txt"})).is_error
    assert tool.definition == {"type": "memory_20250818", "name": "memory"}
    commands = "view create str_replace insert delete rename"
    assert tool.schema["properties"]["command"]["enum"] == commands.split()
    json.dumps(tool.schema)


def test_memory_can_be_confined_to_a_folder(files):
    files.write("mine.md", "mine")
    tool = files.memory_tool(folder="agents/one")
    assert do(tool, "view", path="/memories").endswith("\n0B\t/memories")
    do(tool, "create", path="/memories/a.txt", file_text="a")
    assert files.read("agents/one/a.txt") == "a"
    assert do(tool, "view", path="/memories/mine.md").is_error
    assert "mine" not in do(tool, "view", path="/memories")


def test_agent_continues_from_its_memory(tmp_path):
    plan = "# Plan\n\n- [ ] read the recipe\n- [ ] boil water\n"
    path = "/memories/tea/plan.md"
    with kbkit.open(tmp_path / "ws") as workspace:
        tool = workspace.files.memory_tool()
        answers = [
            do(tool, "view", path="/memories"),
            do(tool, "create", path=path, file_text=plan),
            do(tool, "str_replace", path=path, old_str="- [ ] read", new_str="- [x] read"),
            do(tool, "str_replace", path=path, old_str="- [", new_str="* ["),
            do(tool, "insert", path=path, insert_line=4, insert_text="- [ ] steep the oolong\n"),
        ]
        assert [each.is_error for each in answers] == [False, False, False, True, False]
    with kbkit.open(tmp_path / "ws") as workspace:
        tool = workspace.files.memory_tool()
        assert do(tool, "view", path="/memories").endswith("\t/memories/tea/plan.md")
        lines = do(tool, "view", path=path, view_range=[3, -1]).splitlines()
        do(tool, "rename", old_path="/memories/tea", new_path="/memories/done")
        assert lines[1:] == [
            "     3\t- [x] read the recipe",
            "     4\t- [ ] boil water",
            "     5\t- [ ] steep the oolong",
        ]
        hits = workspace.search("oolong", mode="lexical")
        assert [(hit.kb, hit.uri) for hit in hits] == [("files", "done/plan.md")]
