"""Common arguments of tools."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kbkit.mcp.options import USUAL_TOKENS
from kbkit.mcp.replies import MIN_TOKENS

Cursor = Annotated[str, Field(description="next_cursor of the answer before.")]
Limit = Annotated[int, Field(ge=1, le=50)]
MaxTokens = Annotated[
    int,
    Field(
        ge=0,
        description=f"Of the answer: {MIN_TOKENS} to the server's most (usual: "
        f"{USUAL_TOKENS:,}); 0: that.",
    ),
]
Score = Annotated[int, Field(ge=1, le=5)]
