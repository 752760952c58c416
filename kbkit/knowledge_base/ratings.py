"""The ratings of a knowledge base: an append-only log and its summary."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from kbkit.errors import NotFoundError
from kbkit.feedback.rating import rate, unrate
from kbkit.frames import collection_html, ratings_frame
from kbkit.knowledge_base.handle import Handle
from kbkit.models import Rating, RatingTotal, Target
from kbkit.stores.catalog import ratings
from kbkit.validation import check_integer, explained

if TYPE_CHECKING:
    import pandas as pd


@explained
class Ratings:
    """The ratings of a knowledge base, oldest first.

    Iterating gives them, ``len`` counts them, ``kb.ratings[id]`` looks one up.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._database = handle.stores.database

    def __iter__(self) -> Iterator[Rating]:
        with self._database.read() as transaction:
            yield from ratings.listed(transaction, self._handle.id)

    def __len__(self) -> int:
        with self._database.read() as transaction:
            return ratings.extent(transaction, self._handle.id)[1]

    def __getitem__(self, rating_id: int) -> Rating:
        found = next((rating for rating in self if rating.id == rating_id), None)
        if found is None:
            raise NotFoundError(f"{self._handle.name}: has no rating with id {rating_id!r}")
        return found

    def __contains__(self, rating_id: object) -> bool:
        return any(rating.id == rating_id for rating in self)

    def list(self, *, after: int = 0, limit: int | None = None) -> list[Rating]:
        """Ratings, oldest first.

        Args:
            after: Only ratings after this id.
            limit: Most ratings; by default all.

        Raises:
            ConfigError: The limit is wrong.
        """
        if limit is not None:
            check_integer("limit", limit, 1)
        return list(islice((rating for rating in self if rating.id > after), limit))

    def add(
        self, target: str | Target, score: int, *, query: str = "", note: str = "", rater: str = ""
    ) -> Rating:
        """Rate a chunk or a document. Ratings are appended; the last of a rater counts.

        Args:
            target: A chunk or a document: its id, or the URI of a document.
            score: 1 (useless) to 5 (exactly right).
            query: The query that found it, if any.
            note: A note.
            rater: Name of the rater; by default ``KBKIT_RATER`` or the login name.

        Raises:
            ConfigError: The score is not 1 to 5.
            NotFoundError: There is no such chunk or document.
        """
        rater = self._handle.resources.settings.rater if rater == "" else rater
        found = self._handle.target(target)
        rating = rate(
            self._database, self._handle.id, found, score, query=query, rater=rater, note=note
        )
        self._handle.embed_questions()
        return rating

    def delete(self, rating_id: int) -> None:
        """Delete a mistaken rating; the one before it counts again.

        Args:
            rating_id: The ``id`` of the rating that `KnowledgeBase.rate` returned.

        Raises:
            NotFoundError: There is no such rating.
        """
        unrate(self._database, self._handle.id, rating_id)
        self._handle.embed_questions()

    def of(self, target: str | Target) -> builtins.list[Rating]:
        """The ratings of one chunk or document, oldest first, also of one that is gone.

        Args:
            target: Its id, or the URI of a document.

        Raises:
            NotFoundError: There is and was no such chunk or document.
        """
        return self._handle.ratings_of([self._handle.target(target, rated=True).id])

    def total(self, target: str | Target) -> RatingTotal | None:
        """Average and number of the ratings of a chunk or a document; ``None`` without any.

        Args:
            target: Its id, or the URI of a document.

        Raises:
            NotFoundError: There is and was no such chunk or document.
        """
        found = self._handle.target(target, rated=True)
        with self._database.read() as transaction:
            return ratings.total(transaction, self._handle.id, found.id)

    def to_frame(self) -> pd.DataFrame:
        """Return all ratings as a DataFrame, oldest first, indexed by id.

        ``average`` and ``raters`` tell what all ratings of the same chunk or document come to.
        """
        return ratings_frame(self)

    def __repr__(self) -> str:
        return f"<{len(self):,} ratings of {self._handle.name!r}>"

    def _repr_html_(self) -> str:
        return collection_html(repr(self)[1:-1], Rating, self)
