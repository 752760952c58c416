"""Serve over standard input and output."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kbkit.extras import missing
from kbkit.mcp.early import EarlyAnswers, EarlyStdio
from kbkit.mcp.options import USUAL_TOKENS

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
    if find_spec("mcp") is None:  # before anything is answered
        raise missing("mcp", "mcp", "Serving MCP")
    wire = EarlyStdio(EarlyAnswers(sets, allow_write=allow_write))
    import anyio

    from kbkit.mcp.server import server

    opened: list[Workspace] = []

    def open_workspace() -> Workspace:
        from kbkit.workspace import Workspace

        opened.append(Workspace(workspace))
        return opened[0]

    made = server(
        open_workspace, tools=sets, allow_write=allow_write, max_tokens=max_tokens, roots=roots
    )
    try:
        wire.hand_over()
        anyio.run(made.run_on, wire.stdin, wire.stdout)
    finally:
        for each in opened:
            each.close()
