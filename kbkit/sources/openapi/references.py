"""Follows ``$ref`` in API descriptions: inside the description, and to files beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from kbkit.regular_files import bytes_of
from kbkit.sources.decode import decode
from kbkit.sources.json_yaml import load_values

_CHAIN = 20  # references that only lead to another reference
_FILES = 200
_FILE_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a description and the file that it stands in.

    Attributes:
        value: JSON values.
        file: Path of its file, or ``None`` for the description itself.
        name: Last part of the reference that led here, or ``""``.
        ref: The reference that led here, absolute; ``""`` for a part that stands in place.
    """

    value: Any
    file: Path | None = None
    name: str = ""
    ref: str = ""

    def get(self, key: str) -> Node:
        """A member, ``Node(None)`` where there is none."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return Node(value, self.file)

    def items(self) -> list[tuple[str, Node]]:
        """The members of a mapping; nothing for anything else."""
        if not isinstance(self.value, dict):
            return []
        return [(str(key), Node(value, self.file)) for key, value in self.value.items()]

    def parts(self) -> list[Node]:
        """The members of a list; nothing for anything else."""
        if not isinstance(self.value, list):
            return []
        return [Node(value, self.file) for value in self.value]

    def text(self, key: str) -> str:
        """A member that is text (or a number), folded to one line."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            return ""
        return " ".join(str(value).split())[:1000]


@dataclass(slots=True)
class References:
    """The references of one description.

    Args:
        root: The description.
        path: Its file, when it is one; references to other files lead there or below only.
        problems: Why references could not be followed, by reference.
    """

    root: Any
    path: Path | None = None
    problems: dict[str, str] = field(default_factory=dict)
    _files: dict[Path, Any] = field(default_factory=dict)

    def resolve(self, node: Node) -> Node:
        """What a part stands for: itself, or what its ``$ref`` leads to.

        Members beside a ``$ref`` (3.1 allows a description) win over those behind it.
        A reference that cannot be followed is noted in ``problems`` and gives an empty mapping.
        """
        beside: dict[str, Any] = {}
        first: Node | None = None
        for _ in range(_CHAIN):
            value = node.value
            if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
                break
            ref = value["$ref"]
            beside = {**{k: v for k, v in value.items() if k != "$ref"}, **beside}
            node = self._follow(ref, node.file)
            first = first or node
        else:
            self.problems.setdefault(node.ref, "references that lead in a circle")
            node = Node({}, node.file)
        if first is None:
            return node
        value = node.value
        if beside and isinstance(value, dict):
            value = {**value, **beside}
        return Node(value, node.file, first.name, first.ref)

    def _follow(self, ref: str, file: Path | None) -> Node:
        place, _, pointer = ref.partition("#")
        name = unquote(pointer.rpartition("/")[2]).replace("~1", "/").replace("~0", "~")
        target = file
        try:
            if place:
                target = self._file(place, file)
                name = name or Path(place).stem
            value = self.root if target is None else self._load(target)
            for part in pointer.split("/")[1:]:
                key = unquote(part).replace("~1", "/").replace("~0", "~")
                value = value[int(key)] if isinstance(value, list) else value[key]
        except (LookupError, TypeError):
            self.problems.setdefault(ref, f"{ref}: leads nowhere")
            return Node({}, target, name, ref)
        except ValueError as error:
            self.problems.setdefault(ref, f"{ref}: {error}")
            return Node({}, target, name, ref)
        return Node(value, target, name, f"{target or ''}#{pointer}")

    def _file(self, place: str, file: Path | None) -> Path | None:
        if self.path is None or urlsplit(place).scheme or place.startswith("//"):
            raise ValueError("leads to another file or address, which is not fetched; bundle "
                             "the description into one file")  # fmt: skip
        folder = self.path.resolve().parent
        start = folder if file is None else file.parent
        target = (start / unquote(place)).resolve()
        if not target.is_relative_to(folder):
            raise ValueError("leads out of the description's folder")
        return None if target == self.path.resolve() else target

    def _load(self, path: Path) -> Any:
        if path not in self._files:
            if len(self._files) >= _FILES:
                raise ValueError(f"more than {_FILES} files belong to the description")
            self._files[path] = None  # whatever happens, it is read once
            try:
                data = bytes_of(path, _FILE_BYTES + 1)
                if len(data) > _FILE_BYTES:
                    raise ValueError(f"larger than {_FILE_BYTES / 1e6:g} MB")
                self._files[path] = load_values(decode(data, markup=False))
            except OSError as error:
                raise ValueError(f"cannot be read ({error.strerror})") from None
        return self._files[path]
