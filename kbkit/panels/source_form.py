"""Forms for sources, generated from their models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import ipywidgets as widgets
from pydantic.fields import FieldInfo
from traitlets import Bunch

from kbkit.errors import ConfigError, SourceError
from kbkit.models import IngestReport, Problem, SourceDocument
from kbkit.panels import controls
from kbkit.panels.controls import AnyBase
from kbkit.recipes import AnySource, SourceSpec, parse_source
from kbkit.recipes.base import meanings
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
        schema, help_texts = model.model_json_schema(by_alias=False), meanings(model)
        self._shapes = {
            name: _shapes(field_schema, schema.get("$defs", {}))
            for name, field_schema in schema["properties"].items()
        }
        self.controls = {
            name: _make(name, field, self._shapes[name], help_texts[name])
            for name, field in model.model_fields.items()
            if name != "type"
        }
        places = [box for name, box in self.controls.items() if name in _PLACES]
        optional = [box for name, box in self.controls.items() if name not in _PLACES]
        for box in places:
            box.add_class("kbkit-query")
        self._others = controls.row(*optional)
        controls.show(self._others, visible=False)
        self.more = controls.toggle("More options")
        self.more.observe(self._on_toggle, "value")
        super().__init__([controls.row(*places, self.more), self._others])

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
                if _is_list(self._shapes[name]):
                    value = [part.strip() for part in value.split(",") if part.strip()]
            values[name] = value
        try:
            return parse_source(values)
        except ConfigError as error:
            name, _, message = str(error).partition(": ")
            if name not in self.controls:
                raise
            raise ConfigError(f"{_label(name)}: {message}") from None

    def _on_toggle(self, change: Bunch) -> None:
        controls.show(self._others, visible=change["new"])
        self.more.description = "Fewer options" if change["new"] else "More options"


def _make(name: str, field: FieldInfo, shapes: Sequence[Mapping[str, Any]], meaning: str) -> Any:
    label = _label(name)
    hint = " ".join(meaning.split())
    if any(shape.get("type") == "boolean" for shape in shapes):
        on = bool(field.default)
        box = controls.make(widgets.Checkbox, label, value=on, tooltip=hint, indent=False)
        return box.add_class("kbkit-check")
    if all("enum" in shape or shape.get("type") == "null" for shape in shapes):
        unset = ("Detected" if name == "document_type" else "Default", "")
        values = [str(value) for shape in shapes for value in shape.get("enum", ())]
        choices = [(value.replace("_", " "), value) for value in values]
        return controls.make(
            widgets.Dropdown, label, options=[unset, *choices], value="", tooltip=hint
        )
    default = "" if field.is_required() or field.default in (None, (), "") else str(field.default)
    if _is_list(shapes):
        default = "separated by commas"
    return controls.make(widgets.Text, label, placeholder=default, tooltip=hint)


def _label(name: str) -> str:
    return _WORDS.get(name, name.replace("_", " ").capitalize())


def _shapes(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the alternatives of a field's JSON schema."""
    if "$ref" in schema:
        return _shapes(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return [shape for each in schema["anyOf"] for shape in _shapes(each, definitions)]
    return [schema]


def _is_list(shapes: Sequence[Mapping[str, Any]]) -> bool:
    return any(shape.get("type") == "array" for shape in shapes)


def add_files(
    kb: AnyBase,
    files: Sequence[tuple[str, bytes]],
    on_progress: OnProgress,
    stop: Callable[[], bool],
) -> IngestReport:
    """Ingest files, given by name and content; one of the same name is replaced."""
    from kbkit.sources.files import read_file

    documents: list[SourceDocument] = []
    skipped: list[Problem] = []
    for name, data in files:
        if stop():
            return IngestReport(interrupted=True)
        try:
            documents += (replace(each, uri=f"upload:{each.uri}") for each in read_file(name, data))
        except SourceError as error:
            skipped.append(Problem(name, str(error).removeprefix(f"{name}: ")))
    report = IngestReport()
    if documents:
        report = kb.ingest(documents, remember=False, on_progress=on_progress, stop=stop)
    return replace(report, skipped=(*report.skipped, *skipped))
