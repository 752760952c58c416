"""SQL functions with different names in different databases."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler


class place_of(sa.sql.functions.GenericFunction[int]):  # noqa: N801 - a function of SQL
    """``(text, part)``: 1-based position of a part in a text; 0 if absent."""

    type = sa.Integer()
    inherit_cache = True


class byte_length(sa.sql.functions.GenericFunction[int]):  # noqa: N801 - likewise
    """Number of bytes of a text in UTF-8."""

    type = sa.Integer()
    inherit_cache = True


class json_of(sa.sql.functions.GenericFunction[Any]):  # noqa: N801 - likewise
    """JSON text in the database's own JSON type."""

    type = sa.JSON()
    inherit_cache = True


@compiles(place_of)
def _place_of(element: place_of, compiler: SQLCompiler, **options: Any) -> str:
    name = "strpos" if compiler.dialect.name == "postgresql" else "instr"
    return f"{name}{compiler.process(element.clause_expr, **options)}"


@compiles(byte_length)
def _byte_length(element: byte_length, compiler: SQLCompiler, **options: Any) -> str:
    text = compiler.process(element.clause_expr, **options)
    if compiler.dialect.name == "postgresql":
        return f"octet_length{text}"
    return f"length(CAST({text} AS BLOB))"


@compiles(json_of)
def _json_of(element: json_of, compiler: SQLCompiler, **options: Any) -> str:
    text = compiler.process(element.clause_expr, **options)
    return f"CAST({text} AS JSON)" if compiler.dialect.name == "postgresql" else text
