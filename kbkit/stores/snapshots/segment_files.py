"""Files of a knowledge base's segments, and their list.

A segment's file is written once, under a new name. The list is replaced atomically. Files on no
list are removed later.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
import zlib
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.snapshots import near_chunks
from kbkit.stores.snapshots.chunk_table import CHECKED, PART, forget_pages
from kbkit.stores.snapshots.segments import (
    DocumentNumbers,
    LaterSummaries,
    Segment,
    SegmentedSnapshot,
    SegmentsVersion,
    join_segments,
)
from kbkit.stores.snapshots.snapshot import (
    Snapshot,
    codes_of,
    codes_path,
    load,
    load_summaries,
    save,
    save_summaries,
    write_codes,
)

_LIST = ".json"
_FILE = ".safetensors"
_FORMAT = 5
_OLD_SECONDS = 600
"""Age at which unlisted and unfinished files are deleted."""
_TRIES = 3
"""Attempts to read a list, whose files another process may remove."""

_CRC = "crc"
_DAMAGED = (OSError, KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError)
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class SegmentFiles:
    """Segment files of a workspace, each mapped once."""

    folder: Path
    _mapped: dict[str, Snapshot] = field(default_factory=dict)

    def keep(self, kb_id: str, segment: Segment) -> Segment:
        """Return a segment mapped from its file; write the file if there is none."""
        if segment.file:
            return segment
        name = f"{kb_id}.{uuid4().hex}{_FILE}"
        save(segment.snapshot, self.folder / name)
        snapshot = self._load(name)
        if snapshot is None:
            raise OSError(f"{name}: cannot be read as it was written")
        self._mapped[name] = snapshot
        return replace(segment, snapshot=snapshot, file=name)

    def _load(self, name: str) -> Snapshot | None:
        snapshot = load(self.folder / name)
        if snapshot is not None:
            snapshot.kept["file"] = self.folder / name
        return snapshot

    def write_codes(self, snapshot: SegmentedSnapshot) -> None:
        for segment in snapshot.segments:
            if not segment.file or codes_of(segment.snapshot) is not None:
                continue
            segment.snapshot.kept.pop("codes", None)  # another process may have written them
            if codes_of(segment.snapshot) is None:
                write_codes(codes_path(self.folder / segment.file), segment.snapshot.vectors)
                forget_pages(segment.snapshot.vectors)
                segment.snapshot.kept.pop("codes", None)
        near_chunks.forget(snapshot)  # another process may have written them
        for part in snapshot.summary_parts():
            if part.coded is not None and part.codes() is None:
                write_codes(part.coded, part.vectors)
        near_chunks.forget(snapshot)

    def write(self, kb_id: str, snapshot: SegmentedSnapshot) -> SegmentedSnapshot:
        segments = [self.keep(kb_id, segment) for segment in snapshot.segments]
        updated = sorted(
            {number for summaries in snapshot.summaries for number in summaries.numbers.tolist()}
        )
        summaries: tuple[LaterSummaries, ...] = ()
        name = ""
        if updated:
            ids = [snapshot.document_ids[number] for number in updated]
            vectors = snapshot.summaries_of(ids)
            name = f"{kb_id}.{uuid4().hex}.summaries{_FILE}"
            save_summaries(self.folder / name, snapshot.summary_embedder, ids, vectors)
            numbers = np.array(updated, np.int32)
            summaries = (self._later_summaries(snapshot.about, name, numbers, vectors),)
        values = {
            "format": _FORMAT,
            **asdict(snapshot.about),
            "summaries": name,
            "segments": [
                {"file": segment.file, "gone": segment.gone.tolist()} for segment in segments
            ],
        }
        self._replace(kb_id, json.dumps({**values, _CRC: _crc(values)}))
        used = {segment.file for segment in segments}
        for file in list(self._mapped):
            if file.startswith(f"{kb_id}.") and file not in used:
                self._mapped.pop(file, None)
        return replace(snapshot, segments=tuple(segments), summaries=summaries)

    def _replace(self, kb_id: str, text: str) -> None:
        path = self.path(kb_id)
        part = path.with_suffix(f".{uuid4().hex}{PART}")
        try:
            with part.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def read(self, kb_id: str, numbers: DocumentNumbers | None = None) -> SegmentedSnapshot | None:
        """Return the stored snapshot; ``None`` if there is none or a file is missing or damaged."""
        for _ in range(_TRIES):
            try:
                values = json.loads(self.path(kb_id).read_bytes())
                if values["format"] != _FORMAT:
                    return None  # written by another version of kbkit
                if values.pop(_CRC) != _crc(values):
                    raise ValueError(f"{self.path(kb_id).name} is not as it was written")
                return self._read(values, numbers or DocumentNumbers())
            except FileNotFoundError as error:
                if error.filename == str(self.path(kb_id)):
                    return None
            except _DAMAGED as error:
                reason = error if isinstance(error, ValueError) else type(error).__name__
                _log.warning("%s: %s; the snapshot is rebuilt", self.folder, reason)
                return None
        return None

    def is_outdated(self, kb_id: str) -> bool:
        """Whether another version of kbkit wrote the list."""
        with contextlib.suppress(*_DAMAGED):
            return bool(json.loads(self.path(kb_id).read_bytes())["format"] != _FORMAT)
        return False

    def _read(self, values: Any, numbers: DocumentNumbers) -> SegmentedSnapshot:
        about = SegmentsVersion(*(values[each.name] for each in fields(SegmentsVersion)))
        segments = [self._segment(each["file"], each["gone"]) for each in values["segments"]]
        snapshot = join_segments(about, segments, numbers)
        if not values["summaries"]:
            return snapshot
        summaries = load_summaries(self.folder / _name(values["summaries"]))
        if summaries is None or summaries[0] != about.summary_embedder:
            raise ValueError("summaries that cannot be read")
        number_of = numbers.find(summaries[1])
        known = [i for i, each in enumerate(summaries[1]) if each in number_of]
        later = self._later_summaries(
            about,
            values["summaries"],
            np.array([number_of[summaries[1][i]] for i in known], np.int32),
            summaries[2] if len(known) == len(summaries[1]) else summaries[2][known],
        )
        return replace(snapshot, summaries=(later,))

    def _later_summaries(
        self,
        about: SegmentsVersion,
        name: str,
        numbers: NDArray[np.int32],
        vectors: NDArray[np.float32],
    ) -> LaterSummaries:
        coded = codes_path(self.folder / name)
        return LaterSummaries(
            about.summaries_version, about.summary_embedder, numbers, vectors, coded
        )

    def _segment(self, name: str, gone: list[int]) -> Segment:
        snapshot = self._mapped.get(name)
        if snapshot is None:
            path = self.folder / _name(name)
            snapshot = self._load(name)
            if snapshot is None:
                path.stat()  # if the file is missing, the list is read again
                raise ValueError(f"{name} is damaged")
            self._mapped[name] = snapshot
        return Segment(snapshot, name, np.array(gone, np.int64))

    def path(self, kb_id: str) -> Path:
        return self.folder / f"{kb_id}{_LIST}"

    def stamp(self, kb_id: str) -> tuple[int, int] | None:
        try:
            status = self.path(kb_id).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    def drop(self, kb_id: str) -> None:
        with contextlib.suppress(OSError):
            for file in list(self.folder.glob(f"{kb_id}.*")):
                self._mapped.pop(file.name, None)
                file.unlink(missing_ok=True)

    def sweep(self, kb_ids: Collection[str]) -> None:
        with contextlib.suppress(OSError):
            used = {self.path(kb_id).name for kb_id in kb_ids}
            used = used.union(*map(self._names_on_list, kb_ids))
            before = time.time() - _OLD_SECONDS
            for file in list(self.folder.iterdir()):
                is_ours = file.name.partition(".")[0] in kb_ids
                if is_ours and (file.name in used or file.stat().st_mtime > before):
                    continue
                self._mapped.pop(file.name, None)
                file.unlink(missing_ok=True)

    def paths_of(self, kb_id: str) -> list[Path]:
        return [
            self.folder / name
            for name in sorted(self._names_on_list(kb_id))
            if name.endswith(_FILE)
        ]

    def _names_on_list(self, kb_id: str) -> set[str]:
        """Return the files on a list and their companions; none if it is unreadable."""
        try:
            values = json.loads(self.path(kb_id).read_bytes())
            files = {str(each["file"]) for each in values["segments"]}
            if values["summaries"]:
                files.add(values["summaries"])
            made = [
                codes_path(Path(file), summaries=of).name for file in files for of in (False, True)
            ]
            files.update(made)
            return files | {file + CHECKED for file in files}
        except _DAMAGED:
            return set()


def _crc(values: Any) -> int:
    return zlib.crc32(json.dumps(values, sort_keys=True).encode())


def _name(name: str) -> str:
    if name != Path(name).name or not name.endswith(_FILE):
        raise ValueError(f"{name!r} is not a file name")
    return name
