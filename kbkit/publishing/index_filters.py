"""Which chunks of a published index filters let through, as browsers tell it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.errors import ConfigError
from kbkit.export.index.annotations import KINDS
from kbkit.export.index.packing import Integers, decode_varints
from kbkit.export.index.terms import utf16_key
from kbkit.models import DocumentState, Filters, SubjectKind
from kbkit.text.subject_keys import subject_key

Mask = NDArray[np.bool_]

_TOLD = frozenset(
    {"document_type", "tags", "min_rating", "after", "state", "frame", "subject", "entity"}
)
"""Conditions that a published index can tell."""


class IndexFilters:
    """The filters of one index.

    Args:
        core: What the index knows of all chunks.
        owners: The document of each chunk.
        shard: Gives what a shard holds, by name.
    """

    def __init__(
        self,
        core: Mapping[str, Any],
        owners: Integers,
        shard: Callable[[str], Mapping[str, Any]],
    ) -> None:
        self._core, self._owners, self._shard = core, owners, shard

    def mask(self, filters: Filters) -> Mask | None:
        """Which chunks filters let through; ``None`` where there are none.

        Raises:
            ConfigError: The index cannot tell a condition.
        """
        if not filters:
            return None
        for field in fields(filters):
            if field.name not in _TOLD and getattr(filters, field.name) not in ((), "", None):
                known = ", ".join(sorted(_TOLD))
                raise ConfigError(
                    f"filters: a published index cannot tell {field.name}; it has {known}"
                )
        mask = self._documents(filters)[self._owners]
        if filters.frame:
            mask = mask & self._saying([frame.value for frame in filters.frame])
        for name in filters.subject:
            mask = mask & self._speaking(name, KINDS)
        for name in filters.entity:
            mask = mask & self._speaking(name, [SubjectKind.ENTITY])
        return mask

    def _documents(self, filters: Filters) -> Mask:
        core = self._core
        days = decode_varints(core["days"])
        mask = np.ones(len(days), np.bool_)
        if filters.document_type:
            wanted = [core["kinds"].index(kind) for kind in filters.document_type
                      if kind in core["kinds"]]  # fmt: skip
            mask &= np.isin(decode_varints(core["kind"]), wanted)
        for tag in filters.tags:
            number = core["tags"].index(tag) if tag in core["tags"] else -1
            mask &= np.array([number in held for held in core["tag"]] or [False] * len(mask))
        if filters.min_rating is not None:
            ratings = np.zeros(len(mask))
            for owner, rating in core["ratings"]:
                ratings[owner] = rating
            mask &= ratings >= filters.min_rating
        if filters.after is not None:
            epoch = datetime(1970, 1, 1, tzinfo=UTC)
            after = filters.after if filters.after.tzinfo else filters.after.replace(tzinfo=UTC)
            midnight = datetime.combine(after.astimezone(UTC).date(), time(), UTC)
            mask &= days >= (midnight - epoch).days
        if filters.state:
            stale = np.isin(np.arange(len(mask)), core["stale"])
            states = {DocumentState.STALE: stale, DocumentState.CURRENT: ~stale}
            mask &= np.any(
                [states.get(state, np.zeros_like(stale)) for state in filters.state], axis=0
            )
        return mask

    def _saying(self, frames: Sequence[str]) -> Mask:
        """Which chunks make a statement of one of some frames."""
        if "frames" not in self._core:
            return np.zeros(len(self._owners), np.bool_)
        about = self._shard("a")
        bits = sum(1 << place for place, name in enumerate(about["frames"]) if name in frames)
        return np.asarray(decode_varints(about["f"]) & bits > 0)

    def _speaking(self, name: str, kinds: Sequence[SubjectKind]) -> Mask:
        """Which chunks speak of a subject of one of some kinds."""
        mask = np.zeros(len(self._owners), np.bool_)
        if "frames" not in self._core:
            return mask
        firsts = [utf16_key(first) for first in self._shard("a")["firsts"]]
        keys = {(subject_key(kind, name), KINDS.index(kind)) for kind in kinds}
        for wanted, kind in keys:
            number = bisect_right(firsts, utf16_key(wanted)) - 1
            if number < 0:
                continue
            values = self._shard(f"s/{number}")
            ends = np.cumsum([0, *values["n"]])
            postings = decode_varints(values["p"])
            for place, key in enumerate(values["k"]):
                if key == wanted and values["d"][place] == kind:
                    mask[np.cumsum(postings[ends[place] : ends[place + 1]])] = True
        return mask
