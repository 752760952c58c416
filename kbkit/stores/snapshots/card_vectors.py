"""Vectors of the cards of documents, as they came, with their codes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.snapshots.codes import VectorCodes, load


@dataclass(frozen=True, slots=True)
class CardVectors:
    """Vectors of cards that came behind the segments which have their documents.

    Attributes:
        version: ``knowledge_bases.cards_version`` that they show.
        embedder: Fingerprint of what made them.
        numbers: Of the documents.
        vectors: Zeros for a document without a card.
        coded: The file of their codes; ``None`` where no file keeps the vectors.
        kept: What was read of that.
    """

    version: int
    embedder: str
    numbers: NDArray[np.int32]
    vectors: NDArray[np.float32]
    coded: Path | None = None
    kept: dict[str, Any] = field(repr=False, compare=False, default_factory=dict)

    def codes(self) -> VectorCodes | None:
        """Their codes; ``None`` where no file has them."""
        if "card codes" not in self.kept:
            self.kept["card codes"] = None if self.coded is None else load(self.coded, self.vectors)
        found: VectorCodes | None = self.kept["card codes"]
        return found

    def forget_codes(self) -> None:
        """Read them anew."""
        self.kept.pop("card codes", None)
