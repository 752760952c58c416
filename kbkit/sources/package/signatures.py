"""How functions and classes are called, as source code says it."""

from __future__ import annotations

from typing import Any

_WIDE = 88  # characters of a signature before each parameter gets its line


def signature(path: str, item: Any) -> str:
    """How a function or class is called, one parameter a line where it is long."""
    try:
        parameters = list(item.parameters)
    except Exception:  # a class whose constructor comes from elsewhere
        parameters = []
    if parameters and parameters[0].name in ("self", "cls", "mcs"):
        parameters = parameters[1:]
    written: list[str] = []
    starred = False
    for index, parameter in enumerate(parameters):
        kind = parameter.kind.value if parameter.kind else ""
        if kind == "variadic positional":
            starred = True
        if kind == "keyword-only" and not starred:
            written.append("*")
            starred = True
        written.append(_parameter(parameter, kind))
        following = parameters[index + 1] if index + 1 < len(parameters) else None
        if kind == "positional-only" and (
            following is None or not following.kind or following.kind.value != kind
        ):
            written.append("/")
    returns = getattr(item, "returns", None)
    end = f" -> {returns}" if item.is_function and returns else ""
    line = f"{path}({', '.join(written)}){end}"
    if len(line) <= _WIDE:
        return line
    inner = "".join(f"    {part},\n" for part in written)
    return f"{path}(\n{inner}){end}"


def _parameter(parameter: Any, kind: str) -> str:
    stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
    text = stars + parameter.name
    if parameter.annotation:
        text += f": {parameter.annotation}"
    if parameter.default is not None and not stars:
        text += f" = {parameter.default}" if parameter.annotation else f"={parameter.default}"
    return str(text)
