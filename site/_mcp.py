"""The generated parts of the guide to MCP."""

from __future__ import annotations

import json
from typing import Any

import anyio

from kbkit.embedding.static import count_tokens
from kbkit.mcp import SETS
from kbkit.mcp.server import server
from kbkit.workspace import Workspace

_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
}


def sets() -> str:
    """The sets of tools, and what listing them costs a model."""
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
    """Each tool with its arguments."""
    parts = []
    for name, found in _tools().items():
        parts.append(f"### {name}: {SETS[name]}")
        parts += [_tool(tool) for tool in found]
    return "\n\n".join(parts)


def _tool(tool: dict[str, Any]) -> str:
    hints = tool["annotations"]
    kind = "reads" if hints["readOnlyHint"] else "writes"
    kind += ", may delete or replace" if hints["destructiveHint"] else ""
    schema = tool["inputSchema"]
    required = schema.get("required", [])
    rows = [
        f"| `{name}` | {_type(each)} | {_default(name, each, required)} | {_about(each)} |"
        for name, each in schema["properties"].items()
    ]
    head = f"#### `{tool['name']}`\n\n{tool['description']} *({kind})*"
    if not rows:
        return head
    table = ["| Argument | Type | Default | |", "| --- | --- | --- | --- |", *rows]
    return "\n".join([head, "", *table])


def _about(field: dict[str, Any]) -> str:
    bounds = [f"{field['minimum']} to {field['maximum']}"] if "maximum" in field else []
    return "; ".join([*bounds, *([field["description"]] if "description" in field else [])])


def _type(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_type(each) for each in field["anyOf"] if each.get("type") != "null")
    if "$ref" in field:
        return "conditions"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    return _TYPES.get(field.get("type", ""), "object")


def _default(name: str, field: dict[str, Any], required: list[str]) -> str:
    value = field.get("default")
    if name in required:
        return "required"
    return "" if value in (None, "", []) else f"`{json.dumps(value)}`"


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
