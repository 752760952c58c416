"""The OpenAPI document: exact, down to what only middleware answers."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from kbkit.rest.problems import ProblemDetails


def describe(app: FastAPI) -> None:
    """Have an application tell its document with the problems that any request may meet."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(
                title=app.title,
                version=app.version,
                summary=app.summary,
                routes=app.routes,
                separate_input_output_schemas=app.separate_input_output_schemas,
            )
            schemas = made.setdefault("components", {}).setdefault("schemas", {})
            schemas["ProblemDetails"] = ProblemDetails.model_json_schema()
            for path in made["paths"].values():
                for operation in path.values():
                    _tell_problems(operation)
                    for parameter in operation.get("parameters", ()):
                        if parameter["name"] == "if-match":  # what HTTP says of it is known
                            parameter["schema"] = {"type": "string"}
                        _leave_out_null(parameter["schema"])
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            _name_types(made, schemas)
            for name, shape in schemas.items():
                if name.startswith("Body_"):
                    for field in shape["properties"].values():
                        _leave_out_null(field)
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # as FastAPI's guide has it


def _tell_problems(operation: dict[str, Any]) -> None:
    """Say of an operation what kbkit answers to wrong requests, instead of FastAPI's shape."""
    told = operation.get("responses", {}).get("422")
    if told and "application/json" in told.get("content", {}):
        operation["responses"]["422"] = {
            "description": "Not as it has to be",
            "content": {
                "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/ProblemDetails"}
                }
            },
        }


_IMPLIED = ("rules",)
"""Types that a mapping without one is of."""


def _name_types(part: Any, schemas: dict[str, Any]) -> None:
    """Say that what is one of several kinds names its kind, as pydantic wants it."""
    if isinstance(part, list):
        for each in part:
            _name_types(each, schemas)
    elif isinstance(part, dict):
        key = part["discriminator"]["propertyName"] if "discriminator" in part else None
        for each in part.get("oneOf", ()) if isinstance(key, str) else ():
            shape = schemas[each["$ref"].rpartition("/")[2]]
            required = shape.setdefault("required", [])
            if key not in required and shape["properties"][key].get("const") not in _IMPLIED:
                required.append(key)
        for each in part.values():
            _name_types(each, schemas)


def _leave_out_null(field: dict[str, Any]) -> None:
    """Say that a field of a form or an address is left out where there is nothing to say of it."""
    kinds = [each for each in field.get("anyOf", ()) if each != {"type": "null"}]
    if len(kinds) == 1:
        del field["anyOf"]
        field.update(kinds[0])
