"""Tools for files."""

import inspect
from collections.abc import Iterable, Iterator
from inspect import Parameter
from typing import Annotated, Any

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field
from pydantic.fields import FieldInfo
from typing_extensions import TypedDict

from kbkit.files.memory_tool import MemoryCommand
from kbkit.mcp.replies import Budget, PartValues, Reply, listing, part_reply, shorten
from kbkit.mcp.tools import Tools, page_type
from kbkit.models import FileInfo, FileTree
from kbkit.retrieval.delimiting import one_line

FilePath = Annotated[str, Field(description="From the root, such as notes/today.md.")]
IfMatch = Annotated[str, Field(description="Version that was read; refused if it changed.")]


class FileRow(TypedDict):
    """A file or a folder."""

    path: str
    kind: str
    size: int
    changed_at: str


class FileText(PartValues):
    """The text of a file, or a part of it."""

    path: str
    version: str


class WrittenFile(TypedDict):
    """A stored file or folder."""

    path: str
    version: str


class MemoryReply(TypedDict):
    """Answer of the tool."""

    note: str
    text: str
    next_cursor: str


def add(tools: Tools) -> None:
    @tools.read(page_type("files", FileRow))
    def kb_list(
        *,
        path: Annotated[str, Field(description="Empty for the root folders.")] = "",
        budget: Budget,
    ) -> Reply:
        """List a folder; kb/ shows the knowledge bases and collections as folders."""
        files = tools.workspace.files
        infos = files.list(path)
        if not path.strip("/ "):  # also knowledge bases and collections
            infos = [
                child
                for info in infos
                for child in ([info, *files.list(info.path)] if info.read_only else [info])
            ]
        return _folder(infos, path=path, budget=budget)

    @tools.read(FileText)
    def kb_read(*, path: FilePath, budget: Budget) -> Reply:
        """Read the text of a file; long ones in parts."""
        files = tools.workspace.files
        info = files.info(path)
        return part_reply(
            files.read(path),
            name=one_line(info.path)[:200],
            heading=f"version: {info.version}",
            values={"path": info.path[:200], "version": info.version},
            budget=budget,
        )

    @tools.read(page_type("files", FileRow))
    def kb_tree(
        *, path: Annotated[str, Field(description="Empty for the root.")] = "", budget: Budget
    ) -> Reply:
        """List everything below a folder."""
        tree = tools.workspace.files.tree(path)
        return _folder(_descendants(tree), path=path, budget=budget)

    @tools.write(WrittenFile, destructive=True, idempotent=True)
    def kb_write(*, path: FilePath, content: str, if_match: IfMatch = "") -> Reply:
        """Write a file, replacing its content."""
        return _write_reply(tools.workspace.files.write(path, content, if_match=if_match or None))

    @tools.write(WrittenFile, destructive=False, idempotent=False)
    def kb_append(*, path: FilePath, content: str, if_match: IfMatch = "") -> Reply:
        """Append text to a file; creates a missing one."""
        return _write_reply(tools.workspace.files.append(path, content, if_match=if_match or None))

    @tools.write(WrittenFile, destructive=False, idempotent=True)
    def kb_mkdir(*, path: FilePath) -> Reply:
        """Create a folder and its parents."""
        return _write_reply(tools.workspace.files.mkdir(path))

    @tools.write(WrittenFile, destructive=True, idempotent=False)
    def kb_delete(*, path: FilePath) -> Reply:
        """Move a file or a folder to the trash, from which a person can restore it."""
        path = tools.workspace.files.delete(path).path
        return Reply(f"{path} is in the trash.", WrittenFile(path=path, version=""))

    def memory(*, budget: Budget, **arguments: Any) -> Reply:
        """Your notes, files below /memories that last: view, create, change, delete, rename."""
        values = {name: value for name, value in arguments.items() if value is not None}
        answer = tools.workspace.files.memory_tool().handle(values)
        if answer.is_error:
            raise ToolError(str(answer))
        if arguments["command"] in ("view", "str_replace"):
            return part_reply(
                answer, name="memory", heading="", values={}, budget=budget, numbered=False
            )
        text = shorten(answer, budget.room // 2 - 40)
        return Reply(text, MemoryReply(note="", text=text, next_cursor=""))

    budget = inspect.signature(memory).parameters["budget"]
    parameters = [_parameter(name, field) for name, field in MemoryCommand.model_fields.items()]
    memory.__signature__ = inspect.Signature([*parameters, budget])  # type: ignore[attr-defined]
    tools.write(MemoryReply, destructive=True, idempotent=False)(memory)


def _parameter(name: str, field: FieldInfo) -> Parameter:
    default = Parameter.empty if field.is_required() else field.default
    info = Field(description=field.description)
    annotation = Annotated[field.annotation, info, *field.metadata]  # type: ignore[name-defined]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _descendants(tree: FileTree) -> Iterator[FileInfo]:
    for child in tree.children:
        yield child.info
        yield from _descendants(child)


def _write_reply(info: FileInfo) -> Reply:
    version = f" Its version is {info.version}." if info.version else ""
    values = WrittenFile(path=info.path, version=info.version)
    return Reply(f"{info.path} is stored.{version}", values)


def _folder(infos: Iterable[FileInfo], *, path: str, budget: Budget) -> Reply:
    name = one_line(path)[:200] or "the root"
    nothing = f"Nothing is in {name}."
    return listing(
        map(_row, infos), name="files", above=f"In {name}: ", nothing=nothing, budget=budget
    )


def _row(info: FileInfo) -> tuple[str, FileRow]:
    line, day = one_line(info.path), f"{info.changed_at:%Y-%m-%d}"
    line += "/" if info.is_folder else f" ({info.size:,} bytes, {day})"
    return line, FileRow(path=info.path, kind=info.kind.value, size=info.size, changed_at=day)
