"""Search on a site: the box on each page, the page of results, and an index of the other pages."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from kbkit.embedding.fitted import FittedEncoder
from kbkit.embedding.static import StaticEmbedder, word_encoder
from kbkit.errors import EmbedderError
from kbkit.export.facts import Manifest, intact
from kbkit.export.index_packing import decode_shard, decode_varints, encode_shard
from kbkit.export.index_terms import IndexContent, IndexedChunk, IndexedDocument, IndexedSummaries
from kbkit.export.index_writer import DESCRIPTOR, FOLDER, index_folder, write_index
from kbkit.export.mkdocs.build import take_entries
from kbkit.export.mkdocs.page_head import scripts, text_of_html, write_browser_model
from kbkit.export.pages.document_page import templates
from kbkit.models import DocumentType
from kbkit.recipes import RetrievalSpec
from kbkit.stores.catalog.corpus import ChunkTerms
from kbkit.stores.snapshots.making import chunk_columns
from kbkit.stores.snapshots.snapshot import Snapshot
from kbkit.text.analysis import analyzer

_MAX_TAGS = 100


def _html(macro: str, **values: Any) -> str:
    return str(getattr(templates().get_template("search.html.j2").module, macro)(**values))


def _add_counts(counts: Mapping[str, int], names: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, f"{name} ({counts[name]:,})") for name in names]


ASSETS = "assets/kbkit"
PAGE = "search/index.md"
_GUIDES = "guides"
_MODEL = f"{ASSETS}/model"
_VECTORS = ("vectors", "summaries")

_WORKER = re.compile(r'(<script id="__config"[^>]*>[^<]*?"search": ")([^"]*?)assets/[^"]*(")')
_BUNDLE = re.compile(
    r'<script src="([^"]*?)assets/javascripts/bundle\.[^"]*"(?=></script>(\s*</body>)?)'
)
_DIALOG = '<div class="md-search" data-md-component="search" role="dialog"'


@dataclass(slots=True)
class SiteSearch:
    """The search of one site.

    Attributes:
        kbs: Data of each indexed export for browsers, by prefix; see `engine.js`.
        cores: Core of each index.
    """

    kbs: dict[str, dict[str, str]]
    cores: list[Mapping[str, Any]]

    @classmethod
    def read(cls, docs: Path, exports: Mapping[str, Manifest]) -> SiteSearch:
        search = cls({}, [])
        for prefix, manifest in exports.items():
            if not (docs / prefix / FOLDER / DESCRIPTOR).is_file():
                continue
            folder = index_folder(docs / prefix)
            with intact(folder):
                search.cores.append(decode_shard((folder / "core.js").read_bytes()))
            name, base = (manifest.kb, "") if prefix == "." else (prefix, f"{prefix}/")
            place = {"base": base, "folder": f"{base}{FOLDER}/{folder.name}"}
            search.kbs[prefix] = {"name": name, "title": manifest.title, **place}
        return search

    def add_box(self, output: str) -> str:
        match = _WORKER.search(output)
        if match is None:
            return output
        worker = f"{match[1]}{match[2]}{ASSETS}/{scripts()['worker.js'][0]}{match[3]}"
        output = output[: match.start()] + worker + output[match.end() :]
        output = output.replace(_DIALOG, f'{_DIALOG} aria-label="Search"', 1)
        return _add_boot_script(output)

    def form(self, prefix: str, up: str, *, directories: bool) -> str:
        index = "" if directories else "index.html"
        return _html("home_form", up=up, index=index, kb=self._only(prefix))

    def about(self, prefix: str, names: Sequence[str], up: str, *, directories: bool) -> str:
        """Return the HTML of a page's topics, linked to the search page."""
        page, kb = f"{up}search/{'' if directories else 'index.html'}", self._only(prefix)
        links = []
        for name in names:
            plain = html.unescape(name)
            parameters = {"query": plain, **({"kb": kb} if kb else {}), "entity": plain}
            address = f"{page}?{urlencode(parameters, errors='replace')}"
            links.append(f'<a href="{html.escape(address)}">{html.escape(plain)}</a>')
        return f'<span class="kb-subjects">About: {", ".join(links)}</span>'

    def name_of(self, prefix: str) -> str:
        """Return an export's name in the search, or ``""``."""
        return self.kbs[prefix]["name"] if prefix in self.kbs else ""

    def _only(self, prefix: str) -> str:
        """Return the knowledge base that an export's pages search; ``""`` if there is only one."""
        return self.name_of(prefix) if len(self.kbs) > 1 else ""

    def page(self) -> str:
        kinds, tags, frames = Counter[str](), Counter[str](), Counter[str]()
        for core in self.cores:
            kinds.update(core["kinds"][number] for number in decode_varints(core["kind"]).tolist())
            tags.update(core["tags"][number] for numbers in core["tag"] for number in numbers)
            frames.update(core.get("frames", {}))
        types = sorted(kinds, key=lambda kind: (kind == DocumentType.OTHER, kind))
        return _html(
            "page",
            kbs=[(kb["name"], kb["title"]) for kb in self.kbs.values()],
            kinds=[(kind, text.replace("_", " ")) for kind, text in _add_counts(kinds, types)],
            tags=_add_counts(tags, sorted(tags)[:_MAX_TAGS]),
            frames=_add_counts(frames, (frame for frame, _ in frames.most_common())),
            rated=any(core["ratings"] for core in self.cores),
            stale=any(core["stale"] for core in self.cores),
            script=f"../{ASSETS}/{scripts()['page.js'][0]}",
        )

    def write(self, site: Path, name: str, *, directories: bool) -> None:
        """Write the scripts' data into a built site.

        Sections of other pages move from the theme's index, which every page fetches, to an index
        of kbkit.
        """
        target = site / ASSETS
        entries = take_entries(site / "search" / "search_index.json")
        content = guides_content(entries, name, str(self.cores[0]["language"]))
        guides = []
        if content is not None:
            folder = write_index(content, target / _GUIDES).relative_to(site).as_posix()
            guides = [{"name": content.name, "title": name, "base": "", "folder": folder}]
        config = {
            "kbs": [*self.kbs.values(), *guides],
            "directories": directories,
            "engine": scripts()["engine.js"][0],
        }
        if any(core.get(kind, {}).get("model") for core in self.cores for kind in _VECTORS):
            with suppress(EmbedderError):  # the fitted encoders then embed queries
                config["model"] = f"{_MODEL}/{write_browser_model(site / _MODEL)}"
        (target / "site.js").write_bytes(encode_shard(config))


def _add_boot_script(output: str) -> str:
    bundle = _BUNDLE.search(output)
    if bundle is None:
        return output
    boot = f'<script src="{bundle[1]}{ASSETS}/{scripts()["boot.js"][0]}"'
    boot += f' data-passage="{scripts()["passage.js"][0]}"'
    if bundle[2] is None:  # later scripts may need the theme's
        return f"{output[: bundle.start()]}{boot}></script>{output[bundle.start() :]}"
    # deferred, so that the page appears before the theme's script is loaded
    output = f"{output[: bundle.end()]} defer{output[bundle.end() :]}"
    return output.replace("</head>", f"{boot} defer></script></head>", 1)


NAME = "pages"
_LEAD, _SUMMARY = 350, 600  # characters of a page's start in its summary, and of the summary


def guides_content(
    entries: Sequence[Mapping[str, Any]], title: str, language: str
) -> IndexContent | None:
    """Return the index content of a site's other pages, if any."""
    titles: dict[str, str] = {}
    chunks_of: dict[str, list[IndexedChunk]] = {}
    for entry in entries:
        page, _, anchor = str(entry["location"]).partition("#")
        heading, text = (text_of_html(str(entry[name])) for name in ("title", "text"))
        titles.setdefault(page, heading)
        if text or anchor:
            chunk = IndexedChunk(text or heading, heading if anchor else "", anchor)
            chunks_of.setdefault(page, []).append(chunk)
    if not chunks_of:
        return None
    titles = {page: heading for page, heading in titles.items() if page in chunks_of}
    places = [(page, chunk) for page in titles for chunk in chunks_of[page]]
    texts = [f"{titles[page]}\n{chunk.heading}\n{chunk.text}" for page, chunk in places]
    text_analyzer = analyzer(language)
    encoder = word_encoder(texts, text_analyzer.terms)
    terms = map(text_analyzer.terms, texts)
    chunk_terms = [
        ChunkTerms(row, str(row), page, "", [chunk.heading], " ".join(tokens), len(tokens), b"")
        for row, ((page, chunk), tokens) in enumerate(zip(places, terms, strict=True))
    ]
    snapshot = Snapshot(
        embedder="" if encoder is None else encoder.embedder,
        vectors=np.zeros((len(places), 2), np.float32)
        if encoder is None
        else StaticEmbedder().embed_passages(texts),
        **chunk_columns(chunk_terms, titles, language, {}),
    )
    return IndexContent(
        name=NAME,
        title=title,
        language=language,
        snapshot=snapshot,
        rows=np.arange(len(places)),
        prior=np.zeros(len(places)),
        documents=[
            IndexedDocument(page, heading, "manual", (), 0, False, 0.0, len(chunks_of[page]))
            for page, heading in titles.items()
        ],
        chunks=[chunk for _, chunk in places],
        encoder=encoder,
        summaries=None if encoder is None else _summaries(titles, chunks_of, encoder),
        stop_words=sorted(text_analyzer.stop_words),
        retrieval=RetrievalSpec(),
    )


def _summaries(
    titles: Mapping[str, str], chunks_of: Mapping[str, list[IndexedChunk]], encoder: FittedEncoder
) -> IndexedSummaries:
    texts = []
    for page, title in titles.items():
        headings = "; ".join(filter(None, (chunk.heading for chunk in chunks_of[page])))
        texts.append(f"{title}. {chunks_of[page][0].text[:_LEAD]} {headings}"[:_SUMMARY])
    vectors = StaticEmbedder().embed_passages(texts)
    return IndexedSummaries(vectors, encoder)
