"""Arguments that several tools take."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Cursor = Annotated[str, Field(description="next_cursor of the answer before.")]
Limit = Annotated[int, Field(ge=1, le=50)]
MaxTokens = Annotated[int, Field(ge=0, description="Of the answer; 0: the usual 2,500.")]
Score = Annotated[int, Field(ge=1, le=5)]
