"""Tool sets, and objects that tools share."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError
from typing_extensions import TypedDict

from kbkit.errors import KbkitError, PathOutsideError
from kbkit.mcp import MIN_TOKENS, USUAL_TOKENS, replies
from kbkit.models.server import ALL, Caller, Scope
from kbkit.models.values import fault_reason
from kbkit.runtime.validation import check_integer

if TYPE_CHECKING:
    from kbkit.mcp.replies import Budget, Reply
    from kbkit.models import KnowledgeBaseInfo
    from kbkit.workspace import Workspace


Cursor = Annotated[str, Field(description="next_cursor of the previous answer.")]
Limit = Annotated[int, Field(ge=1, le=50)]
MaxTokens = Annotated[
    int,
    Field(
        ge=0,
        description=f"Of the answer, {MIN_TOKENS} to the server's limit (usually "
        f"{USUAL_TOKENS:,}); 0: the limit.",
    ),
]
Score = Annotated[int, Field(ge=1, le=5)]


current_caller: ContextVar[Caller] = ContextVar("current_caller", default=ALL)
"""Caller of the current message."""


_Tool = TypeVar("_Tool", bound="Callable[..., Reply]")
_PAGING = [
    Parameter("max_tokens", Parameter.KEYWORD_ONLY, default=0, annotation=MaxTokens),
    Parameter("cursor", Parameter.KEYWORD_ONLY, default="", annotation=Cursor),
]


@dataclass(frozen=True, slots=True)
class Declared:
    """A tool; `of_kbs` permits it to callers limited to some knowledge bases."""

    tool: Tool
    scope: Scope
    of_kbs: bool

    def allows(self, caller: Caller) -> bool:
        return self.scope in caller.scopes and (self.of_kbs or not caller.kbs)

    def check(self, caller: Caller) -> None:
        caller.require(self.scope)
        if not self.of_kbs:
            caller.require_all_kbs()


@dataclass
class Tools:
    """Registers the tools of a server, with the objects they need."""

    _open: Callable[[], Workspace]
    max_tokens: int
    allow_write: bool
    roots: Sequence[Path]
    _searches: Any
    declared: dict[str, Declared] = field(default_factory=dict)
    withheld: set[str] = field(default_factory=set)
    _opened: Workspace | None = None
    _opening: threading.Lock = field(default_factory=threading.Lock)
    of_kbs: bool = False
    """`Declared.of_kbs` of the tools that are declared next."""

    def __post_init__(self) -> None:
        self.max_tokens = check_integer("max_tokens", self.max_tokens, MIN_TOKENS)
        self.roots = [root.expanduser().resolve() for root in self.roots]

    def read(self, shape: type) -> Callable[[_Tool], _Tool]:
        """Declare a tool that changes nothing, with the type of its values."""
        return self.write(shape, destructive=False, idempotent=True, scope=Scope.READ)

    def write(
        self, shape: type, *, destructive: bool, idempotent: bool, scope: Scope = Scope.WRITE
    ) -> Callable[[_Tool], _Tool]:
        """Declare a tool; read-only servers withhold those that change something."""
        hints = ToolAnnotations(
            read_only_hint=scope is Scope.READ,
            destructive_hint=destructive,
            idempotent_hint=idempotent,
            open_world_hint=False,
        )

        def declare(function: _Tool) -> _Tool:
            if scope is not Scope.READ and not self.allow_write:
                self.withheld.add(function.__name__)
                return function
            tool = Tool.from_function(self._wrap(function, shape), annotations=hints)
            model = tool.fn_metadata.arg_model
            model.model_config["extra"] = "forbid"  # report misspelt arguments
            model.model_rebuild(force=True)
            tool.parameters = _without_titles(model.model_json_schema(by_alias=True))
            if (schema := tool.fn_metadata.output_schema) is not None:
                tool.fn_metadata.output_schema = _without_titles(schema)
            self.declared[tool.name] = Declared(tool, scope, self.of_kbs)
            return function

        return declare

    def _wrap(self, function: _Tool, shape: type) -> Callable[..., CallToolResult]:
        """Return a function with the signature of a tool; `budget` becomes two arguments."""
        signature = inspect.signature(function, eval_str=True)
        parameters = dict(signature.parameters)
        paged = parameters.pop("budget", None) is not None
        if paged:
            parameters |= {parameter.name: parameter for parameter in _PAGING}

        @wraps(function)
        def call(**arguments: Any) -> CallToolResult:
            if paged:
                max_tokens, cursor = arguments.pop("max_tokens"), arguments.pop("cursor")
                arguments["budget"] = self.budget(max_tokens, cursor)
            reply = function(**arguments)
            text = TextContent(type="text", text=reply.text)
            return CallToolResult(content=[text], structured_content=dict(reply.values))

        result = Annotated[CallToolResult, shape]
        call.__signature__ = signature.replace(  # type: ignore[attr-defined]  # the SDK reads it
            parameters=list(parameters.values()), return_annotation=result
        )
        return call

    @property
    def workspace(self) -> Workspace:
        """The workspace, opened on first use."""
        with self._opening:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    @property
    def searches(self) -> Any:
        """Runs `search` and `context`: the workspace, or other processes."""
        return self._searches or self.workspace

    def budget(self, max_tokens: int, cursor: str = "") -> Budget:
        """Return the budget of an answer; 0 takes the server's default."""
        return replies.Budget.of(max_tokens, self.max_tokens, cursor)

    def kbs(self, kb_name: str) -> list[str] | None:
        """Return the knowledge bases to search; ``None`` for all."""
        return current_caller.get().restrict([kb_name] if kb_name else None)

    def list(self) -> list[KnowledgeBaseInfo]:
        """List the knowledge bases that the caller may see."""
        infos = {info.name: info for info in self.workspace.list()}
        return [infos[name] for name in current_caller.get().visible(infos)]

    def rooted_path(self, path: str) -> tuple[Path, Path]:
        """Resolve a path, and return it with its allowed root."""
        roots = (self.workspace.files.path.resolve(), *self.roots)
        for start in roots:
            try:
                resolved = (start / path).resolve(strict=True)
            except (OSError, ValueError, RuntimeError):
                continue
            for root in roots:
                if resolved.is_relative_to(root):
                    return resolved, root
        raise PathOutsideError(
            f"{path[:200]}: is neither in the files nor below a folder that `--root` allows"
        )


def page_type(name: str, row: type) -> type:
    """Return the type of a page of a list."""
    return TypedDict("Listed", {"note": str, name: list[row], "next_cursor": str})  # type: ignore[operator, valid-type]


def _without_titles(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: {key: _without_titles(inner) for key, inner in value.items()}
        if name in ("properties", "$defs")
        else _without_titles(value)
        for name, value in schema.items()
        if name != "title"
    }


MAX_TOKENS = 400
"""Maximum tokens of an error."""


def reason(error: BaseException) -> str:
    """Return the cause of an error, without private details."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KbkitError):
        cause = cause.__cause__
    return replies.problem_text(cause or error, MAX_TOKENS)


def explain_error(name: str, error: Exception, declared: Mapping[str, Declared], limit: int) -> str:
    """Explain a failed call within a number of tokens."""
    cause, limit = error.__cause__, min(limit, MAX_TOKENS)
    if isinstance(cause, ValidationError):
        properties = declared[name].tool.parameters
        message = f"{name}: " + "; ".join(
            _fault(fault, properties)
            for fault in cause.errors(include_url=False, include_input=False, include_context=False)
        )
        return replies.shorten(message, limit)
    return replies.problem_text(cause if isinstance(cause, KbkitError) else error, limit)


def _fault(fault: Any, schema: dict[str, Any]) -> str:
    path = [str(part) for part in fault["loc"]]
    if fault["type"] != "extra_forbidden":
        return f"{'.'.join(path)}: {fault_reason(fault)}"
    fields = schema["properties"]
    if path[:-1]:  # within filters
        fields = schema["$defs"]["ConditionValues"]["properties"]
    return f"{'.'.join(path)[:80]}: is unknown; there are {', '.join(fields)}"
