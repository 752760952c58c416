"""The source ``package``: the public API of an installed Python package, from its docstrings.

griffe reads the source files. Without `introspect`, nothing of the package is imported or run.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Any

from kbkit.models import DocumentType, License, SourceDocument
from kbkit.models.licenses import standard_name
from kbkit.paths import matches
from kbkit.recipes import PackageSource
from kbkit.sources import Outcome, SourceContext, SourceEvent
from kbkit.sources.package import introspection
from kbkit.sources.page_templates import fill_template
from kbkit.sources.restructured_text import signature, summary, to_markdown
from kbkit.text.markdown.structure import plain_text
from kbkit.text.markdown.writing import code_span, escape

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
    summary: str = ""


def origin_of(name: str) -> CodeOrigin:
    package = distribution_of(name)
    if package is None:
        return CodeOrigin()
    place, described = _declared_repository(package), next(iter(_stated(package, "Summary")), "")
    return CodeOrigin(package.name, package.version or "", place, _license(package), described)


def distribution_of(name: str) -> metadata.Distribution | None:
    """Return the installed distribution of a module.

    `importlib.metadata.packages_distributions` would look at each file of all distributions.
    """
    top = name.partition(".")[0]
    with suppress(metadata.PackageNotFoundError):
        return metadata.distribution(top)
    owned = re.compile(rf"^{re.escape(top)}(?:[/.]|$)", re.MULTILINE)
    for package in metadata.distributions():
        # Debian's and editable distributions do not list the files of their modules
        if any(owned.search(package.read_text(name) or "") for name in ("RECORD", "top_level.txt")):
            return package
    return None


def _stated(package: metadata.Distribution, key: str) -> list[str]:
    return [str(value).strip() for value in package.metadata.get_all(key) or []]


def _license(package: metadata.Distribution) -> License:
    classifiers = [
        line.rpartition("::")[2].strip()
        for line in _stated(package, "Classifier")
        if line.startswith("License ::") and line.count("::") > 1
    ]
    # some packages state the whole license text
    license_lines = [
        line.strip() for text in _stated(package, "License") for line in text.split("\n")
    ]
    names = [*_stated(package, "License-Expression"), *license_lines[:1], *classifiers]
    licenses = [License.stated(name) for name in names if not _NOTICE.match(name)]
    recognized = next((license for license in licenses if standard_name(license.name)), None)
    notice = next((line for line in license_lines if _NOTICE.match(line)), "")
    license = recognized or next(filter(None, licenses), License())
    return license.or_else(License.stated(attribution=notice))


def _declared_repository(package: metadata.Distribution) -> str:
    """Return the repository in the metadata, preferably with a matching label."""
    urls: dict[str, str] = {}
    for line in _stated(package, "Project-URL"):
        label, _, url = line.partition(",")
        urls.setdefault(re.sub(r"[\W_]", "", label).lower(), url.strip())
    for url in _stated(package, "Home-page"):
        urls.setdefault("homepage", url)
    preferred = (urls.get(label, "") for label in _NAMES)
    return next(filter(None, map(repository, (*preferred, *urls.values()))), "")


def repository(url: str) -> str:
    match = _REPOSITORY.fullmatch(url)
    return f"https://{match[1]}/{match[2]}" if match else ""


_OWN_PAGE = 400  # minimum characters of docstring for a method's own document


def read_package(spec: PackageSource, context: SourceContext) -> Iterator[SourceEvent]:
    """Read the public API of an installed package: a document per module, class and function.

    A method with a long docstring is a document too; others are sections of their class. Names in
    ``__all__`` are public, or else names without a leading underscore and a package's re-exports
    from its own modules. An object has the shortest of its paths. Members inherited from a private
    class are written out, those of a public base are listed by name. Each document ends with the
    location of its source.
    """
    root = introspection.load_package(spec.name)
    origin = origin_of(spec.name)
    entries = introspection.public_objects(root, spec.name)
    if spec.introspect:
        entries = introspection.with_introspection(root, entries)
    documents = (document for entry in entries for document in _documents(entry, origin))
    wanted = (each for each in documents if not matches(each.title, spec.exclude))
    for document in islice(wanted, spec.limit):
        if context.stop():
            return
        yield SourceEvent(document.uri, Outcome.FETCHED, document)


def _documents(entry: introspection.PublicObject, origin: CodeOrigin) -> Iterator[SourceDocument]:
    methods = _methods(entry.item) if entry.item.is_class else []
    for name, method in methods:
        if _has_own_page(method):
            path = f"{entry.path}.{name}"
            yield _document(path, method, _page(path, method), origin)
    if text := _page(entry.path, entry.item, methods, accessor=entry.accessor):
        yield _document(entry.path, entry.item, text, origin)


def _document(path: str, item: Any, text: str, origin: CodeOrigin) -> SourceDocument:
    file = _file(item)
    values = {
        "line": item.lineno,
        "version": origin.version,
        "repository": origin.repository,
        **origin.license.to_metadata(),
        "description": plain_text(summary(item.docstring)),
    }
    filled = {key: value for key, value in values.items() if value}
    return SourceDocument(
        uri=f"python:{path}",
        title=path,
        content=f"{text}\n{_source_line(file, item.lineno, origin)}\n",
        document_type=DocumentType.REFERENCE,
        metadata={"kind": item.kind.value, "file": file, **filled},
    )


def _methods(item: Any) -> list[tuple[str, Any]]:
    methods: dict[str, Any] = {}
    bases = introspection.bases_of(item)
    public = introspection.public_bases(item)
    for source in [item, *(base for base in bases if base not in public)]:
        for name, member in source.members.items():
            if name.startswith("_") and name != "__call__":
                continue
            target = introspection.target_of(member)
            if target is None or name in methods:
                continue
            if target.is_function or (target.is_attribute and "property" in target.labels):
                methods[name] = target
    return sorted((name, method) for name, method in methods.items() if method.docstring)


def _has_own_page(method: Any) -> bool:
    return len(method.docstring.value) >= _OWN_PAGE


def _page(
    path: str, item: Any, methods: Sequence[tuple[str, Any]] = (), *, accessor: bool = False
) -> str:
    """Write the page of an object; ``""`` if nothing is documented."""
    members = sorted(introspection.public_members(item)) if item.is_module else []
    if not (item.docstring or members or methods):
        return ""
    initial = item.members.get("__init__")
    return fill_template(
        "object.md.j2",
        path=path,
        item=item,
        accessor=accessor,
        initial=None if initial is None or initial.is_alias else initial.docstring,
        members=members,
        long=[pair for pair in methods if _has_own_page(pair[1])],
        short=[pair for pair in methods if not _has_own_page(pair[1])],
        attributes=_attributes(item),
        inherited=_inherited_lines(item),
        title=_title,
        signature=signature,
        signatures=_signatures,
        summary=summary,
        to_markdown=to_markdown,
    )


def _title(path: str) -> str:
    text = code_span(path) if escape(path) != path else path
    return f"{text} {{#{path}}}"


def _signatures(path: str, item: Any) -> str:
    # overloads replace the implementation's signature
    overloads = getattr(item, "overloads", None) or [item]
    return "\n".join(signature(path, part) for part in overloads)


def _attributes(item: Any) -> list[tuple[str, Any]]:
    return [
        (name, member)
        for name, member in sorted(item.members.items())
        if not name.startswith("_") and not member.is_alias and member.is_attribute
        if "property" not in member.labels and (member.docstring or member.annotation)
    ]


def _inherited_lines(item: Any) -> list[tuple[str, list[str]]]:
    """Return the names that a class inherits from each public base."""
    inherited: dict[str, str] = {}  # base of each name
    for base in introspection.public_bases(item) if item.is_class else ():
        for name, member in base.members.items():
            if not name.startswith("_") and name not in item.members and not member.is_alias:
                inherited.setdefault(name, base.name)
    bases = dict.fromkeys(inherited.values())
    return [(base, sorted(name for name in inherited if inherited[name] == base)) for base in bases]


def _source_line(file: str, line: int | None, origin: CodeOrigin) -> str:
    location = code_span(file) if file else "compiled code"
    if line:
        location += f", line {line}"
    label = " ".join(part for part in (origin.distribution, origin.version) if part)
    if origin.repository:
        return f"Source: {location}, in [{escape(label or origin.repository)}]({origin.repository})"
    return f"Source: {location}" + (f", in {escape(label)}" if label else "")


def _file(item: Any) -> str:
    """Return the path of the source file, relative to the folder of the package."""
    place = item.extra[introspection.KEY].get("file", item.filepath)
    if isinstance(place, list):
        place = place[0] if place else ""
    path = Path(place)
    top = item.package.filepath
    if isinstance(top, Path):
        folder = top.parent.parent if top.stem == "__init__" else top.parent
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    return path.name
