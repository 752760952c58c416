"""Progress and reports of ingests, and the work that they leave for models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from kbkit.models.documents import DocumentInfo
from kbkit.models.values import Problem, Value, pluralize

MAX_DOCUMENTS = 1_000
"""Maximum documents in a report."""
_PROBLEMS = 100
"""Maximum failed and skipped items each in the progress of an ingest."""
_MAX_POOR_PAGES = 10
"""Maximum poorly read pages in a report."""


@dataclass(frozen=True, slots=True)
class Progress(Value):
    """Progress of long work, for ``on_progress`` callbacks.

    Attributes:
        stage: ``crawl``, ``store``, ``embed``, ``summaries``, ``expand``, ``index``, ``evaluate``,
            ``candidates`` and ``tune`` (of `KnowledgeBase.tune`), ``export`` or ``site``; ``copy``
            and ``check`` (rows of `kbkit.migrate`).
        total: ``None`` if unknown.
        message: Current item.
        so_far: Report of the running ingest, if there is one.
    """

    stage: str
    done: int
    total: int | None = None
    message: str = ""
    so_far: IngestReport | None = None

    def brief(self) -> Progress:
        """Return the progress with the last problems of its report only."""
        if self.so_far is None:
            return self
        report = replace(
            self.so_far,
            documents=(),
            poorly_read=(),
            notes=(),
            warnings=(),
            failed=self.so_far.failed[-_PROBLEMS:],
            skipped=self.so_far.skipped[-_PROBLEMS:],
        )
        return replace(self, so_far=report)


@dataclass(frozen=True, slots=True)
class Improvement(Value):
    """Work left for embedding models; static vectors serve searches until then.

    Attributes:
        summaries: Documents with a summary to embed.
        chunks: Chunks to embed with the model of the recipe.
        annotations: Chunks to annotate.
        seconds: Estimated from a few texts; 0 if none were embedded.
        megabytes: Size of the vectors in memory; 0 if not estimated.
        running: Whether a process is doing it.
    """

    summaries: int = 0
    chunks: int = 0
    seconds: float = 0.0
    megabytes: float = 0.0
    running: bool = False
    annotations: int = 0

    def __bool__(self) -> bool:
        return bool(self.summaries or self.chunks or self.annotations)

    def __str__(self) -> str:
        counts = ((self.summaries, "summary"), (self.chunks, "chunk"))
        amounts = [pluralize(number, noun) for number, noun in counts if number]
        if self.annotations:
            amounts.append(f"annotations of {pluralize(self.annotations, 'chunk')}")
        parts = [" and ".join(amounts) or "nothing"]
        if self.seconds >= 120:
            parts.append(f"about {self.seconds / 60:.0f} minutes")
        elif self.seconds:
            parts.append(f"about {max(1, round(self.seconds))} s")
        if self.megabytes:
            parts.append(f"{self.megabytes:,.0f} MB")
        return ", ".join(parts)


class _Estimate(Value):
    __slots__ = ()
    model: str
    characters: int
    input_tokens: int
    output_tokens: int

    def price(self, input_price: float, output_price: float) -> float:
        """Estimate the cost of what is left, by prices of a million tokens."""
        return (self.input_tokens * input_price + self.output_tokens * output_price) / 1e6

    def _describe(self, count: int, noun: str, most: str = "") -> str:
        if not count:
            return f"nothing is left for {self.model}"
        return (
            f"{pluralize(count, noun)} for {self.model}: {self.characters:,} characters, about "
            f"{self.input_tokens:,} tokens in and {most}{self.output_tokens:,} out"
        )


@dataclass(frozen=True, slots=True)
class Expansion(_Estimate):
    """Documents described by a language model, and documents left.

    Attributes:
        documents: Documents left; one request each.
        characters: Characters to send, instructions included.
        input_tokens: Estimated as a fourth of the characters, as in English.
        output_tokens: Estimated maximum.
        written: Documents described in this run.
        failed: Documents that failed in this run, with the reason; their summaries are unchanged.
    """

    model: str
    documents: int = 0
    characters: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    written: int = 0
    failed: tuple[Problem, ...] = ()

    def __str__(self) -> str:
        return self._describe(self.documents, "document", "at most ")


@dataclass(frozen=True, slots=True)
class AnnotationReport(_Estimate):
    """Chunks annotated in this run, and chunks left for a language model.

    All but the first two are 0 if rules annotate.

    Attributes:
        annotated: Chunks annotated in this run.
        chunks: Chunks left for the model.
        characters: Characters to send, instructions included.
        input_tokens: Estimated as a fourth of the characters, as in English.
        output_tokens: Estimated.
        used_input_tokens: Tokens sent in this run, as reported by the model or estimated.
        used_output_tokens: Tokens received in this run, as reported or estimated.
        failed: Chunks that failed in this run, with the reason; they have no annotations.
    """

    annotated: int
    model: str
    chunks: int = 0
    characters: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    used_input_tokens: int = 0
    used_output_tokens: int = 0
    failed: tuple[Problem, ...] = ()

    def __str__(self) -> str:
        return self._describe(self.chunks, "chunk")


@dataclass(frozen=True, slots=True)
class IngestReport(Value):
    """Result of an ingest or a refresh. Counts are documents unless stated otherwise.

    Attributes:
        fetched: Pages or files read (an HTTP 304 does not count).
        seconds: Time by stage.
        interrupted: Whether the work was stopped early; the next run continues it.
        fidelity: Kept and total items of the measured pages, by kind (``pages`` counts the pages).
            The first pages of a site are measured, then every eighth.
        poorly_read: Measured pages with more than a tenth of losses or surplus.
        notes: Documents that were read with a guess, such as their charset.
        warnings: Sources whose pages were poorly read overall, with the worst pages.
        failed_sources: Sources of which nothing could be read, with the first reason. New ones are
            not saved.
        documents: Ids of documents that were read or are unchanged, the first 1,000.
        improvement: Work left for models; static vectors serve searches until then.
    """

    new: int = 0
    changed: int = 0
    same: int = 0
    gone: int = 0
    fetched: int = 0
    failed: tuple[Problem, ...] = ()
    skipped: tuple[Problem, ...] = ()
    chunks_embedded: int = 0
    chunks_added: int = 0
    chunks_removed: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    interrupted: bool = False
    fidelity: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    poorly_read: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    failed_sources: tuple[Problem, ...] = ()
    improvement: Improvement | None = None
    documents: tuple[str, ...] = ()

    @property
    def nothing_read(self) -> bool:
        """Whether no source had a document."""
        return bool(self.failed or self.skipped) and not (self.new or self.changed or self.same)

    def lines(self) -> list[tuple[str, str]]:
        """Return labels and values for a person."""
        lines = [
            (
                "documents",
                f"{self.new:,} new, {self.changed:,} changed, {self.same:,} same, "
                f"{self.gone:,} gone",
            ),
            ("chunks", f"{self.chunks_embedded:,} embedded, {self.chunks_removed:,} removed"),
            ("fetched", f"{self.fetched:,}"),
        ]
        kinds = (("failed", self.failed), ("skipped", self.skipped), ("note", self.notes))
        for label, problems in kinds:
            lines += ((label, line) for line in _by_reason(problems))
        if self.fidelity:
            lines.append(("read", _fidelity_line(self.fidelity)))
        lines += [("warning", f"poorly read: {warning}") for warning in self.warnings]
        lines += [("poorly read", str(page)) for page in self.poorly_read[:_MAX_POOR_PAGES]]
        if (more := len(self.poorly_read) - _MAX_POOR_PAGES) > 0:
            lines.append(("poorly read", f"and {more:,} more pages"))
        if self.improvement:
            lines.append(("left for a model", str(self.improvement)))
        if self.interrupted:
            lines.append(("stopped", "early; the next run continues from here"))
        if self.seconds:
            lines.append(("seconds", seconds_line(self.seconds)))
        return lines


@dataclass(frozen=True, slots=True)
class ImportReport(Value):
    """Result of an import; ``documents`` has the first 1,000 that were read or are unchanged."""

    documents: tuple[DocumentInfo, ...]
    chunks: int
    report: IngestReport


def _by_reason(problems: Iterable[Problem]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for problem in problems:
        reasons.setdefault(problem.reason, []).append(problem.uri)
    return [
        first + (f" and {len(others):,} more" if others else "") + f": {reason}"
        for reason, (first, *others) in reasons.items()
    ]


def seconds_line(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{stage} {value:.1f}" for stage, value in seconds.items())


def _fidelity_line(fidelity: Mapping[str, tuple[int, int]]) -> str:
    shares = ", ".join(
        f"{kind} {100 * kept / total:.1f} %"
        for kind, (kept, total) in fidelity.items()
        if total and kind in ("words", "code", "headings", "rows")
    )
    kept, written = fidelity.get("surplus", (0, 0))
    surplus = f", {1 - kept / written:.1%} of the text is not content" if kept < written else ""
    measured = f"{fidelity['pages'][1]:,} pages measured"
    return measured + (f": kept {shares}" if shares else "") + surplus


POOR = 0.9
"""Fidelity below which a page is poorly read."""
_MIN = {"words": 0.99, "surplus": 0.97, "headings": 0.97, "code": 0.97, "rows": 0.97}
"""Kept shares below which a site is poorly read; of ``surplus``, the share that is content."""
_COUNTED = ("code", "headings", "rows")


def fidelity_score(figures: Mapping[str, tuple[int, int]]) -> float:
    """Return the fidelity of a page, from 0 to 1.

    This is the minimum of three shares: words kept; code blocks, headings and table rows kept;
    written words that are content of the page.
    """
    pairs = [figures.get(kind, (0, 0)) for kind in _COUNTED]
    totals = (sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs))
    words, surplus = (figures.get(kind, (0, 0)) for kind in ("words", "surplus"))
    return min(map(_share, (totals, words, surplus)))


def losses(figures: Mapping[str, tuple[int, int]]) -> str:
    """Describe losses and surplus of a page in one line; ``""`` if there are none."""
    shares = [
        f"{kind} {kept:,} of {total:,}"
        for kind, (kept, total) in figures.items()
        if kept < total and kind not in ("surplus", "pages")
    ]
    lines = [f"kept of the page: {', '.join(shares)}"] if shares else []
    kept, total = figures.get("surplus", (0, 0))
    if kept < total:
        lines.append(f"{total - kept:,} of {total:,} words written are not its content")
    return "; ".join(lines)


def poor_site(figures: Mapping[str, tuple[int, int]]) -> str:
    """Describe how badly a site's pages were read, in one line; ``""`` if all is well."""
    shares = {kind: _share(figures.get(kind, (0, 0))) for kind in _MIN}
    return ", ".join(
        f"{1 - share:.1%} of the text is not content"
        if kind == "surplus"
        else f"{1 - share:.1%} of the {kind} {'is' if kind == 'code' else 'are'} missing"
        for kind, share in shares.items()
        if share < _MIN[kind]
    )


def _share(pair: tuple[int, int]) -> float:
    return pair[0] / pair[1] if pair[1] else 1.0


@dataclass(frozen=True, slots=True)
class Run(Value):
    """One reading of a source.

    Attributes:
        source: Its address, path or name.
        finished_at: ``None`` while it runs, or if it was interrupted.
        seconds: 0 if it has not ended.
        counts: Numbers of documents added, updated and so on.
    """

    kb: str
    source: str
    started_at: datetime
    finished_at: datetime | None
    seconds: float
    counts: Mapping[str, Any]
