"""The source ``package``: the public API of an installed Python package, from its docstrings.

griffe reads the source files. Without `introspect`, nothing of the package is imported or run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from kbkit.models import DocumentType, License, SourceDocument
from kbkit.models.licenses import known_name
from kbkit.paths import matches
from kbkit.recipes import PackageSource
from kbkit.sources import Outcome, SourceContext, SourceEvent
from kbkit.sources.markdown.lines import labelled, page, section
from kbkit.sources.package.introspection import (
    KEY,
    PublicObject,
    bases_of,
    is_exported,
    load_package,
    public_members,
    public_objects,
    target_of,
    with_introspection,
)
from kbkit.sources.restructured_text import signature, summary, to_markdown
from kbkit.text.markdown.structure import plain_text
from kbkit.text.markdown.writing import code_span, escape, fence

_REPOSITORY = re.compile(
    r"https?://(?:www\.)?((?:[\w-]+\.)*(?:github\.com|gitlab\.[a-z.]+|codeberg\.org|bitbucket\.org))"
    r"/(?!sponsors/|orgs/|users/)([\w.+-]+/[\w.+-]+?)(?:\.git)?/?(?:[/?#].*)?"
)
_NOTICE = re.compile(r"(?:copyright|\(c\)|©).*\d", re.IGNORECASE)
_NAMES = ("source", "sourcecode", "repository", "code", "github", "gitlab", "homepage")


@dataclass(frozen=True, slots=True)
class CodeOrigin:
    """Origin of a package, as far as known.

    Its repository is linked, not a file or tag of it, since an installed package does not name
    them.
    """

    distribution: str = ""
    version: str = ""
    repository: str = ""
    license: License = field(default_factory=License)


def origin_of(name: str) -> CodeOrigin:
    package = distribution_of(name)
    if package is None:
        return CodeOrigin()
    version, repository = package.version or "", _declared_repository(package)
    return CodeOrigin(package.metadata["Name"], version, repository, _license(package))


def distribution_of(name: str) -> metadata.Distribution | None:
    """Return the installed distribution of a module.

    `importlib.metadata.packages_distributions` would look at each file of all distributions.
    """
    top = name.partition(".")[0]
    with suppress(metadata.PackageNotFoundError):
        return metadata.distribution(top)
    owned = re.compile(rf"^{re.escape(top)}(?:[/.]|$)", re.MULTILINE)
    for package in metadata.distributions():
        # those of Debian and editable ones have no list of their modules' files
        if any(owned.search(package.read_text(name) or "") for name in ("RECORD", "top_level.txt")):
            return package
    return None


def _license(package: metadata.Distribution) -> License:
    about = package.metadata

    def values(key: str) -> list[str]:
        return [str(value).strip() for value in about.get_all(key) or []]

    classified = [
        line.rpartition("::")[2].strip()
        for line in values("Classifier")
        if line.startswith("License ::") and line.count("::") > 1
    ]
    # some packages state the whole license text
    written = [line.strip() for text in values("License") for line in text.split("\n")]
    named = [*values("License-Expression"), *written[:1], *classified]
    stated = [License.stated(name) for name in named if not _NOTICE.match(name)]
    recognized = next((license for license in stated if known_name(license.name)), None)
    notice = next((line for line in written if _NOTICE.match(line)), "")
    license = recognized or next(filter(None, stated), License())
    return license.or_else(License.stated(attribution=notice))


def _declared_repository(package: metadata.Distribution) -> str:
    """Return the repository in the metadata: from a fitting label first, then from any."""
    labelled: dict[str, str] = {}
    for line in package.metadata.get_all("Project-URL") or []:
        label, _, url = line.partition(",")
        labelled.setdefault(re.sub(r"[\W_]", "", label).lower(), url.strip())
    labelled.setdefault("homepage", (package.metadata.get_all("Home-page") or [""])[0])
    fitting = (labelled.get(label, "") for label in _NAMES)
    return next(filter(None, map(repository, (*fitting, *labelled.values()))), "")


def repository(url: str) -> str:
    match = _REPOSITORY.fullmatch(url)
    return f"https://{match[1]}/{match[2]}" if match else ""


_OWN_PAGE = 400  # least characters of docstring of a method with its own document


class PackageReader:
    """Reads the public API of an installed package: a document per module, class and function.

    A method with a long docstring is a document too; others are sections of their class. Names in
    ``__all__`` are public, or else names without a leading underscore and a package's re-exports
    from its own modules. An object has the shortest of its paths. Members inherited from a private
    class are written out, those of a public base are listed by name. Each document ends with the
    location of its source.
    """

    type = "package"
    exhaustive = True

    def __init__(self, spec: PackageSource) -> None:
        self._spec = spec

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        root = load_package(self._spec.name)
        origin = origin_of(self._spec.name)
        yielded = 0
        entries = public_objects(root, self._spec.name)
        if self._spec.introspect:
            entries = with_introspection(root, entries)
        for entry in entries:
            for document in self._documents(entry, origin):
                if matches(document.title, self._spec.exclude):
                    continue
                if context.stop() or yielded >= self._spec.limit:
                    return
                yielded += 1
                yield SourceEvent(document.uri, Outcome.FETCHED, document)

    def _documents(self, entry: PublicObject, origin: CodeOrigin) -> Iterator[SourceDocument]:
        item = entry.item
        if item.is_module:
            text = _module_page(entry)
        elif item.is_class:
            methods = _methods(item)
            text = _class_page(entry, methods)
            for name, method in methods:
                if _has_own_page(method):
                    path = f"{entry.path}.{name}"
                    yield self._document(path, method, _function_page(path, method), origin)
        else:
            text = _function_page(entry.path, item)
        if text:
            yield self._document(entry.path, item, text, origin)

    def _document(self, path: str, item: Any, text: str, origin: CodeOrigin) -> SourceDocument:
        metadata = {"kind": item.kind.value, "file": _file(item)}
        if item.lineno:
            metadata["line"] = item.lineno
        if origin.version:
            metadata["version"] = origin.version
        if origin.repository:
            metadata["repository"] = origin.repository
        metadata |= origin.license.to_metadata()
        if summary_text := plain_text(summary(item.docstring)):
            metadata["description"] = summary_text
        return SourceDocument(
            uri=f"python:{path}",
            title=path,
            content=f"{text}\n{_source_line(metadata, origin)}\n",
            document_type=self._spec.document_type or DocumentType.REFERENCE,
            tags=self._spec.tags,
            metadata=metadata,
        )


def _methods(item: Any) -> list[tuple[str, Any]]:
    methods: dict[str, Any] = {}
    bases = bases_of(item)
    public = [base for base in bases if not base.name.startswith("_") and is_exported(base)]
    for source in [item, *(base for base in bases if base not in public)]:
        for name, member in source.members.items():
            if name.startswith("_") and name != "__call__":
                continue
            target = target_of(member)
            if target is None or name in methods:
                continue
            if target.is_function or (target.is_attribute and "property" in target.labels):
                methods[name] = target
    return sorted((name, method) for name, method in methods.items() if method.docstring)


def _has_own_page(method: Any) -> bool:
    return len(method.docstring.value) >= _OWN_PAGE


def _module_page(entry: PublicObject) -> str:
    item = entry.item
    members = sorted(public_members(item), key=lambda pair: pair[0])
    if not item.docstring and not members:
        return ""

    def mentioned(kind: str) -> list[str]:
        named = ((name, member) for name, member in members if getattr(member, kind))
        return [_mention(f"{entry.path}.{name}", member) for name, member in named]

    return page(
        _heading(1, entry.path),
        to_markdown(item.docstring) if item.docstring else "",
        section("## Modules", mentioned("is_module")),
        section("## Classes", mentioned("is_class")),
        section("## Functions", mentioned("is_function")),
    )


def _class_page(entry: PublicObject, methods: list[tuple[str, Any]]) -> str:
    item = entry.item
    if not item.docstring and not methods:
        return ""
    if entry.accessor:
        opening = [f"Accessor: an attribute of {code_span(entry.path.rpartition('.')[0])}."]
    else:
        opening = [fence(f"class {signature(entry.path, item)}", "python")]
        bases = ", ".join(code_span(str(base)) for base in item.bases)
        opening += [f"Bases: {bases}"] if bases else []
    initial = item.members.get("__init__")
    documented = [item, *([] if initial is None or initial.is_alias else [initial])]
    paths = [(f"{entry.path}.{name}", method) for name, method in methods]
    own_pages = [_mention(path, method) for path, method in paths if _has_own_page(method)]
    level = 3 if own_pages else 2
    return page(
        _heading(1, entry.path),
        *opening,
        *(to_markdown(each.docstring) for each in documented if each.docstring),
        section("## Attributes", _attributes(item)),
        section("## Inherited", _inherited(item)),
        section("## Methods", own_pages),
        *(
            block
            for path, method in paths
            if not _has_own_page(method)
            for block in (_heading(level, path), *_body(path, method))
        ),
    )


def _function_page(path: str, item: Any) -> str:
    return page(_heading(1, path), *_body(path, item)) if item.docstring else ""


def _body(path: str, item: Any) -> list[str]:
    if item.is_attribute:
        called = _property(item)
    else:
        # overloads replace the implementation's signature
        shown = getattr(item, "overloads", None) or [item]
        called = fence("\n".join(signature(path, part) for part in shown), "python")
    return [called, to_markdown(item.docstring)]


def _heading(level: int, path: str) -> str:
    text = code_span(path) if escape(path) != path else path
    return f"{'#' * level} {text} {{#{path}}}"


def _mention(path: str, item: Any) -> str:
    return labelled(f"-   {code_span(path)}", summary(item.docstring))


def _attributes(item: Any) -> list[str]:
    lines = []
    for name, member in sorted(item.members.items()):
        if name.startswith("_") or member.is_alias or not member.is_attribute:
            continue
        if "property" in member.labels or not (member.docstring or member.annotation):
            continue
        kind = f" ({code_span(str(member.annotation))})" if member.annotation else ""
        lines.append(labelled(f"-   {code_span(name)}{kind}", summary(member.docstring)))
    return lines


def _property(item: Any) -> str:
    kind = f", {code_span(str(item.annotation))}" if item.annotation else ""
    change = "can be set" if getattr(item, "setter", None) is not None else "read only"
    return f"Property{kind}, {change}."


def _inherited(item: Any) -> list[str]:
    lines = []
    own = set(item.members)
    for base in bases_of(item):
        if base.name.startswith("_") or not is_exported(base):
            continue
        names = [
            name
            for name, member in sorted(base.members.items())
            if not name.startswith("_") and name not in own and not member.is_alias
        ]
        own.update(names)
        if names:
            listed = ", ".join(code_span(name) for name in names)
            lines.append(f"-   {code_span(base.name)}: {listed}")
    return lines


def _source_line(metadata: dict[str, Any], origin: CodeOrigin) -> str:
    place = code_span(metadata["file"]) if metadata["file"] else "compiled code"
    if "line" in metadata:
        place += f", line {metadata['line']}"
    named = " ".join(part for part in (origin.distribution, origin.version) if part)
    if origin.repository:
        return f"Source: {place}, in [{escape(named or origin.repository)}]({origin.repository})"
    return f"Source: {place}" + (f", in {escape(named)}" if named else "")


def _file(item: Any) -> str:
    """Return the path of the source file, relative to the folder of the package."""
    place = item.extra[KEY].get("file", item.filepath)
    if isinstance(place, list):
        place = place[0] if place else ""
    path = Path(place)
    top = item.package.filepath
    if isinstance(top, Path):
        folder = top.parent.parent if top.stem == "__init__" else top.parent
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    return path.name
