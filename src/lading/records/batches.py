"""Documents as tensors: alone, side by side in a pack, in a batch, in a piece of one; pixels scaled when first read."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from lading.errors import ConfigError
from lading.fields import IGNORE_INDEX, Field, MediaKind
from lading.records.lengths import Dropped
from lading.records.media import Footprint, MediumSpan
from lading.records.samples import SampleKey

if TYPE_CHECKING:
    from torch import Tensor, device, dtype

    Input = Tensor | Mapping[str, Tensor] | bool | int
    """What a model is fed under one name; a mapping holds masks by the kind of layer they are for."""


class Scale(Protocol):
    """Makes of bytes what a model expects, in float32 unless another type is asked for."""

    def __call__(self, pixels: Tensor, *, dtype: dtype | None = None) -> Tensor:
        """The bytes as numbers, on the device where they are."""
        ...


class LazyPixels:
    """Pixels in bytes that are scaled when they are first read: once, whoever reads, and then the bytes are let go.

    On the CPU they wait for a reader; `to` another device moves the bytes and scales them there.
    """

    __slots__ = ("_lock", "_state")

    def __init__(self, pixels: Tensor, scale: Scale | None) -> None:
        self._state = (pixels, scale)
        """The bytes and what scales them, or the scaled pixels and `None`; changed in one step, for other threads."""
        self._lock = Lock()

    def read(self) -> Tensor:
        """The scaled pixels. Two threads that read at once get the same tensor."""
        with self._lock:
            pixels, scale = self._state
            if scale is not None:
                pixels = scale(pixels)
                self._state = (pixels, None)
            return pixels

    def read_as(self, dtype: dtype) -> Tensor:
        """The scaled pixels in a type of one's own, which are not kept; rounded once, read before or not."""
        pixels, scale = self._state
        return pixels.to(dtype) if scale is None else scale(pixels, dtype=dtype)

    def to(self, target: str | device, *, non_blocking: bool = False, dtype: dtype | None = None) -> LazyPixels:
        """The same pixels on another device, scaled there; where they are there already, they wait on."""
        pixels, scale = self._state
        moved = pixels.to(target, non_blocking=non_blocking)
        if dtype is None and moved is pixels:
            return self
        if scale is None:
            return LazyPixels(moved if dtype is None else moved.to(dtype), None)
        return LazyPixels(scale(moved, dtype=dtype), None)

    def pin_memory(self) -> LazyPixels:
        """The same in page-locked memory: bytes, where they are bytes still."""
        pixels, scale = self._state
        return LazyPixels(pixels.pin_memory(), scale)

    @property
    def nbytes(self) -> int:
        """How much memory they take up now: an eighth, for pictures, until they are read."""
        return self._state[0].nbytes

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy, or another process, gets bytes that wait there; a lock cannot travel.
        return LazyPixels, self._state

    def __repr__(self) -> str:
        pixels, scale = self._state
        return f"LazyPixels({list(pixels.shape)}, {'bytes' if scale else pixels.dtype})"


class LazyInputs(Mapping[str, "Input"]):
    """The inputs of a batch by name, as any mapping has them; pixels are scaled when they are asked for.

    Law: what it gives is what a plain dict of the scaled tensors would give.
    """

    __slots__ = ("held",)

    def __init__(self, held: Mapping[str, Input | LazyPixels]) -> None:
        self.held = dict(held)
        """What there is, without scaling anything."""

    def __getitem__(self, name: str) -> Input:
        value = self.held[name]
        return value.read() if isinstance(value, LazyPixels) else value

    def __iter__(self) -> Iterator[str]:
        return iter(self.held)

    def __contains__(self, name: object) -> bool:
        return name in self.held  # the mapping's own way would read, and so scale

    def __len__(self) -> int:
        return len(self.held)

    def __repr__(self) -> str:
        return f"LazyInputs({self.held})"


def held(inputs: Mapping[str, Input]) -> Mapping[str, Input | LazyPixels]:
    """What inputs hold, without scaling anything."""
    return inputs.held if isinstance(inputs, LazyInputs) else inputs


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
    """What the model is fed: `model(**batch)`. Law: `rows` names the documents of every row, in order, and no name
    stands for nothing: what there is not (a mask, where positions do without) is not among the inputs.
    """

    inputs: Mapping[str, Input]
    """By name. Pixels may be bytes still, which are scaled when they are first read (`LazyInputs`)."""
    rows: tuple[tuple[Document, ...], ...]
    dropped: tuple[Dropped, ...] = ()
    fields: Mapping[str, Field] = field(default_factory=dict, repr=False)
    """The field table of its family: what the rows of each tensor count."""
    outside: Mapping[str, Tensor] = field(default_factory=dict, repr=False)
    """What there is for each token and no model takes: `loss_weights` [B, S], where they were asked for."""

    # A mapping in all but name: torch and Accelerate rebuild what calls itself a Mapping, and would lose the rows.
    def keys(self) -> KeysView[str]:
        """Names of the model's inputs; with `__getitem__` this is what `**batch` needs.

        Pixels that stay bytes are refused here: a model would take those of a clip for numbers, and say nothing.
        """
        if waiting := [name for name, value in held(self.inputs).items() if _is_bytes(value)]:
            raise ConfigError(
                found=f"a batch whose {', '.join(waiting)} are bytes still (pixels='uint8')",
                wanted="model(**loader.normalise(batch))",
                consequence="the model would train on pixels that are not scaled",
            )
        return self.inputs.keys()

    def items(self) -> ItemsView[str, Input]:
        """Names and values of the model's inputs."""
        return self.inputs.items()

    def values(self) -> ValuesView[Input]:
        """Values of the model's inputs."""
        return self.inputs.values()

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
        if isinstance(value, (int, Mapping)):
            raise KeyError(f"{name} is not a tensor in this batch")
        return value

    @property
    def label_tokens(self) -> int:
        """Places with a label: what the loss is a mean over. Ranks and micro-batches of one step differ in it.

        Ask before the batch goes to a GPU: there, the CPU would wait for the answer.
        """
        return int((self.tensor("shift_labels") != IGNORE_INDEX).sum())

    @property
    def loss_weights(self) -> Tensor:
        """How much the loss of each label counts, [B, S], in the places of `shift_labels`."""
        if "loss_weights" not in self.outside:
            raise ConfigError(
                found="a batch without loss weights",
                wanted="Loader(loss_weights=True)",
                consequence="nobody knows how much each label counts",
            )
        return self.outside["loss_weights"]

    @property
    def label_weight(self) -> float:
        """The sum of the weights of all labels: what a weighted loss is a mean over, as `label_tokens` is of others."""
        return float((self.loss_weights * (self.tensor("shift_labels") != IGNORE_INDEX)).sum())

    def to(self, target: str | device, *, non_blocking: bool = False, dtype: dtype | None = None) -> Batch:
        """The same batch on another device, where its pixels are scaled if they are bytes that wait for it: as float32,
        or as the `dtype` of the model, which spares a copy. Nothing else changes its type.
        """
        return self._mapped(
            lambda tensor: tensor.to(target, non_blocking=non_blocking),
            lambda pixels: pixels.to(target, non_blocking=non_blocking, dtype=dtype),
        )

    def pin_memory(self) -> Batch:
        """The same batch in page-locked memory; `DataLoader(pin_memory=True)` calls this."""
        return self._mapped(lambda tensor: tensor.pin_memory(), lambda pixels: pixels.pin_memory())

    def with_inputs(self, more: Mapping[str, Input | LazyPixels]) -> Batch:
        """The same batch with these inputs added or put in place of others; pixels that are bytes still stay so."""
        inputs = {**held(self.inputs), **more}
        read = {name: value for name, value in inputs.items() if not isinstance(value, LazyPixels)}
        return replace(self, inputs=read if len(read) == len(inputs) else LazyInputs(inputs))

    def _mapped(self, change: Callable[[Tensor], Tensor], lazily: Callable[[LazyPixels], LazyPixels]) -> Batch:
        changed = self.with_inputs(
            {
                name: lazily(value) if isinstance(value, LazyPixels) else _changed(value, change)
                for name, value in held(self.inputs).items()
            }
        )
        if not self.outside:
            return changed
        return replace(changed, outside={name: change(values) for name, values in self.outside.items()})


def _is_bytes(value: Input | LazyPixels) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.dtype == torch.uint8


def _changed(value: Input, change: Callable[[Tensor], Tensor]) -> Input:
    if isinstance(value, int):
        return value
    if isinstance(value, Mapping):
        return {name: change(tensor) for name, tensor in value.items()}
    return change(value)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Microbatch:
    """One pipeline-parallel piece of a batch. Law: its media belong to its own rows, by the carried counts."""

    inputs: Mapping[str, Input]
    rows: tuple[tuple[Document, ...], ...]
