"""Files of a knowledge base's segments, and their list.

A segment's file is written once, under a new name. The list is replaced atomically. Files that
are not on it are removed later.
"""

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

from kbkit.paths import replacing
from kbkit.stores.snapshots.array_files import CHECKED, check
from kbkit.stores.snapshots.segments import (
    DocumentNumbers,
    Segment,
    SegmentedSnapshot,
    SnapshotState,
    join_segments,
    merge_summaries,
)
from kbkit.stores.snapshots.snapshot import (
    DAMAGED,
    Snapshot,
    SummaryPart,
    codes_path,
    load,
    load_summaries,
    renew_codes,
    save,
    save_summaries,
)

_LIST = ".json"
_FILE = ".safetensors"
_FORMAT = 6
_TIER = 8
"""Size of a file of summaries, relative to newer ones, up to which they are merged."""
_OLD_SECONDS = 600
"""Age at which unlisted and unfinished files are deleted."""
_TRIES = 3
"""Attempts to read a list, whose files another process may remove."""

_CRC = "crc"
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
        self._mapped[name] = load(self.folder / name)
        return replace(segment, snapshot=self._mapped[name], file=name)

    def write_codes(self, snapshot: SegmentedSnapshot) -> None:
        for segment in () if snapshot.is_small else snapshot.segments:
            renew_codes(segment.snapshot)
        for part in snapshot.summaries:
            renew_codes(part)

    def write(self, kb_id: str, snapshot: SegmentedSnapshot) -> SegmentedSnapshot:
        segments = [self.keep(kb_id, segment) for segment in snapshot.segments]
        summaries = self._keep_summaries(kb_id, snapshot)
        values = {
            "format": _FORMAT,
            **asdict(snapshot.state),
            "summaries": [part.file.name for part in summaries if part.file],
            "segments": [
                {"file": segment.file, "gone": segment.removed.tolist()} for segment in segments
            ],
        }
        self._replace(kb_id, json.dumps({**values, _CRC: _crc(values)}))
        used = {segment.file for segment in segments}
        for file in list(self._mapped):
            if file.startswith(f"{kb_id}.") and file not in used:
                self._mapped.pop(file, None)
        return replace(snapshot, segments=tuple(segments), summaries=summaries)

    def _keep_summaries(self, kb_id: str, snapshot: SegmentedSnapshot) -> tuple[SummaryPart, ...]:
        """Return summaries mapped from files; those in memory become one file.

        It absorbs the last files that are not much larger, to keep their number small.
        """
        files = [part for part in snapshot.summaries if part.file]
        pending = [part for part in snapshot.summaries if not part.file]
        if not pending:
            return snapshot.summaries
        size = sum(len(part.numbers) for part in pending)
        while files and len(files[-1].numbers) <= _TIER * size:
            pending.insert(0, files.pop())
            size += len(pending[0].numbers)
        merged = merge_summaries(pending)
        path = self.folder / f"{kb_id}.{uuid4().hex}.summaries{_FILE}"
        ids = [snapshot.document_ids[number] for number in merged.numbers.tolist()]
        embedder = snapshot.state.summary_embedder
        save_summaries(path, embedder, ids, merged.vectors)
        return (*files, self._summaries(path.name, embedder, snapshot.numbers))

    def _summaries(self, name: str, embedder: str, numbers: DocumentNumbers) -> SummaryPart:
        path = self.folder / _name(name)
        ids, vectors = load_summaries(path, embedder)
        return SummaryPart(numbers.of_ids(ids), vectors, {"file": path})

    def _replace(self, kb_id: str, text: str) -> None:
        with replacing(self.path(kb_id)) as part, part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

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
            except DAMAGED as error:
                reason = error if isinstance(error, ValueError) else type(error).__name__
                _log.warning("%s: %s; the snapshot is rebuilt", self.folder, reason)
                return None
        return None

    def has_list(self, kb_id: str) -> bool:
        """Whether there is a list, and no other version of kbkit wrote it."""
        if self.stamp(kb_id) is None:
            return False
        with contextlib.suppress(*DAMAGED):
            return bool(json.loads(self.path(kb_id).read_bytes())["format"] == _FORMAT)
        return True

    def damaged(self, kb_id: str) -> list[str]:
        """Return the damage of files; missing ones are left out, since not all have codes."""
        reasons = []
        for name in sorted(self._names_on_list(kb_id)):
            if name.endswith(_FILE):
                try:
                    check(self.folder / name)
                except FileNotFoundError:
                    continue
                except (OSError, ValueError) as error:
                    reasons.append(str(error))
        return reasons

    def _read(self, values: Any, numbers: DocumentNumbers) -> SegmentedSnapshot:
        state = SnapshotState(*(values[each.name] for each in fields(SnapshotState)))
        segments = [self._segment(each["file"], each["gone"]) for each in values["segments"]]
        numbers.add(segments)
        summaries = [
            self._summaries(name, state.summary_embedder, numbers) for name in values["summaries"]
        ]
        return join_segments(state, segments, numbers, summaries)

    def _segment(self, name: str, removed: list[int]) -> Segment:
        if name not in self._mapped:
            self._mapped[name] = load(self.folder / _name(name))
        return Segment(self._mapped[name], name, np.array(removed, np.int64))

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
            oldest = time.time() - _OLD_SECONDS
            for file in list(self.folder.iterdir()):
                is_ours = file.name.partition(".")[0] in kb_ids
                if is_ours and (file.name in used or file.stat().st_mtime > oldest):
                    continue
                self._mapped.pop(file.name, None)
                file.unlink(missing_ok=True)

    def _names_on_list(self, kb_id: str) -> set[str]:
        """Return the files on a list and their companions; none if it is unreadable."""
        try:
            values = json.loads(self.path(kb_id).read_bytes())
            files = {str(each["file"]) for each in values["segments"]}
            files.update(map(str, values["summaries"]))
            files.update([codes_path(Path(file)).name for file in files])
            return files | {file + CHECKED for file in files}
        except DAMAGED:
            return set()


def _crc(values: Any) -> int:
    return zlib.crc32(json.dumps(values, sort_keys=True).encode())


def _name(name: str) -> str:
    if name != Path(name).name or not name.endswith(_FILE):
        raise ValueError(f"{name!r} is not a file name")
    return name
