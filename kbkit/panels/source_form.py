"""Forms for sources, generated from their models."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import ipywidgets as widgets
from pydantic.fields import FieldInfo
from traitlets import Bunch

from kbkit.errors import ConfigError, NotFoundError, SourceError
from kbkit.models import IngestReport, Problem, Progress
from kbkit.panels.controls import control, row, show, toggle
from kbkit.recipes import AnySource, SourceSpec, parse_source
from kbkit.recipes.base import meanings

if TYPE_CHECKING:
    from kbkit.panels.controls import AnyBase
    from kbkit.runtime.progress import OnProgress


_PLACES = ("url", "path", "name", "base_url")
_LABELS = {
    "crawl": "Web site",
    "page": "One page",
    "files": "Files",
    "openapi": "API description (OpenAPI)",
    "package": "Python package",
    "mirror": "Saved site (folder, archive, WARC)",
    "jsonl": "JSON lines",
    "parquet": "Parquet",
}
_WORDS = {"url": "URL", "base_url": "Base URL", "allow_private": "Allow private addresses"}


def source_models() -> dict[str, type[SourceSpec]]:
    """Return the models of all sources by type; labelled ones first."""
    union = get_args(AnySource)[0]
    models = {model.model_fields["type"].default: model for model in get_args(union)}
    return {kind: models[kind] for kind in [*_LABELS, *models] if kind in models}


def source_label(kind: str) -> str:
    return _LABELS.get(kind, kind.replace("_", " ").capitalize())


# ipywidgets has no types, so its classes are `Any` to the type checker.
class SourceForm(widgets.VBox):  # type: ignore[misc]
    """The fields of one type of source; a button shows the optional ones.

    Attributes:
        controls: Controls by name of the field.
    """

    def __init__(self, model: type[SourceSpec]) -> None:
        self._model = model
        fields = {name: field for name, field in model.model_fields.items() if name != "type"}
        help_texts = meanings(model)
        self.controls = {
            name: _make(name, field, help_texts[name]) for name, field in fields.items()
        }
        places = [box for name, box in self.controls.items() if name in _PLACES]
        others = [box for name, box in self.controls.items() if name not in _PLACES]
        for box in places:
            box.add_class("kbkit-query")
        self._others = row(*others)
        show(self._others, visible=False)
        self.more = toggle("More options")
        self.more.observe(self._on_toggle, "value")
        super().__init__([row(*places, self.more), self._others])

    def source(self) -> Any:
        """Return the source that the form describes.

        Raises:
            ConfigError: A field is wrong; the message names it.
        """
        values: dict[str, Any] = {"type": self._model.model_fields["type"].default}
        for name, box in self.controls.items():
            value = box.value
            if isinstance(value, str):
                value = value.strip()
                if not value:
                    continue
                if _is_list(self._model.model_fields[name].annotation):
                    value = [part.strip() for part in value.split(",") if part.strip()]
            values[name] = value
        try:
            return parse_source(values)
        except ConfigError as error:
            name, _, message = str(error).partition(": ")
            if name not in self.controls:
                raise
            raise ConfigError(f"{_label(name)}: {message}") from None

    def enable(self, enabled: bool) -> None:
        """Enable or disable the controls."""
        for box in self.controls.values():
            box.disabled = not enabled

    def _on_toggle(self, change: Bunch) -> None:
        show(self._others, visible=change["new"])
        self.more.description = "Fewer options" if change["new"] else "More options"


def _make(name: str, field: FieldInfo, meaning: str) -> Any:
    label = _label(name)
    hint = " ".join(meaning.split())
    choices = _choices(field.annotation)
    if bool in _parts(field.annotation):
        on = bool(field.default)
        box = control(widgets.Checkbox, label, value=on, tooltip=hint, indent=False)
        return box.add_class("kbkit-check")
    if choices:
        unset = ("Detected" if name == "document_type" else "Default", "")
        named = [(str(one).replace("_", " "), str(one)) for one in choices if one is not None]
        return control(widgets.Dropdown, label, options=[unset, *named], value="", tooltip=hint)
    default = "" if field.is_required() or field.default in (None, (), "") else str(field.default)
    if _is_list(field.annotation):
        default = "separated by commas"
    return control(widgets.Text, label, placeholder=default, tooltip=hint)


def _label(name: str) -> str:
    return _WORDS.get(name, name.replace("_", " ").capitalize())


def _parts(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(part for inner in get_args(annotation) for part in _parts(inner))
    if get_origin(annotation) is Annotated:
        return _parts(get_args(annotation)[0])
    return (annotation,)


def _choices(annotation: Any) -> list[Any]:
    choices: list[Any] = []
    for part in _parts(annotation):
        if part is type(None):
            choices.append(None)
        elif get_origin(part) is Literal:
            choices += get_args(part)
        elif isinstance(part, type) and issubclass(part, StrEnum):
            choices += list(part)
        else:
            return []
    return choices


def _is_list(annotation: Any) -> bool:
    return any(get_origin(part) is tuple for part in _parts(annotation))


def add_files(
    kb: AnyBase,
    files: Sequence[tuple[str, bytes]],
    on_progress: OnProgress,
    stop: Callable[[], bool],
) -> IngestReport:
    """Ingest files, given by name and content; one of the same name is replaced."""
    from kbkit.sources.files import read_file

    new = changed = same = 0
    skipped: list[Problem] = []
    report = IngestReport()
    for number, (name, data) in enumerate(files, 1):
        if stop():
            return replace(report, interrupted=True)
        try:
            documents = read_file(name, data)
        except SourceError as error:
            skipped.append(Problem(name, str(error).removeprefix(f"{name}: ")))
            documents = []
        for document in documents:
            uri = f"upload:{document.uri}"
            try:
                before = kb.documents[uri].content_hash
            except NotFoundError:
                before = ""
            kb.add(
                document.title,
                document.content,
                source=uri,
                document_type=document.document_type,
                tags=document.tags,
                metadata=document.metadata,
            )
            after = kb.documents[uri].content_hash
            new += not before
            changed += bool(before) and before != after
            same += before == after
        report = IngestReport(
            new=new, changed=changed, same=same, fetched=number, skipped=tuple(skipped)
        )
        on_progress(Progress("store", number, len(files), name, report))
    return report
