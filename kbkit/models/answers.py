"""Answer: what a language model makes of the passages that a search finds."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any, Self

from typing_extensions import TypedDict

from kbkit.models.hits import Hit, HitDict, Hits, linked
from kbkit.models.plain import plain, plain_lines

_NUMBERS = re.compile(r"\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]")


class AnswerDict(TypedDict):
    """An answer as JSON values."""

    query: str
    text: str
    model: str
    cited: list[int]
    hits: list[HitDict]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its sources.

    Attributes:
        query: What was asked.
        text: What the model says; empty where no model is set.
        hits: The passages it was given; its text cites them by their places, from 1.
        model: Name of the model; empty where none is set.
    """

    query: str
    text: str
    hits: Hits
    model: str = ""

    @property
    def cited(self) -> tuple[int, ...]:
        """Places of the passages that the text cites, ascending; made-up ones are left out."""
        named = {
            int(number) for group in _NUMBERS.findall(self.text) for number in group.split(",")
        }
        return tuple(sorted(number for number in named if 1 <= number <= len(self.hits)))

    def to_dict(self) -> AnswerDict:
        """The answer as JSON values, with its sources and the places of those that it cites."""
        return {
            "query": self.query,
            "text": self.text,
            "model": self.model,
            "cited": list(self.cited),
            "hits": [hit.to_dict() for hit in self.hits],
            "notes": list(self.hits.notes),
        }

    @classmethod
    def from_dict(cls, values: AnswerDict) -> Self:
        """The answer that `to_dict` gave; see `kbkit.models.from_dict`."""
        hits = tuple(map(Hit.from_dict, values["hits"]))
        found = Hits(values["query"], hits, notes=tuple(values["notes"]))
        return cls(values["query"], values["text"], found, values["model"])

    def __str__(self) -> str:
        lines = [self.text or _unanswered(self.hits), ""]
        for number, hit in enumerate(self.hits, 1):
            lines.append(f"[{number}] {_name(hit)} <{plain(hit.url)}>")
            if not self.text:
                lines += [f"    {line}" for line in plain_lines(hit.snippet)]
        return "\n".join(lines).rstrip()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """The answer as text, whatever markup it may have, and its sources."""
        if not self.text:
            return f"<p>{html.escape(_unanswered(self.hits))}</p>{self.hits._repr_html_()}"
        text = html.escape(self.text)
        cited = self.cited
        sources = "".join(
            f"<tr><td>[{number}]</td><td style='text-align:left'>"
            f"{'<b>' if number in cited else ''}{linked(hit)}{'</b>' if number in cited else ''}"
            f"<br><small>{html.escape(' › '.join(hit.headings))}</small></td>"
            f"<td style='text-align:left'>{html.escape(hit.snippet)}</td></tr>"
            for number, hit in enumerate(self.hits, 1)
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.hits.notes)
        return (
            f"<p style='white-space:pre-wrap;max-width:50em'>{text}</p>{notes}"
            f"<table><thead><tr><th></th><th>source</th><th>passage</th></tr></thead>"
            f"<tbody>{sources}</tbody></table>"
            f"<p><small>answered by {html.escape(self.model)}; it can be wrong, so read its "
            "sources</small></p>"
        )


def _unanswered(hits: Hits) -> str:
    if not hits:
        return "Nothing was found; ask in other words."
    return (
        "No language model is set (llama_index.core.Settings.llm), so these are the passages that "
        "answer best."
    )


def _name(hit: Hit) -> str:
    return plain(" › ".join([hit.title or hit.uri, *hit.headings]))
