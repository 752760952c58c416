"""The memory tool that language models are trained on, on a workspace's files.

Implements its public specification (``memory_20250818``): `view`, `create`, `str_replace`,
`insert`, `delete` and `rename`, below ``/memories``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field

from kbkit import errors
from kbkit.models import FileTree
from kbkit.runtime.validation import check_text


def decode(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise errors.NotTextError(
            f"{path}: is not UTF-8 text; open it in the folder of the files"
        ) from None


def encode(path: str, content: str) -> bytes:
    check_text("content", content)
    try:
        return content.encode()
    except UnicodeEncodeError:
        raise errors.NotTextError(
            f"{path}: the text has characters that Unicode does not"
        ) from None


def lines_of(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def number_lines(text: str, lines: Sequence[int] | None = None) -> str:
    all_lines = lines_of(text)
    first, last = (1, len(all_lines)) if lines is None else _range(lines, len(all_lines))
    selected = all_lines[first - 1 : last]
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(selected, first))


def _range(lines: Sequence[int], count: int) -> tuple[int, int]:
    if not isinstance(lines, list | tuple) or [type(each) for each in lines] != [int, int]:
        raise errors.ConfigError(f"lines={lines!r}: give the first and the last, such as (1, 20)")
    first, last = lines
    if last == -1:
        last = max(count, first)
    if not 1 <= first <= last:
        raise errors.ConfigError(
            f"lines={lines!r}: the first must be 1 or more, and not after the last"
        )
    if first > max(count, 1):
        raise errors.ConfigError(f"lines={lines!r}: there are {count:,} lines")
    return first, min(last, count)


def replace_part(path: str, text: str, old: str, new: str) -> str:
    """Replace a part of a file's text that occurs once. Keeps Windows line ends."""
    if "\r\n" in text and "\r" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    places = list(occurrences(text, old))
    if (count := len(places)) != 1:
        times = f"{count} times" if count else "nowhere"
        raise errors.NotUniqueError(
            f"{path}: the text to replace occurs {times}; give one that occurs exactly once", count
        )
    return text[: places[0]] + new + text[places[0] + len(old) :]


def occurrences(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def insert_lines(text: str, line: int, part: str) -> str:
    """Insert a text after a line (0: at the beginning)."""
    lines = list(StringIO(text))
    if type(line) is not int or not 0 <= line <= len(lines):
        raise errors.ConfigError(f"line={line!r}: give a whole number, 0 to {len(lines):,}")
    end = "\r\n" if "\r\n" in text else "\n"
    if part and not part.endswith("\n"):
        part += end
    if line and not lines[line - 1].endswith("\n"):
        lines[line - 1] += end
    return "".join([*lines[:line], part, *lines[line:]])


ROOT = "/memories"
MAX_LINES = 999_999
"""Maximum lines shown: numbers have six places."""

_DEPTH = 2
_AROUND = 4  # lines shown before and after a change
_ENCODED = re.compile(r"%(?:2e|2f|5c|00)", re.IGNORECASE)
_UNITS = "KMGT"


class MemoryCommand(BaseModel):
    """A command of the memory tool."""

    command: Literal["view", "create", "str_replace", "insert", "delete", "rename"]
    path: str = Field("", description=f"Below {ROOT}; not for rename.")
    view_range: list[int] | None = Field(
        None, description="view: first and last line; -1 is the end.", min_length=2, max_length=2
    )
    file_text: str | None = Field(None, description="create")
    old_str: str | None = Field(None, description="str_replace: text that occurs once.")
    new_str: str | None = Field(None, description="str_replace")
    insert_line: int | None = Field(None, description="insert: after this line; 0 is the top.")
    insert_text: str | None = Field(None, description="insert")
    old_path: str | None = Field(None, description="rename")
    new_path: str | None = Field(None, description="rename")


_COMMANDS = get_args(MemoryCommand.model_fields["command"].annotation)


class MemoryAnswer(str):
    """Answer for the model; ``is_error`` marks a failed command."""

    __slots__ = ("is_error",)

    is_error: bool

    def __new__(cls, text: str, *, is_error: bool = False) -> MemoryAnswer:
        answer = super().__new__(cls, text)
        answer.is_error = is_error
        return answer


class _RefusedError(Exception):
    """A failed command; its message is for the model."""


_MISSING_MESSAGES = {
    "view": "The path {} does not exist. Please provide a valid path.",
    "str_replace": "Error: The path {} does not exist. Please provide a valid path.",
}


class MemoryTool:
    """Handles commands of the memory tool for an agent loop; answers with text.

    Args:
        files: The files of a workspace, or of one on a server.
        folder: Folder shown as ``/memories``.

    Attributes:
        name: Name of the tool.
        description: Description for APIs that need a schema.
    """

    name = "memory"
    description = (
        "Keeps notes in files below /memories that last from one conversation to the next. "
        "Commands: view (a folder, or a file with numbered lines), create (a new file), "
        "str_replace (a text that occurs once in a file), insert (after a line), delete and rename."
    )

    def __init__(self, files: Any, folder: str = "") -> None:
        self._files = files
        self._folder = folder.strip("/")

    @property
    def definition(self) -> dict[str, str]:
        """Return the definition for ``tools`` in a request to the Anthropic API."""
        return {"type": "memory_20250818", "name": self.name}

    @property
    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments, for APIs where a tool is a function."""
        return MemoryCommand.model_json_schema()

    def handle(self, command: Mapping[str, Any] | str | Any) -> MemoryAnswer:
        """Run a model's command, and return the answer for it.

        Failures are answers with ``is_error``, never exceptions.

        Args:
            command: The input of a tool call: a mapping, its JSON, or an object with
                ``model_dump``.
        """
        try:
            arguments = _mapping(command)
            name = str(arguments.get("command"))
            if name not in _COMMANDS:
                names = ", ".join(_COMMANDS)
                raise _RefusedError(f"Error: Unknown command: {name}. It is one of {names}")
            answer: Callable[[Mapping[str, Any]], str] = getattr(self, f"_{name}")
            return MemoryAnswer(answer(arguments))
        except _RefusedError as refused:
            reason = str(refused)
        except (errors.MissingPathError, errors.IsFolderError):
            path = arguments["old_path" if name == "rename" else "path"]
            message = _MISSING_MESSAGES.get(name, "Error: The path {} does not exist")
            reason = message.format(path)
        except (errors.KbkitError, OSError) as error:  # such as a full disk
            reason = f"Error: {error}"
        return MemoryAnswer(reason, is_error=True)

    def _view(self, arguments: Mapping[str, Any]) -> str:
        target, path = self._path(arguments)
        base = target.rstrip("/")
        try:
            tree = self._files.tree(path)
            rows = list(_rows(tree, base, _DEPTH)) if tree.info.is_folder else []
        except errors.MissingPathError:
            if path != self._folder:
                raise
            rows = [f"{_size(0)}\t{base}"]  # a missing root is an empty folder
        if rows:
            head = (
                f"Here're the files and directories up to {_DEPTH} levels deep in {target}, "
                "excluding hidden items and node_modules:"
            )
            return "\n".join([head, *rows])
        text = self._files.read(path)
        count = len(lines_of(text))
        if count > MAX_LINES:
            raise _RefusedError(f"File {target} exceeds maximum line limit of 999,999 lines.")
        view_range = arguments.get("view_range")
        try:
            body = number_lines(text, view_range)
        except errors.ConfigError:
            raise _RefusedError(
                f"Error: Invalid `view_range` parameter: {view_range}. It should be within "
                f"the range of lines of the file: [1, {count}]"
            ) from None
        return f"Here's the content of {target} with line numbers:\n{body}"

    def _create(self, arguments: Mapping[str, Any]) -> str:
        target, path = self._path(arguments, inner=True)
        try:
            self._files.write(path, _text(arguments, "file_text"), if_match="")
        except (errors.VersionConflictError, errors.PathExistsError, errors.IsFolderError):
            raise _RefusedError(f"Error: File {target} already exists") from None
        return f"File created successfully at: {target}"

    def _str_replace(self, arguments: Mapping[str, Any]) -> str:
        target, path = self._path(arguments)
        old, new = _text(arguments, "old_str"), _text(arguments, "new_str", "")
        if not old:
            raise _RefusedError("Error: `old_str` is empty: give the text to replace")
        try:
            self._files.replace(path, old, new)
        except errors.NotUniqueError as error:
            text = self._files.read(path)
            places = sorted({text.count("\n", 0, at) + 1 for at in occurrences(text, old)})
            raise _RefusedError(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
                f"{', '.join(map(str, places))}. Please ensure it is unique"
                if error.count
                else f"No replacement was performed, old_str `{old}` did not appear verbatim in "
                f"{target}."
            ) from None
        text = self._files.read(path)
        position = text.find(new) if new else 0
        return f"The memory file has been edited.\n{_around(text, position, new)}".rstrip("\n")

    def _insert(self, arguments: Mapping[str, Any]) -> str:
        target, path = self._path(arguments)
        line, text = arguments.get("insert_line"), _text(arguments, "insert_text")
        count = len(lines_of(self._files.read(path)))
        if type(line) is not int or not 0 <= line <= count:
            raise _RefusedError(
                f"Error: Invalid `insert_line` parameter: {line}. It should be within the "
                f"range of lines of the file: [0, {count}]"
            )
        self._files.insert(path, line, text)
        return f"The file {target} has been edited."

    def _delete(self, arguments: Mapping[str, Any]) -> str:
        target, path = self._path(arguments, inner=True)
        self._files.delete(path)
        return f"Successfully deleted {target}"

    def _rename(self, arguments: Mapping[str, Any]) -> str:
        old_path, source = self._path(arguments, "old_path", inner=True)
        new_path, target = self._path(arguments, "new_path", inner=True)
        try:
            self._files.move(source, target)
        except errors.PathExistsError:
            raise _RefusedError(f"Error: The destination {new_path} already exists") from None
        return f"Successfully renamed {old_path} to {new_path}"

    def _path(
        self, arguments: Mapping[str, Any], name: str = "path", *, inner: bool = False
    ) -> tuple[str, str]:
        """Return a path as the model gave it, and that of the file."""
        path = _text(arguments, name)
        if path != ROOT and not path.startswith(f"{ROOT}/"):
            raise _RefusedError(f"Error: Path must start with {ROOT}, got: {path}")
        relative = path[len(ROOT) :].strip("/")
        if _ENCODED.search(relative) or ".." in re.split(r"[/\\]", relative):
            raise _RefusedError(f"Error: Path {path} would escape {ROOT} directory")
        if inner and not relative:
            raise _RefusedError(f"Error: This is the {ROOT} directory itself; name a path in it")
        return path, "/".join(filter(None, (self._folder, relative)))


def _rows(tree: FileTree, path: str, depth: int) -> Iterator[str]:
    yield f"{_size(_total(tree))}\t{path}"
    for child in tree.children if depth else ():
        if child.info.name != "node_modules":
            yield from _rows(child, f"{path}/{child.info.name}", depth - 1)


def _total(tree: FileTree) -> int:
    return tree.info.size + sum(map(_total, tree.children))


def _size(count: int) -> str:
    """Format bytes: ``512B``, ``5.5K``, ``1.2M``."""
    if count < 1024:
        return f"{count}B"
    power = min((count.bit_length() - 1) // 10, len(_UNITS))
    return f"{count / 1024**power:.1f}{_UNITS[power - 1]}"


def _around(text: str, position: int, new: str) -> str:
    """Return the changed lines with some before and after, numbered."""
    first = text.count("\n", 0, position) + 1
    last = first + new.count("\n") + _AROUND
    return number_lines(text, (max(1, first - _AROUND), last)) if text else ""


def _text(arguments: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = arguments.get(name)
    value = default if value is None else value
    if not isinstance(value, str):
        raise _RefusedError(f"Error: `{name}` is missing: give a text")
    return value


def _mapping(command: Any) -> Mapping[str, Any]:
    if isinstance(command, str):
        try:
            command = json.loads(command)
        except ValueError:
            raise _RefusedError("Error: the command is not JSON") from None
    if hasattr(command, "model_dump"):
        command = command.model_dump()
    if not isinstance(command, Mapping):
        raise _RefusedError("Error: the command is not an object with a `command`")
    return command
