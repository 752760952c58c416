"""Documents inside files: front matter, titles, and document types."""

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, time
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from kbkit.models import DocumentType
from kbkit.sources.markdown import commonmark
from kbkit.sources.untrusted import UnreadableError, load_values
from kbkit.text.markdown.structure import document_title

_T = TypeVar("_T")
MAX_BYTES = 50_000_000  # of a file
_MAX_CHARACTERS = 40_000_000  # of Markdown from one file
GROUP = 900  # characters of a table or list below one heading: the default chunk size
PAGE_BREAK = "\n\n\f\n\n"  # separates pages, even empty ones


@dataclass(frozen=True, slots=True)
class Part:
    """A document inside a file.

    Attributes:
        name: Name among the parts; ``""`` for the whole file.
        note: Note on how it was read, or ``""``.
        template: Document type by its generator, if known.
    """

    title: str
    content: str
    name: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    template: DocumentType | None = None


def check_length(size: int) -> None:
    if size > _MAX_CHARACTERS:
        raise UnreadableError(f"more than {_MAX_CHARACTERS / 1e6:g} million characters of text")


def grouped(items: Iterable[_T], size_of: Callable[[_T], int], limit: int) -> Iterator[list[_T]]:
    """Yield groups of consecutive items up to a total size; a larger item is alone."""
    group: list[_T] = []
    total = 0
    for item in items:
        size = size_of(item)
        if group and total + size > limit:
            yield group
            group, total = [], 0
        group.append(item)
        total += size
    if group:
        yield group


def stem(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).stem


def one_line(text: object) -> str:
    return " ".join(str(text or "").split())[:500]


_FRONT = re.compile(
    r"\A(---|\+\+\+)[ \t]*\n(.{0,20000}?)^(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
_KEYS = re.compile(r"(?:[ \t]*+(?:#.*+)?\n)*+[ \t]*+[\w\"'.][\w\"'. \t-]*+[:=]")
_MAX_VALUES = 10_000
_MARKS = re.compile(
    r"^([ \t]*+(?:-|[\w\"'.][\w\"'. -]*+:)[ \t]++)"
    r"([*@%`].*|[&!]\S+[ \t]+\S.*|[\[{].*[^\s\]},\[{])$",
    re.MULTILINE,
)
"""Values that start with a reserved character of YAML, but are meant as text."""
_COLONS = re.compile(r"^([\w.][\w. -]*+:[ \t]++)([^\"'|>\[{#\s].*:.*)$", re.MULTILINE)


def with_front_matter(text: str, name: str, *, markdown: bool = False) -> Part:
    """Read a text file and its front matter.

    The title comes from the front matter, the first heading, or the name. Unreadable front matter
    stays in the content, with a note.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "").lstrip("\ufeff")
    front: dict[str, Any] = {}
    note = ""
    if match := _FRONT.match(text):
        try:
            front, end = _front_matter(*match.groups()), match.end()
            text = text[end:]
        except ValueError as error:
            note = f"its front matter cannot be read ({error})" if _KEYS.match(match[2]) else ""
    if markdown:
        text = commonmark(text, components=name.lower().endswith(".mdx"))
    content = text.strip("\n")
    title = _scalar_text(front.pop("title", None))
    tags = front.pop("tags", None) or ()
    if isinstance(tags, str):
        tags = [tag.strip() for tag in tags.split(",")]
    labels = tuple(filter(None, map(_scalar_text, tags))) if isinstance(tags, list) else ()
    return Part(
        title=" ".join((title or document_title(content) or title_from_name(name)).split())[:500],
        content=content + "\n" if content.strip() else "",
        tags=labels,
        metadata={str(key): json_value(value) for key, value in front.items()},
        note=note,
    )


def title_from_name(name: str) -> str:
    """Make a title from a path or URL; index pages take their folder's name."""
    path = PurePosixPath(name.rstrip("/").replace("\\", "/"))
    is_index = path.stem.lower() in {"index", "readme"} and path.parent.name
    return re.sub(r"[-_]+", " ", path.parent.name if is_index else path.stem).strip() or name


def _front_matter(fence: str, text: str) -> dict[str, Any]:
    """Parse TOML or YAML front matter; raise `ValueError` with line and column."""
    text = f"\n{text}"  # after the fence, so that line numbers in errors are the file's
    if fence == "+++":
        try:
            return tomllib.loads(text)
        except RecursionError:
            raise ValueError("nested too deeply") from None
    text = _MARKS.sub(_quote_line, text)
    try:
        loaded = load_values(text, exact=True, max_values=_MAX_VALUES)
    except ValueError:
        loaded = load_values(_COLONS.sub(_quote_line, text), exact=True, max_values=_MAX_VALUES)
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise ValueError("not a mapping")
    return loaded


def _quote_line(line: re.Match[str]) -> str:
    return line[1] + json.dumps(line[2].rstrip(), ensure_ascii=False)


def _scalar_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip() if isinstance(value, (str, int, float)) else ""


def json_value(value: Any) -> Any:
    """Convert any value to JSON; other types become text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): json_value(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [json_value(inner) for inner in value]
    return value.isoformat() if isinstance(value, date | time) else str(value)


_SIGNS = tomllib.loads(Path(__file__).with_name("document_types.toml").read_text("utf-8"))


def _patterns(signs: Mapping[str, list[str]]) -> dict[DocumentType, re.Pattern[str]]:
    return {
        DocumentType(kind): re.compile("|".join(parts), re.IGNORECASE)
        for kind, parts in signs.items()
    }


_NAMES, _FOLDERS, _TITLES = (_patterns(_SIGNS[part]) for part in ("names", "folders", "titles"))
_UNTYPED = re.compile("|".join(_SIGNS["untyped"]))
_NOT_TITLES = re.compile("|".join(_SIGNS["untyped_titles"]), re.IGNORECASE)
_HEADING = re.compile(r"(?m)^#{1,6} (.+?)[ \t]*(?:\{#[^}\n]*\})?[ \t]*$")
_MANUAL_PAGE = re.compile(r"^[\w.+:-]+\(\d\w{0,3}\)")
_SIGNATURE = re.compile(
    r"^`?(?:(?:class|struct|enum|exception|method|property|type|typedef|macro|event|command|"
    r"variable|attribute|constant|async|static|function|interface|trait|directive)[ :].|"
    r"[\w.:*& <>\[\]-]*[\w>]\(.*\))",
    re.I,
)
_DOTTED = re.compile(r"^`?[A-Za-z_]\w*(?:(?:\.|::)\w+)+`?$|^`[^`\s]+`$")
_ENDPOINT = re.compile(r"^`?(?:GET|POST|PUT|PATCH|DELETE|HEAD) /[\w{}/.:-]*")
_STEP = re.compile(r"^(?:step|part|lesson) \d", re.I)
_READ = 200_000
_MAX, _FEW = 0.6, 0.25  # shares of headings
_QUESTIONS = 5
_SHORT = 60  # characters, below which folders do not decide


def detect(
    uri: str, title: str, content: str, template: DocumentType | None = None
) -> DocumentType:
    folders, name = _path(uri)
    if _UNTYPED.fullmatch(name):
        return DocumentType.OTHER
    if (by_name := _type_by(_NAMES, name)) is not None:
        return by_name
    if _NOT_TITLES.search(title) or (not folders and not name):
        return DocumentType.OTHER
    headings = _HEADING.findall(content[:_READ])
    inner = headings[1:] if content.startswith("# ") or headings[:1] == [title] else headings
    if folders[-1:] != [name]:
        for kind, pattern in _TITLES.items():
            if pattern.search(title):
                return kind
    if template is not None:
        return template
    identifier_share = _identifier_share(inner)
    if _MANUAL_PAGE.match(title) or _is_manual_page(headings) or identifier_share >= _MAX:
        return DocumentType.REFERENCE
    for folder in reversed(folders if len(content) >= _SHORT else []):
        if _UNTYPED.fullmatch(folder):
            return DocumentType.OTHER
        by_folder = _type_by(_FOLDERS, folder)
        if by_folder is DocumentType.MANUAL and identifier_share > _FEW:
            return DocumentType.OTHER  # folder and page disagree
        if by_folder is not None:
            return by_folder
    return _by_headings(inner)


def _path(uri: str) -> tuple[list[str], str]:
    """Return folders and name of a document in lower case; an index is named like its folder."""
    path = unquote(urlsplit(uri).path if "://" in uri else uri).lower().replace("_", "-")
    segments = [segment for segment in re.split(r"[/\\]", path) if segment]
    if not segments:
        return [], ""
    name = re.sub(r"\.[a-z]{1,8}$", "", segments[-1])
    if re.fullmatch(r"index(?:\.[a-z]{2})?", name) and len(segments) > 1:
        return segments[:-1], segments[-2]
    return segments[:-1], name


def _type_by(patterns: Mapping[DocumentType, re.Pattern[str]], name: str) -> DocumentType | None:
    return next((kind for kind, pattern in patterns.items() if pattern.fullmatch(name)), None)


def _is_manual_page(headings: Iterable[str]) -> bool:
    first = [heading.casefold() for heading in headings][:4]
    return "synopsis" in first and bool({"name", "description"} & set(first))


def _identifier_share(headings: list[str]) -> float:
    """Return the share of headings that look like identifiers; 0 for fewer than three."""
    signatures = sum(bool(_SIGNATURE.match(text) or _DOTTED.match(text)) for text in headings)
    return signatures / len(headings) if signatures >= 3 else 0.0


def _by_headings(headings: list[str]) -> DocumentType:
    questions = sum(heading.endswith("?") for heading in headings)
    if questions >= _QUESTIONS and questions * 5 >= len(headings) * 3:
        return DocumentType.FAQ
    if sum(bool(_ENDPOINT.match(heading)) for heading in headings) >= 3:
        return DocumentType.API_SPEC
    steps = sum(bool(_STEP.match(heading)) for heading in headings)
    if steps >= 3 and steps >= _FEW * len(headings):  # otherwise one of many topics
        return DocumentType.TUTORIAL
    return DocumentType.OTHER
