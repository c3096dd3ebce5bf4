"""What a sample says: a stored row, and the conversation in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lading import plain
from lading.fields import MediaKind

Role = Literal["system", "user", "assistant", "tool"]
REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
"""Under which names messages say, and chat templates read, what an assistant thought before it spoke."""
Reference = str | Path | bytes | tuple[str, ...] | object
"""How a medium is given: a path, encoded bytes, the paths of a video's frames, or a decoded object (a PIL image)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleKey:
    """Names one input sample for good. Law: `index` is unique in a corpus and does not depend on rank or epoch."""

    index: int
    source: str
    where: str

    def __str__(self) -> str:
        return f"{self.source}#{self.index} ({self.where})"

    @classmethod
    def from_dict(cls, value: Any, place: str = "a sample's name") -> SampleKey:
        """From plain values; `ConfigError` where they are none of a sample's name."""
        known = plain.named(value, place, ("index", "source", "where"))
        return cls(
            index=plain.whole(known["index"], f"{place}: index"),
            source=plain.text(known["source"], f"{place}: source"),
            where=plain.text(known["where"], f"{place}: where"),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One stored record, parsed but not understood. Law: nobody before `conversation` looks inside `value`."""

    key: SampleKey
    value: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPart:
    """A piece of text, exactly as the author wrote it."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaPart:
    """A picture, clip or sound at its place in a message. Law: holding one never opens the medium."""

    kind: MediaKind
    reference: Reference
    options: Mapping[str, Any] = field(default_factory=dict)
    roots: tuple[str, ...] = field(default=(), repr=False)
    """Folders below which its file must lie, links followed; none: wherever it is."""


Part = TextPart | MediaPart


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One turn. Law: adjacent text is never merged, so several text parts stay several."""

    role: Role
    parts: tuple[Part, ...]
    thought: str = ""
    """What the assistant thought before it spoke; the chat template writes it under the name that it reads."""
    thought_weight: float = 1.0
    """How much the loss of the thought counts, beside the turn's own weight; 0 is given, and not trained on."""
    calls: tuple[Mapping[str, Any], ...] = ()
    """The tools that the assistant calls, as the template reads them."""
    names: tuple[tuple[str, str], ...] = ()
    """What else the template is handed of a turn: the `tool_call_id` that a tool answers, a speaker's `name`."""
    weight: float = 1.0
    """How much the loss of what the assistant says counts; 0 is not trained on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """How much of a conversation is kept. Law: the last message kept is an assistant's, and no part is cut in two."""

    messages: int
    """Messages kept, the last one included."""
    parts: int
    """Parts kept of that last message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Conversation:
    """What a sample says, independent of any storage format. Law: it has at least one assistant message."""

    key: SampleKey
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    """Definitions of tools that the assistant may call, as the template reads them."""
    unread: tuple[str, ...] = ()
    """Keys of its row, its messages and their parts that nothing reads, by name (`conversation.keys`)."""

    @property
    def media(self) -> tuple[MediaPart, ...]:
        """All media in reading order."""
        return tuple(part for message in self.messages for part in message.parts if isinstance(part, MediaPart))


Severity = Literal["error", "warning", "notice"]
"""An error costs the sample (or the run); a warning is trained on, but perhaps not as its author meant; a notice is
only worth knowing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing wrong with one sample, or with a whole file. Law: `kind` names a kind that `doctor` explains.

    >>> key = SampleKey(index=3, source="shapes", where="shapes.jsonl:4")
    >>> print(Finding(kind="missing_media", severity="error", where=key.where, detail="no cat.png", key=key))
    error missing_media shapes.jsonl:4: no cat.png
    """

    kind: str
    severity: Severity
    where: str
    """`file:line`, or a file alone where it is wrong as a whole."""
    detail: str
    key: SampleKey | None = None
    """The sample (the first, where a row is used again); none where a file is wrong as a whole, or a row is not in the
    share that its source uses."""
    source: str = ""
    """The data set: a file may be in a corpus twice."""
    row: int | None = None
    """The row of its file; none where a file is wrong as a whole."""

    @property
    def of_file(self) -> bool:
        """Whether a file is wrong as a whole."""
        return self.key is None and self.row is None

    def __str__(self) -> str:
        return f"{self.severity} {self.kind} {self.where}: {self.detail}"
