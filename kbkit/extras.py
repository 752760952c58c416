"""Errors for missing extras, with the command that installs them.

A module imports the packages of an extra inside `extra`, so that the rest of kbkit works without.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from kbkit.errors import MissingExtraError

Extra = Literal[
    "panels",
    "site",
    "office",
    "plots",
    "browser",
    "firecrawl",
    "multilingual",
    "lab",
    "server",
    "mcp",
    "postgres",
    "dask",
    "sign",
    "parquet",
]


@contextmanager
def extra(name: Extra, package: str, ability: str) -> Iterator[None]:
    """Convert import errors of an optional package in the block.

    ::

        with extra("office", "mammoth", "Reading DOCX files"):
            import mammoth
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "kbkit":
            raise  # a bug in kbkit
        raise missing(name, package, ability) from error


@contextmanager
def whole(ability: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package == "kbkit":
            raise  # a bug in kbkit
        message = f"{ability} needs {package}, which comes with all of kbkit: pip install kbkit"
        raise MissingExtraError(message) from error


def missing(name: Extra, package: str, ability: str) -> MissingExtraError:
    return MissingExtraError(f'{ability} needs {package}: pip install "kbkit[{name}]"')
