"""Documents with questions that do not depend on the length of chunks.

Questions of ``../shared/eval``, and headings taken out of the documentation of Django and SQLite,
ask for pages. Questions of Chroma's chunking corpora, and the same headings, ask for passages: the
heading's section must be found.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from _corpora import MANUALS, Place, Question, about_pages, chunking_questions, corpora

import kbkit
from kbkit.models import Document
from kbkit.text.analysis import analyzer
from kbkit.text.markdown.structure import outline

READ = 4000
"""Number of characters of hits in which a passage is sought."""
HITS = 100
"""Number of passages read to find ten different pages."""
HEADINGS = 250
_DOCUMENTATIONS = ("django", "sqlite")
_TERMS = range(3, 10)
"""Terms that a heading needs to serve as a question."""
_SECTION = 200
"""Smallest section, in characters."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A question and the characters of a document that answer it."""

    text: str
    uri: str
    ranges: tuple[tuple[int, int], ...]

    def share(self, ranking: Sequence[Place]) -> float:
        """Return the share of the passage that the first characters of a ranking hold, 0 to 1."""
        left, found = READ, set[int]()
        for place in ranking:
            end = min(place.end, place.start + left)
            left -= end - place.start
            if place.uri == self.uri:
                found.update(range(place.start, end))
        wanted = {at for low, high in self.ranges for at in range(low, high)}
        return len(wanted & found) / len(wanted)


@dataclass(frozen=True, slots=True)
class Material:
    """Documents in a file of JSON lines, and questions about them."""

    name: str
    file: Path
    pages: Sequence[Question] = ()
    passages: Sequence[Passage] = ()

    def figures(
        self, kb: kbkit.KnowledgeBase, mode: str = "hybrid", settings: Settings | None = None
    ) -> Figures:
        """Measure a knowledge base of these documents.

        Args:
            kb: The knowledge base.
            mode: Mode of the searches.
            settings: Retrieval settings that differ from its own.
        """
        kept = kb.spec.retrieval
        spec = type(kept).model_validate({**kept.model_dump(), **(settings or {})})

        def ranking(text: str) -> list[Place]:
            hits = kb.search(text, limit=HITS, mode=mode, retrieval=spec)
            return [Place(hit.uri, hit.chunk.start, hit.chunk.end) for hit in hits]

        found = {}
        texts = [one.text for one in self.pages] + [one.text for one in self.passages]
        rankings = {text: ranking(text) for text in dict.fromkeys(texts)}
        if self.pages:
            scores = [one.ndcg(rankings[one.text]) for one in self.pages]
            found[self.name] = float(np.mean(scores))
        if self.passages:
            shares = [one.share(rankings[one.text]) for one in self.passages]
            found[f"{self.name}, passages"] = float(np.mean(shares))
        return found


Settings = Mapping[str, float | str]
"""Fields of a recipe's `retrieval` part."""
Figures = dict[str, float]
"""By set: nDCG@10 of pages, or the share of passages found."""


def materials(folder: Path, names: Sequence[str] = ()) -> Iterator[Material]:
    """Write the available sets to a folder."""
    known = ("python", "scifact", "cranfield", "chunking", *_DOCUMENTATIONS)
    for name in names or known:
        if name in _DOCUMENTATIONS:
            yield from _documentation(name, folder)
            continue
        for corpus in corpora(folder, names=[name]):
            documents = list(corpus.kb.documents)
            file = _written(folder / f"{name}-documents.jsonl", documents)
            if name == "chunking":
                yield Material(name, file, passages=_references(documents))
            else:
                yield Material(name, file, corpus.questions)


def _written(file: Path, documents: Sequence[Document]) -> Path:
    with file.open("w", encoding="utf-8") as out:
        for one in documents:
            values = {"uri": one.uri, "title": one.title, "text": one.content}
            out.write(json.dumps({**values, "document_type": one.document_type.value}) + "\n")
    return file


def _references(documents: Sequence[Document]) -> list[Passage]:
    uris = {Path(one.uri).stem: one.uri for one in documents}
    return [Passage(text, uris[corpus], found) for text, corpus, found in chunking_questions()]


def _documentation(name: str, folder: Path) -> Iterator[Material]:
    """Take headings out of a documentation; they ask for their pages and sections."""
    home = MANUALS[name].folder
    if home is None:
        print(f"{name}: its manual is missing, left out")
        return
    with kbkit.open(folder) as workspace:
        kb = workspace.create(f"{name}-whole")
        kb.ingest(kbkit.MirrorSource(path=str(home), base_url=f"http://{name}.invalid/"))
        documents = {one.uri: one for one in kb.documents}
    asked = _asked(list(documents.values()))
    for passage in asked:
        one = documents[passage.uri]
        documents[one.uri] = replace(one, content=_without(one.content, passage.text))
    file = _written(folder / f"{name}-documents.jsonl", list(documents.values()))
    yield Material(name, file, [about_pages(one.text, [one.uri]) for one in asked], asked)


def _asked(documents: Sequence[Document]) -> list[Passage]:
    """Return headings that occur once in all documents, with their sections."""
    terms_of = analyzer("english").terms
    found, known = [], Counter[str]()
    for one in documents:
        headings = outline(one.content).headings
        ends = [heading.start for heading in headings[1:]] + [len(one.content)]
        for heading, end in zip(headings, ends, strict=True):
            text = heading.path[-1]
            known[text.lower()] += 1
            long = len(one.content[heading.end : end].strip()) >= _SECTION
            if long and heading.level > 1 and len(set(terms_of(text))) in _TERMS:
                found.append(Passage(text, one.uri, ((heading.end, end),)))
    alone = [one for one in found if known[one.text.lower()] == 1]
    chosen = np.random.default_rng(0).permutation(len(alone))[:HEADINGS]
    return [alone[i] for i in sorted(chosen.tolist())]


def _without(content: str, heading: str) -> str:
    """Blank the lines of a heading; other offsets stay."""
    lines = content.split("\n")
    return "\n".join(" " * len(line) if heading in line else line for line in lines)
