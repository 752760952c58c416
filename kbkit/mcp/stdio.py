"""Serve over standard input and output."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from kbkit.extras import missing
from kbkit.mcp import USUAL_TOKENS

if TYPE_CHECKING:
    from kbkit.workspace import Workspace


def serve(
    workspace: Path | None,
    sets: Sequence[str],
    *,
    allow_write: bool = False,
    max_tokens: int = USUAL_TOKENS,
    roots: Sequence[Path] = (),
) -> None:
    """Serve until the input ends."""
    if find_spec("mcp") is None:
        raise missing("mcp", "mcp", "Serving MCP")
    stdin, stdout = _reserve_streams()
    import anyio

    from kbkit.mcp.server import server

    with ExitStack() as stack:

        def open_workspace() -> Workspace:
            from kbkit.workspace import Workspace

            return stack.enter_context(Workspace(workspace))

        mcp_server = server(
            open_workspace, tools=sets, allow_write=allow_write, max_tokens=max_tokens, roots=roots
        )
        anyio.run(mcp_server.run_on, stdin, stdout)


def _reserve_streams() -> tuple[TextIO, TextIO]:
    """Reserve both streams: other readers find nothing, other prints go to standard error."""
    own_input, own_output = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    os.dup2(2, 1)
    stdin = os.fdopen(own_input, encoding="utf-8", errors="replace")
    return stdin, os.fdopen(own_output, "w", encoding="utf-8")
