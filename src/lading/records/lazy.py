"""Inputs of a batch whose pixels are bytes still, and are scaled when they are first read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

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
