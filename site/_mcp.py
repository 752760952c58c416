"""Generate the lists of tools in the guide to MCP."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import anyio

from kbkit.embedding.static import count_tokens
from kbkit.mcp import SETS
from kbkit.mcp.server import server
from kbkit.workspace import Workspace

SHARED_BY = 3
"""Tools that share an argument before the guide describes it once."""


def sets() -> str:
    """Return a table of the sets of tools, with the tokens that listing them costs."""
    rows = ["| Set | For | Reading tools | Tokens | With `--allow-write` | Tokens |"]
    rows.append("| --- " * 6 + "|")
    found = _tools()
    every = [tool for each in found.values() for tool in each]
    for name, tools in [*found.items(), ("all", every)]:
        reading = [tool for tool in tools if tool["annotations"]["readOnlyHint"]]
        rows.append(
            f"| `{name}` | {SETS.get(name, 'all of them')} | {len(reading)} | {_tokens(reading):,} "
            f"| {len(tools)} | {_tokens(tools):,} |"
        )
    return "\n".join(rows)


def tools() -> str:
    """Return each tool with its arguments; shared ones are described once."""
    found = _tools()
    arguments = {
        tool["name"]: [_argument(name, each, tool) for name, each in _properties(tool).items()]
        for tools in found.values()
        for tool in tools
    }
    count = Counter(each for items in arguments.values() for each in items)
    shared = [each for each in count if count[each] >= SHARED_BY and ": " in each]
    parts = ["Several tools have these arguments:", "\n".join(shared)]
    for name, tools in found.items():
        parts.append(f"### {name}: {SETS[name]}")
        for tool in tools:
            items = arguments[tool["name"]]
            also = [each.split()[1].rstrip(":") for each in items if each in shared]
            hints = tool["annotations"]
            kind = "" if hints["readOnlyHint"] else " *Writes.*"
            kind = " *May delete or replace.*" if hints["destructiveHint"] else kind
            own = [each for each in items if each not in shared]
            own += [f"- Also {', '.join(also)}."] if also else []
            parts.append("\n".join([f"`{tool['name']}`: {tool['description']}{kind}", "", *own]))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _properties(tool: dict[str, Any]) -> Any:
    return tool["inputSchema"]["properties"]


def _argument(name: str, field: dict[str, Any], tool: dict[str, Any]) -> str:
    required = name in tool["inputSchema"].get("required", [])
    value = field.get("default")
    facts = [_type(field)] + (["required"] if required else [])
    facts += [f"{field['minimum']} to {field['maximum']}"] if "maximum" in field else []
    facts += [] if value in (None, "", []) else [f"default `{json.dumps(value)}`"]
    about = f": {field['description']}" if "description" in field else ""
    return f"- `{name}` ({', '.join(facts)}){about}"


def _type(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_type(each) for each in field["anyOf"] if each.get("type") != "null")
    if "$ref" in field:
        return "conditions"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    kind = str(field.get("type", "object"))
    return "text" if kind == "string" else kind


def _tools() -> dict[str, list[dict[str, Any]]]:
    return {
        name: [
            tool.model_dump(mode="json", by_alias=True, exclude_none=True)
            for tool in anyio.run(server(Workspace, tools=[name], allow_write=True).list_tools)
        ]
        for name in SETS
    }


def _tokens(tools: list[dict[str, Any]]) -> int:
    return count_tokens(json.dumps({"tools": tools}, ensure_ascii=False))
