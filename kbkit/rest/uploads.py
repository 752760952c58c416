"""Folders that somebody sends, for methods that read folders."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import UploadFile

from kbkit.errors import (
    ArgumentError,
    ConflictError,
    EntryFormatError,
    InvalidPathError,
    KbkitError,
)
from kbkit.files.paths import collision_key, joined, parts_of

MOST_FILES = 5_000
"""Files of a folder that is sent."""


class Base64(BaseModel):
    """What a file holds that is no text."""

    model_config = ConfigDict(extra="forbid")

    base64: Annotated[
        str,
        Field(
            pattern="^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
            description="Its bytes in Base64.",
        ),
    ]


Content = str | Base64
"""A file as JSON: its text, or its bytes."""


def bytes_of(path: str, content: Content) -> bytes:
    """What a file holds that came as JSON.

    Raises:
        ArgumentError: It cannot be read.
    """
    try:
        return content.encode() if isinstance(content, str) else b64decode(content.base64)
    except ValueError as error:
        raise ArgumentError(f"files: {path[:200]!r}: {error}") from None


@contextmanager
def sent_folder(files: Mapping[str, bytes], name: Literal["sent", ".knowledge"]) -> Iterator[Path]:
    """A folder with files that somebody sent, as long as the block lasts.

    What goes wrong inside names paths within it, as who sent it knows them.

    Args:
        files: What they hold, by path.
        name: What the folder is called.

    Raises:
        FilesError: A path leads out of the folder, or cannot be one on every system.
        EntryFormatError: There are too many, or two are called the same on some systems.
    """
    if len(files) > MOST_FILES:
        raise EntryFormatError(f"a folder may have {MOST_FILES:,} files at most")
    with TemporaryDirectory(prefix="kbkit-") as temporary:
        root = Path(temporary).resolve() / name
        root.mkdir()
        seen: dict[str, str] = {}
        for path, data in files.items():
            parts = parts_of(path)
            if not parts:
                raise InvalidPathError("a file that was sent has no name")
            for end in range(1, len(parts) + 1):
                here = joined(parts[:end])
                if seen.setdefault(collision_key(here), here) != here:
                    raise EntryFormatError(
                        f"{here}: differs from another only in capitals, which some systems take "
                        "for the same name; nothing was taken over"
                    )
            place = root.joinpath(*parts)
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("xb") as file:
                    file.write(data)
            except OSError as error:
                raise EntryFormatError(
                    f"{joined(parts)}: cannot be written ({error.strerror}); nothing was taken over"
                ) from None
        try:
            yield root
        except KbkitError as error:
            shown = "" if name == "sent" else name
            text = str(error).replace(f"{root}/", f"{shown}/" if shown else "")
            error.args = (text.replace(str(root), shown or "the folder"), *error.args[1:])
            raise


class Folder(BaseModel):
    """A folder as JSON."""

    model_config = ConfigDict(extra="forbid")

    files: Annotated[
        dict[Annotated[str, Field(min_length=1)], Content],
        Field(
            min_length=1,
            max_length=MOST_FILES,
            description="What its files hold, by path: text, or `base64`.",
        ),
    ]
    task_id: Annotated[str, Field(max_length=500, description="What the task is called.")] = ""


class Upload(NamedTuple):
    """A folder that came with a request.

    Attributes:
        files: What they hold, by path.
        task_id: What the task is called that left it.
    """

    files: Mapping[str, bytes]
    task_id: str


async def _upload(request: Request) -> Upload:
    """A folder out of JSON, or of a form with its files."""
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        async with request.form(max_files=MOST_FILES, max_fields=10) as form:
            parts = [each for each in form.getlist("files") if isinstance(each, UploadFile)]
            files = {str(each.filename): await each.read() for each in parts}
            task = form.get("task_id", "")
            if not files or not isinstance(task, str):
                raise ArgumentError(
                    "files: send the files of the folder, each with its path as its filename"
                )
            if len(files) < len(parts):
                raise ConflictError("files: two have the same filename; give each its path")
            return Upload(files, task)
    try:
        folder = Folder.model_validate_json(await request.body())
    except ValidationError as error:
        raise RequestValidationError(
            [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        ) from None
    return Upload(
        {path: bytes_of(path, content) for path, content in folder.files.items()}, folder.task_id
    )


UploadOf = Annotated[Upload, Depends(_upload)]
"""Parameter of a handler: a folder that came with a request."""


def upload_body() -> dict[str, Any]:
    """What a route takes that has an `Upload`, for the OpenAPI document."""
    described = Folder.model_json_schema()
    base64 = described.pop("$defs")["Base64"]
    described["properties"]["files"]["additionalProperties"] = {
        "anyOf": [{"type": "string"}, base64]
    }
    form = {
        "type": "object",
        "required": ["files"],
        "properties": {
            "files": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "string", "format": "binary"},
                "description": "Its files; the `filename` of each is its path.",
            },
            "task_id": described["properties"]["task_id"],
        },
    }
    kinds = {"application/json": {"schema": described}, "multipart/form-data": {"schema": form}}
    return {"requestBody": {"required": True, "content": kinds}}
