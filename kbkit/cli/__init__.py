"""The command line: translates arguments, calls a workspace, prints what comes back.

Exit codes: 0 done; 1 an error that the message explains; 2 the command was used wrongly;
3 the work was done, but some source gave nothing at all; 4 an evaluation fell below its floor;
130 interrupted.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import NoReturn

from kbkit.cli import (
    config,
    entries,
    files,
    graph,
    graph_edits,
    kept_sources,
    manage,
    mcp,
    migrate,
    models,
    publish,
    query,
    recipes,
    serve,
    subjects,
    trash,
)
from kbkit.cli.app import EXIT_BELOW_FLOOR, EXIT_ERROR, EXIT_NOTHING_READ, app, name_values
from kbkit.errors import KbkitError
from kbkit.terminal import complain, to_options

__all__ = [
    "EXIT_BELOW_FLOOR",
    "EXIT_ERROR",
    "EXIT_NOTHING_READ",
    "app",
    "config",
    "entries",
    "files",
    "graph",
    "graph_edits",
    "kept_sources",
    "main",
    "manage",
    "mcp",
    "migrate",
    "models",
    "publish",
    "query",
    "recipes",
    "serve",
    "subjects",
    "trash",
]  # modules bring the commands

name_values(app)


def main() -> NoReturn:
    """Run the command line; an error becomes one clear message."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # no text of a page may end the command
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except KbkitError as error:
        complain(f"kbkit: {to_options(str(error))}")
        sys.exit(EXIT_ERROR)
    except BrokenPipeError:  # the reader of a pipe went away, as `head` does
        sys.stderr.close()
        sys.exit(EXIT_ERROR)
    except OSError as error:  # a full disk, say
        complain(f"kbkit: {error}")
        sys.exit(EXIT_ERROR)
    sys.exit(0)
