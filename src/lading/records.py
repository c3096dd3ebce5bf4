"""The nouns that travel between rooms: frozen, keyword-only, slotted. Each docstring states one law.

    Row → Conversation → Encoded → Pack → Batch → Microbatch
                 Footprint ↗   LengthTable → PackPlan ↗

Importing this module never reaches torch: planning starts fast.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lading.errors import Reason
from lading.fields import MediaKind

if TYPE_CHECKING:
    from torch import Tensor, device

    Input = Tensor | Mapping[str, Tensor] | bool | None
    """What a model is fed under one name; a mapping holds masks by the kind of layer they are for."""

Role = Literal["system", "user", "assistant", "tool"]
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


Part = TextPart | MediaPart


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One turn. Law: adjacent text is never merged, so several text parts stay several."""

    role: Role
    parts: tuple[Part, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Conversation:
    """What a sample says, independent of any storage format. Law: it has at least one assistant message."""

    key: SampleKey
    messages: tuple[Message, ...]

    @property
    def media(self) -> tuple[MediaPart, ...]:
        """All media in reading order."""
        return tuple(part for message in self.messages for part in message.parts if isinstance(part, MediaPart))


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageSize:
    """Height and width as shown (after the EXIF rotation), read from the header."""

    height: int
    width: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AudioSize:
    """Number of samples in one channel, and samples per second."""

    samples: int
    rate: int


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoSize:
    """Number of frames in the stream, their height and width, and the frame rate."""

    frames: int
    height: int
    width: int
    fps: float
    sound: AudioSize | None = None
    """The clip's own sound track, where it is to be heard."""


Size = ImageSize | VideoSize | AudioSize


@dataclass(frozen=True, kw_only=True, slots=True)
class Footprint:
    """What one medium takes up, known from its size alone. Law: the processor's own output has exactly these rows."""

    kind: MediaKind
    runs: tuple[int, ...]
    """How often each pad token in the medium's text is repeated."""
    rows: int
    """Rows on the medium's patch axis: patches, tiles, crops, or frames of sound."""
    grid: tuple[int, int, int] = (1, 1, 1)
    """(t, h, w) in patches, for families that have such a grid."""
    text: str | None = None
    """What stands in place of the mark, each run of pads written once; `None`: what the family's `Medium` says."""
    frames: tuple[int, ...] = ()
    """For a video: which frames of the stream are used."""
    seconds: float = 0.0
    """For a video: seconds between two rows of the grid's t."""
    sound: Footprint | None = None
    """For a video that is heard: what its sound track takes up, between the frames."""
    heard: tuple[int, ...] = ()
    """Which of the runs are sound."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MediumSpan:
    """Where a medium's pad tokens lie in its document. Law: runs ascend and do not overlap."""

    footprint: Footprint
    runs: tuple[tuple[int, int], ...]

    @property
    def start(self) -> int:
        """First token that belongs to the medium."""
        return self.runs[0][0]

    @property
    def stop(self) -> int:
        """One past its last token."""
        return self.runs[-1][1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """What a pack remembers of a document. Law: this alone is enough to cut the document out again."""

    key: SampleKey
    tokens: int
    media: tuple[MediumSpan, ...] = ()

    def footprints(self, *kinds: MediaKind) -> list[Footprint]:
        """The document's media of these kinds, in reading order; a clip's sound track is a sound."""
        found = (own for span in self.media for own in (span.footprint, span.footprint.sound))
        return [footprint for footprint in found if footprint is not None and footprint.kind in kinds]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Encoded:
    """One tokenised sample. Law: labels are aligned with `input_ids`, unshifted; -100 where nothing is trained."""

    document: Document
    spans: tuple[tuple[int, int], ...]
    """Token spans of what the assistant says, its closing marker included."""
    tensors: Mapping[str, Tensor]

    def with_tensors(self, more: Mapping[str, Tensor]) -> Encoded:
        """The same sample with further tensors (pixels) added."""
        return replace(self, tensors={**self.tensors, **more})


@dataclass(frozen=True, kw_only=True, slots=True)
class Length:
    """What one sample costs, in integers. Law: `tokens` equals the length of its `input_ids`, exactly."""

    tokens: int
    label_tokens: int
    visual_tokens: int
    patches: int
    images: int
    videos: int
    audios: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Dropped:
    """One sample left out, by name and reason. Law: with `by`, it was replaced by those samples, not just dropped."""

    key: SampleKey
    reason: Reason
    detail: str
    by: tuple[SampleKey, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LengthTable:
    """The corpus in integers. Law: row i is sample i; a sample that cannot be counted has 0 tokens and a `Dropped`."""

    sources: tuple[str, ...]
    source: NDArray[np.int32]
    tokens: NDArray[np.int32]
    label_tokens: NDArray[np.int32]
    visual_tokens: NDArray[np.int32]
    patches: NDArray[np.int32]
    images: NDArray[np.int32]
    videos: NDArray[np.int32]
    audios: NDArray[np.int32]
    dropped: tuple[Dropped, ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PackPlan:
    """Which samples share a pack, and which rank gets it when. Law: every sample is in one pack or in `dropped`."""

    pack_size: int
    world_size: int
    seed: int
    epoch: int
    algorithm: str
    members: NDArray[np.int64]
    """Sample indices, pack after pack."""
    starts: NDArray[np.int64]
    """`members[starts[p]:starts[p + 1]]` are the samples of pack p."""
    tokens: NDArray[np.int64]
    """Tokens in each pack."""
    order: NDArray[np.int64]
    """[steps, world_size] pack numbers. In the last step a pack may stand again (see `repeated`)."""
    repeated: int
    """How many places of the last step hold a repeat."""
    too_long: NDArray[np.int64]
    """Samples longer than a pack."""
    uncounted: int
    """Samples that could not be counted; the length table names them."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    def pack(self, number: int) -> NDArray[np.int64]:
        """The sample indices of one pack."""
        return self.members[self.starts[number] : self.starts[number + 1]]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pack:
    """Documents side by side in one row. Law: `documents` splits `tensors` back into exactly what was joined."""

    number: int
    documents: tuple[Document, ...]
    tensors: Mapping[str, Tensor]
    dropped: tuple[Dropped, ...] = ()
    """Planned samples that failed when they were opened."""

    @property
    def length(self) -> int:
        """Tokens in the row."""
        return sum(document.tokens for document in self.documents)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Batch:
    """What the model is fed: `model(**batch)`. Law: `rows` names the documents of every row, in order."""

    inputs: Mapping[str, Input]
    rows: tuple[tuple[Document, ...], ...]
    dropped: tuple[Dropped, ...] = ()

    # A mapping in all but name: torch and Accelerate rebuild what calls itself a Mapping, and would lose the rows.
    def keys(self) -> KeysView[str]:
        """Names of the model's inputs; with `__getitem__` this is what `**batch` needs."""
        return self.inputs.keys()

    def items(self) -> ItemsView[str, Input]:
        """Names and values of the model's inputs."""
        return self.inputs.items()

    def __getitem__(self, name: str) -> Input:
        return self.inputs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.inputs)

    def __contains__(self, name: object) -> bool:
        return name in self.inputs

    def __len__(self) -> int:
        return len(self.inputs)

    def tensor(self, name: str) -> Tensor:
        """One input that is known to be a tensor."""
        value = self.inputs[name]
        if value is None or isinstance(value, (bool, Mapping)):
            raise KeyError(f"{name} is not a tensor in this batch")
        return value

    def to(self, target: str | device, *, non_blocking: bool = False) -> Batch:
        """The same batch on another device."""
        return self._mapped(lambda tensor: tensor.to(target, non_blocking=non_blocking))

    def pin_memory(self) -> Batch:
        """The same batch in page-locked memory; `DataLoader(pin_memory=True)` calls this."""
        return self._mapped(lambda tensor: tensor.pin_memory())

    def _mapped(self, change: Callable[[Tensor], Tensor]) -> Batch:
        return replace(self, inputs={name: _changed(value, change) for name, value in self.inputs.items()})


def _changed(value: Input, change: Callable[[Tensor], Tensor]) -> Input:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Mapping):
        return {name: change(tensor) for name, tensor in value.items()}
    return change(value)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Microbatch:
    """One pipeline-parallel piece of a batch. Law: its media belong to its own rows, by the carried counts."""

    inputs: Mapping[str, Input]
    rows: tuple[tuple[Document, ...], ...]
