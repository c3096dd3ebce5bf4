"""Where a row keeps its messages and media, what it calls roles, and where its media lie. Nothing is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lading.conversation.keys import Reading
from lading.errors import Reason, SkipSample
from lading.fields import MediaKind
from lading.records import MediaPart, Role

MESSAGE_COLUMNS = ("messages", "conversations", "conversation")
MEDIA_COLUMNS: Mapping[MediaKind, tuple[str, ...]] = {
    "image": ("images", "image"),
    "video": ("videos", "video"),
    "audio": ("audios", "audio"),
}
ROLE_KEYS = ("role", "from")
CONTENT_KEYS = ("content", "value")
ROLES: Mapping[str, Role] = {
    "system": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "function_call": "assistant",
    "tool": "tool",
    "observation": "tool",
}
ROLE_TAGS: Mapping[str, Role] = {
    "user_tag": "user",
    "assistant_tag": "assistant",
    "function_tag": "assistant",
    "system_tag": "system",
    "tool_tag": "tool",
    "observation_tag": "tool",
}
"""Tags by which a source says what it calls a role."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Names a source gave for its columns and tags. What it left out is found by the usual names."""

    columns: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    media_dir: Path | None = None
    opened_in: Path | None = None
    """Where paths are seen from if there is no media folder; `None`: wherever the process is by then."""
    media_roots: tuple[str, ...] = ()
    """Folders below which media must lie; none: wherever they are."""
    format: str | None = None
    """The format of its rows (`formats.FORMATS`); `None`: each row by its own columns."""
    reading: Reading = field(default_factory=Reading)
    """What the run does with what rows say about training."""
    read_columns: dict[str, frozenset[str]] = field(default_factory=dict, init=False, compare=False, repr=False)
    """The columns that are read of a row, by format: worked out once, not for every row."""

    @property
    def untagged(self) -> Layout:
        """The same for messages that we wrote ourselves, in the usual words."""
        return replace(self, tags={}) if self.tags else self

    def column(self, name: str, usual: str = "") -> str:
        """What the source calls a column."""
        return self.columns.get(name, usual or name)

    def has_messages(self, row: Mapping[str, Any]) -> bool:
        """Whether a row has a column of messages."""
        given = self.columns.get("messages")
        return any(row.get(name) is not None for name in ((given,) if given else MESSAGE_COLUMNS))

    def messages(self, row: Mapping[str, Any], where: str) -> Any:
        """The list of messages of a row."""
        return _first(row, self.columns.get("messages"), MESSAGE_COLUMNS, "column of messages", where)

    def media(self, row: Mapping[str, Any], kind: MediaKind) -> list[Any]:
        """What a row lists as media of one kind; one thing alone counts as a list of one."""
        given = self.columns.get(f"{kind}s")
        names = (given,) if given else MEDIA_COLUMNS[kind]
        for name in names:
            value = row.get(name)
            if isinstance(value, (list, tuple)):
                if value:  # an empty list must not hide what stands under the other name
                    return list(value)
            elif value is not None:
                return [value]
        return []

    def role(self, message: Mapping[str, Any], where: str) -> Role:
        """The role of a message, in our four words."""
        tag = str(_first(message, self.tags.get("role_tag"), ROLE_KEYS, "role", where))
        roles = {**ROLES, **self._own_roles()} if self.tags else ROLES
        if tag not in roles:
            raise SkipSample(
                Reason.UNKNOWN_ROLE, found=f"role {tag!r}", wanted=f"one of {', '.join(sorted(roles))}", where=where
            )
        return roles[tag]

    def _own_roles(self) -> dict[str, Role]:
        return {self.tags[tag]: role for tag, role in ROLE_TAGS.items() if tag in self.tags}

    def content(self, message: Mapping[str, Any], where: str) -> Any:
        """What a message says."""
        return _first(message, self.tags.get("content_tag"), CONTENT_KEYS, "content", where)

    def medium(self, kind: MediaKind, value: Any, where: str) -> MediaPart:
        """A medium as a row gives it: a path, bytes, an object, a list of frames, or a mapping of these with extras."""
        options: dict[str, Any] = {}
        if isinstance(value, Mapping) and "array" in value:
            return MediaPart(kind=kind, reference=value)  # a sound that `datasets` decoded already
        if isinstance(value, Mapping):
            options = {key: extra for key, extra in value.items() if key not in ("path", "bytes")}
            value = value.get("bytes") or value.get("path")
        if value is None:
            raise SkipSample(Reason.BAD_ROW, found=f"{kind} without a path or bytes", wanted="one of them", where=where)
        if isinstance(value, (list, tuple)):
            value = tuple(self._resolved(part, where) for part in value)
        else:
            value = self._resolved(value, where)
        return MediaPart(kind=kind, reference=value, options=options, roots=self.media_roots)

    def _resolved(self, value: Any, where: str) -> Any:
        """A path against the media folder; a data URL, an address and everything else as they are."""
        if not isinstance(value, str):
            return value
        if not value:
            raise SkipSample(Reason.BAD_ROW, found="an empty path for a medium", wanted="a file name", where=where)
        if value.startswith("data:"):
            return value
        if value.startswith("file://"):
            value = value.removeprefix("file://")
        folder = self.media_dir or self.opened_in
        if "://" in value[:16] or folder is None:
            return value
        return str(folder / Path(value))


def given_at_all(value: Any) -> bool:
    """Whether a column of media has something: null and an empty list are as good as no column."""
    return value is not None and not (isinstance(value, (list, tuple)) and not value)


def _first(row: Mapping[str, Any], given: str | None, usual: tuple[str, ...], what: str, where: str) -> Any:
    names = (given,) if given else usual
    for name in names:
        if row.get(name) is not None:
            return row[name]
    empty = ", ".join(name for name in names if name in row)
    raise SkipSample(
        Reason.BAD_ROW,
        found=f"null as {empty}" if empty else f"no {what} among {', '.join(map(str, row)) or 'no keys'}",
        wanted=f"one of {', '.join(names)}",
        where=where,
    )
