"""Counted lengths on disk, so that a corpus is counted once.

    FOLDER/NAME-FINGERPRINT/
        lengths.npy     a record for each counted row, memory-mapped when it is read, if they are many
        dropped.jsonl   the rows that cannot be used: {"row": …, "reason": …, "detail": …}
        about.json      written last: what was counted with what, and the digests of the other two
        parts/          what was counted so far, while counting

The fingerprint is of everything the lengths depend on: another file or processor has another folder, so there is no
question of a folder being out of date. Files are written beside their place and renamed into it: a reader sees a whole
file or none, and ranks that count the same at the same time only write the same twice. What does not agree with its
digest is not believed, and counted again.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lading.cache import replacing
from lading.errors import Reason
from lading.lengths.rows import RECORD, Counted, Refusal, merge

LENGTHS, DROPPED, ABOUT, PARTS = "lengths.npy", "dropped.jsonl", "about.json", "parts"
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile)
"""What reading a damaged file raises."""
MAPPED_FROM = 1 << 20
"""Bytes from which on lengths are memory-mapped."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Store:
    """The folder of one data file seen through one processor."""

    folder: Path
    about: Mapping[str, Any]
    """What is written down beside the lengths, for people."""
    also: tuple[Path, ...] = ()
    """Folders of the same that are only read: they were written where nothing may be written now."""
    file: str = ""
    """What the data file is called now. Refusals name it; the file may be moved and be called otherwise."""

    def read(self) -> tuple[Counted, Mapping[str, Any]]:
        """What was counted to the end, its numbers memory-mapped if they are many, and its notes.

        Nothing where that is damaged.
        """
        found = [self._read(folder) for folder in (*self.also, self.folder)]
        notes = {name: note for _, own in found for name, note in own.items()}
        counted = merge(counted for counted, _ in found)
        # Both may know the same rows: no key is in more of them than either says, or both together where they differ.
        most = {key: max(own.unread[key] for own, _ in found if key in own.unread) for key in counted.unread}
        return replace(counted, unread=most) if len(found) > 1 else counted, notes

    def _read(self, folder: Path) -> tuple[Counted, Mapping[str, Any]]:
        try:
            about = json.loads((folder / ABOUT).read_bytes())
            lines = (folder / DROPPED).read_bytes()
            if about["digests"] != {LENGTHS: _file_digest(folder / LENGTHS), DROPPED: _digest(lines)}:
                return Counted(), {}
            path = folder / LENGTHS
            # A mapped file stays open, and a corpus may have many small ones.
            many = path.stat().st_size >= MAPPED_FROM
            records = np.load(path, mmap_mode="r" if many else None, allow_pickle=False)
            unread = _unread(about["notes"].get("unread", {}))
            return replace(self._checked(records, lines), unread=unread), about["notes"]
        except _UNREADABLE as error:
            if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
                raise
            return Counted(), {}

    @property
    def place(self) -> Path:
        """Where what is known is kept, or will be."""
        return next((folder for folder in (self.folder, *self.also) if (folder / ABOUT).is_file()), self.folder)

    def counted_otherwise(self) -> list[str]:
        """What differs from the last count of the same file, by name; nothing where this count or no other is kept."""
        if (self.place / ABOUT).is_file():
            return []
        others = [path for folder in (self.folder, *self.also) for path in folder.parent.glob(f"*/{ABOUT}")]
        for path in sorted(others, key=_written, reverse=True):
            try:
                about = json.loads(path.read_bytes())
                if about["file"] == self.about["file"]:
                    before, now = about["facts"], self.about["facts"]
                    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
            except _UNREADABLE:
                continue
        return []

    def read_parts(self) -> Counted:
        """What an interrupted count left behind."""
        return merge(self._part(path) for path in sorted((self.folder / PARTS).glob("*.npz")))

    def write_part(self, counted: Counted) -> None:
        """Keep what was counted lately."""
        rows = counted.records["row"]
        content = io.BytesIO()
        dropped, unread = self._lines(counted), json.dumps(dict(counted.unread)).encode()
        np.savez(
            content,
            records=counted.records,
            dropped=np.frombuffer(dropped, dtype=np.uint8),
            unread=np.frombuffer(unread, dtype=np.uint8),
        )
        _write(self.folder / PARTS / f"{rows[0]:012d}-{rows[-1]:012d}.npz", content.getvalue())

    def seal(self, counted: Counted, notes: Mapping[str, Any]) -> None:
        """Keep all that was counted, in one piece."""
        content = io.BytesIO()
        np.save(content, np.ascontiguousarray(counted.records), allow_pickle=False)
        files = {LENGTHS: content.getvalue(), DROPPED: self._lines(counted)}
        for name, text in files.items():
            _write(self.folder / name, text)
        digests = {name: _digest(text) for name, text in files.items()}
        about = {"counted": len(counted), "digests": digests, "notes": notes, **self.about}
        _write(self.folder / ABOUT, json.dumps(about, indent=2).encode())
        shutil.rmtree(self.folder / PARTS, ignore_errors=True)

    def forget(self) -> None:
        """Remove what was counted."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _part(self, path: Path) -> Counted:
        try:
            with np.load(path, allow_pickle=False) as part:
                unread = json.loads(part["unread"].tobytes()) if "unread" in part.files else {}
                return replace(self._checked(part["records"], part["dropped"].tobytes()), unread=_unread(unread))
        except _UNREADABLE:
            return Counted()

    def _checked(self, records: Any, lines: bytes) -> Counted:
        entries = [json.loads(line) for line in lines.splitlines()]
        refused = {
            entry["row"]: Refusal(reason=Reason(entry["reason"]), detail=entry["detail"].replace("\0", self.file))
            for entry in entries
        }
        if records.dtype != RECORD or records.ndim != 1:
            return Counted()
        counted = Counted(records=records, refused=refused)
        return counted if counted.sound else Counted()

    def _lines(self, counted: Counted) -> bytes:
        entries = (
            {
                "row": row,
                "reason": own.reason,
                "detail": own.detail.replace(self.file, "\0") if self.file else own.detail,
            }
            for row, own in sorted(counted.refused.items())
        )
        return "".join(json.dumps(entry) + "\n" for entry in entries).encode()


def _unread(stored: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    return {str(key): (int(count), int(row)) for key, (count, row) in stored.items()}


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _write(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)
