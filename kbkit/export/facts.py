"""Inputs of an export, in addition to documents, and the files that it writes."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from kbkit.errors import ExportError
from kbkit.models.values import from_dict


class RelatedPassage(NamedTuple):
    """A passage of another document with a similar meaning.

    Attributes:
        heading: Headings above it on one line, without the document's title.
        passage: Its first and last words, for highlighting.
    """

    uri: str
    anchor: str = ""
    heading: str = ""
    passage: str = ""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Origin of documents.

    Attributes:
        day: Day of the last complete run (ISO), or ``""``.
        fidelity: Retained and total items by kind, on measured pages.
    """

    type: str
    place: str
    day: str = ""
    fidelity: Mapping[str, tuple[int, int]] = field(default_factory=dict)


class ExampleQuestion(NamedTuple):
    """A question that the home page shows."""

    question: str
    uris: tuple[str, ...]


class GraphPlace(NamedTuple):
    """A document that defines or mentions an entity."""

    uri: str
    anchor: str = ""
    defines: bool = False


@dataclass(frozen=True, slots=True)
class GraphNode:
    """Entity of a graph, in its picture or only in lists of neighbours. Texts are plain.

    Attributes:
        x: Horizontal offset from the centre.
        properties: Labels and values.
        places: Defining documents, then those with most mentions.
    """

    name: str
    type: str
    x: float = 0
    y: float = 0
    radius: float = 0
    description: str = ""
    aliases: Sequence[str] = ()
    properties: Sequence[tuple[str, str]] = ()
    chunks: int = 0
    documents: int = 0
    places: Sequence[GraphPlace] = ()


class GraphEdge(NamedTuple):
    """A relation between two nodes, by their numbers from 0, in the picture if `drawn`."""

    source: int
    target: int
    name: str
    weight: float
    drawn: bool = True


class GraphGap(NamedTuple):
    """A gap in the documentation of an entity or document; `kind` is a `kbkit.models.GapKind`."""

    name: str
    kind: str
    reason: str
    places: Sequence[GraphPlace] = ()


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """The published part of a knowledge base's graph.

    Attributes:
        nodes: Entities, those of the picture first.
        pictured: Number of nodes in the picture.
        edges: Relations, those between nodes of the picture first, the strongest first.
        gaps: Gaps, the most important first, each kind in turn.
        state: Fingerprint of the graph's state.
        pages: Existing files of that state, by path; all else is then empty.
    """

    nodes: Sequence[GraphNode] = ()
    pictured: int = 0
    edges: Sequence[GraphEdge] = ()
    gaps: Sequence[GraphGap] = ()
    total: int = 0
    state: str = ""
    pages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Download:
    """Files of a document in one archive; `read` returns its bytes."""

    path: str
    files: Sequence[tuple[str, int]]
    read: Callable[[], bytes]
    description: str = "ZIP"


class SiteSection(NamedTuple):
    """Another export in the same site; `path` is relative to the linking pages."""

    title: str
    path: str
    description: str


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts; unknown ones are empty.

    Attributes:
        related: Related passages, the nearest first, by document id.
        ratings: Average rating and number of raters, by document id.
        scores: Number of ratings by score from 1 to 5.
        subjects: Names of the main subjects, by document id.
        best: URIs of the best rated documents, if the site lists them.
    """

    related: Mapping[str, Sequence[RelatedPassage]] = field(default_factory=dict)
    ratings: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    scores: Mapping[int, int] = field(default_factory=dict)
    lengths: Sequence[int] = ()
    sources: Sequence[SourceFacts] = ()
    questions: Sequence[ExampleQuestion] = ()
    subjects: Mapping[str, Sequence[str]] = field(default_factory=dict)
    graph: GraphFacts | None = None
    sections: Sequence[SiteSection] = ()
    downloads: Mapping[str, Download] = field(default_factory=dict)
    best: Sequence[str] = ()


ASSET_FILES = Path(__file__).parent / "assets"


def asset(name: str) -> str:
    return (ASSET_FILES / name).read_text("utf-8")


_PACKAGE = ASSET_FILES.parents[1]
_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]*)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?:/\*\*(?:(?!\*/).)*\*/[ \t]*|//[^\n]*)\n", re.M | re.S)
_INDENTED = re.compile(r"^ +", re.MULTILINE)


def bundle_modules(path: str) -> tuple[str, str]:
    """Bundle a JavaScript module of the package with its imports, without comments.

    Each module becomes a function, so that its names stay its own.

    Returns:
        The script, and the name of the object with the module's exports.
    """
    parts: dict[str, str] = {}

    def read(file: str) -> str:
        name = f"module_{PurePath(file).stem}"
        if name not in parts:
            text = _COMMENT.sub("", (_PACKAGE / file).read_text("utf-8"))
            exported = ", ".join(_EXPORT.findall(text))
            for names, imported in _IMPORT.findall(text):
                needed = read(posixpath.normpath(posixpath.join(posixpath.dirname(file), imported)))
                text = _IMPORT.sub(f"const {{{names}}} = {needed};\n", text, count=1)
            text = _INDENTED.sub("", _EXPORT.sub("", text))
            parts[name] = f"const {name} = (() => {{\n{text}return {{ {exported} }};\n}})();\n"
        return name

    entry = read(path)
    return "".join(parts.values()), entry


def write_file(path: Path, data: bytes) -> None:
    """Replace a file atomically."""
    draft = path.with_name(f".{path.name[:40]}.part")
    try:
        draft.write_bytes(data)
    except FileNotFoundError:  # the folder is new
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(data)
    draft.replace(path)


def write_changed(path: Path, content: str | bytes) -> bool:
    """Replace a file if it changed: `mkdocs serve` builds again when a file is touched."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    with suppress(FileNotFoundError):
        if path.read_bytes() == data:
            return False
    write_file(path, data)
    return True


@contextmanager
def writing(folder: Path, content: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ExportError(
            f"{folder}: cannot write {content} ({error.strerror or error}); "
            "free the place or choose another folder"
        ) from error


@contextmanager
def intact(path: Path, advice: str = "export again") -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise ExportError(f"{path}: damaged ({error}); {advice}") from error


MANIFEST = ".kbkit-export.json"
"""Name of the manifest; MkDocs ignores names with a leading dot."""

_FORMAT = 1
_MAX_TOP = 20
_BROWSE = "browse.md"  # the first of the pages about all documents


@dataclass(frozen=True, slots=True)
class Manifest:
    """Files that an export wrote, as relative paths with ``/``.

    Attributes:
        nav: Navigation with all documents; see `kbkit.export.pages.home_page`.
        history: Revision of each document, by URI; see `kbkit.export.pages.outline`.
    """

    kb: str
    title: str
    documents: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    nav: tuple[dict[str, Any], ...] = ()
    history: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        """Read the manifest of a folder; an empty one if there is none."""
        path = directory / MANIFEST
        with intact(path, "remove the folder and export again"):
            if not path.exists():
                return cls("", "")
            values = json.loads(path.read_text(encoding="utf-8"))
            if values.pop("format") != _FORMAT:
                raise ExportError(
                    f"{path}: written by another version of kbkit; "
                    "export into a new folder, or upgrade kbkit"
                )
            manifest = from_dict(cls, values)
        for page in (*manifest.files, *manifest.documents.values()):
            if page.startswith("/") or "\\" in page or ".." in page.split("/"):
                raise ExportError(f"{path}: names {page!r}, which is outside the folder")
        return manifest

    def write(self, directory: Path) -> None:
        """Write the manifest into a folder atomically, if it changed."""
        # one entry per line, for version control
        text = json.dumps({"format": _FORMAT, **asdict(self)}, ensure_ascii=False, indent=1)
        write_changed(directory / MANIFEST, f"{text}\n")

    def sections(self) -> dict[str, str]:
        """Return the titles of the sections above each page, by its path."""
        sections: dict[str, str] = {}
        waiting = [("", item) for item in self.nav]
        while waiting:
            above, item = waiting.pop()
            sections.setdefault(item["path"], above)
            path = f"{above} › {item['title']}" if above else item["title"]
            waiting += [(path, inner) for inner in item.get("children", ())]
        return sections

    def top(self) -> list[dict[str, Any]]:
        """Return the pages for a theme's navigation, few since it is in every page."""
        paths = [item["path"] for item in self.nav]
        browse = paths.index(_BROWSE) if _BROWSE in paths else len(paths)
        first, last = self.nav[:_MAX_TOP], self.nav[browse:]
        return [*first, *(item for item in last if item not in first)]
