"""Documents side by side: joined tensors, per-document positions, document ids, and the one shift of the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lading.errors import ConfigError
from lading.family import ThreeWay
from lading.fields import IGNORE_INDEX, Field
from lading.records import Document, Dropped, Encoded, MediumSpan, Pack
from lading.tensors import join, shift

UNCOUNTED: Final = -1
"""The number of a document that is none of the corpus, or does not count as one: a ledger passes it over."""


def build_pack(
    samples: Sequence[Encoded],
    *,
    fields: Mapping[str, Field],
    three_way: ThreeWay | None = None,
    number: int = 0,
    dropped: Sequence[Dropped] = (),
) -> Pack:
    """One pack of encoded samples, in the given order."""
    if not samples:
        raise ConfigError(found="a pack without documents", wanted="at least one", where=f"pack {number}")
    documents = tuple(sample.document for sample in samples)
    lengths = [document.tokens for document in documents]
    # Positions and document ids are written for the whole pack at once, not joined.
    tensors = join([sample.tensors for sample in samples], fields)
    tensors["labels"] = shift(tensors["labels"], lengths)
    if "loss_weights" in tensors:
        tensors["loss_weights"] = shift(tensors["loss_weights"], lengths, last=0)
    tensors["position_ids"] = pack_positions(documents, three_way)
    tensors["document_ids"] = torch.from_numpy(np.repeat(np.arange(1, len(documents) + 1), lengths))
    return Pack(number=number, documents=documents, tensors=tensors, dropped=tuple(dropped))


def without_labels(pack: Pack) -> Pack:
    """The pack with nothing to be trained on, its documents counted as none of the corpus."""
    documents = tuple(replace(own, key=replace(own.key, index=UNCOUNTED)) for own in pack.documents)
    return replace(pack, documents=documents, tensors={**pack.tensors, **_untrained(pack.tensors)})


def _untrained(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Labels of nothing, and weights of nothing where there are weights."""
    empty = {"labels": IGNORE_INDEX, "loss_weights": 0}
    return {name: torch.full_like(tensors[name], value) for name, value in empty.items() if name in tensors}


def empty_pack(like: Pack, *, fields: Mapping[str, Field]) -> Pack:
    """A row without documents, which is padding alone once it is in a batch with packs such as `like`."""
    tokens = {name: tensor[..., :0] for name, tensor in like.tensors.items() if fields[name].axis == "token"}
    return Pack(number=-1, documents=(), tensors=tokens)


def append_untrained(
    pack: Pack, sample: Encoded, *, fields: Mapping[str, Field], three_way: ThreeWay | None = None
) -> Pack:
    """The pack with one more document behind it that nothing is trained on."""
    untrained = {
        **sample.tensors,
        **_untrained(sample.tensors),
        "position_ids": pack_positions([sample.document], three_way),
        "document_ids": torch.full((sample.document.tokens,), len(pack.documents) + 1, dtype=torch.long),
    }
    return replace(pack, documents=(*pack.documents, sample.document), tensors=join([pack.tensors, untrained], fields))


def document_positions(document: Document, three_way: ThreeWay | None) -> Tensor:
    """Positions of one document: [T], or [4, T] (plain, time, height, width).

    >>> from lading.records import SampleKey
    >>> talk = Document(key=SampleKey(index=0, source="s", where="w"), tokens=3)
    >>> document_positions(talk, ThreeWay(merge=2, tokens_per_second=2.0)).tolist()
    [[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]]
    """
    return pack_positions([document], three_way)


def pack_positions(documents: Sequence[Document], three_way: ThreeWay | None) -> Tensor:
    """Positions of documents side by side, each numbered as if it were alone.

    >>> from lading.records import SampleKey
    >>> talk = Document(key=SampleKey(index=0, source="s", where="w"), tokens=3)
    >>> pack_positions([talk, talk], None).tolist()
    [0, 1, 2, 0, 1, 2]
    """
    lengths = [document.tokens for document in documents]
    stops = np.cumsum(lengths)
    plain = np.arange(sum(lengths)) - np.repeat(stops - lengths, lengths)
    if three_way is None:
        return torch.from_numpy(plain)
    positions = np.empty((4, len(plain)), dtype=np.float32 if three_way.fractional else np.int64)
    positions[:] = plain
    for document, stop in zip(documents, stops.tolist(), strict=True):
        if document.media:
            _spread(positions[1:, stop - document.tokens : stop], document, three_way)
    return torch.from_numpy(positions)


def _spread(positions: NDArray[Any], document: Document, numbers: ThreeWay) -> None:
    """Write the three-way positions of a document with media into [3, T]."""
    token, position = 0, 0.0 if numbers.fractional else 0
    for span in document.media:
        if span.footprint.kind == "audio":
            continue  # sound advances like text
        if span.footprint.sound is not None:
            positions[:, token : span.start] = np.arange(span.start - token) + position
            position += span.start - token
            placed = _sounding_positions(span, numbers) + position
            positions[:, span.start : span.stop] = placed
            position, token = placed.max() + 1, span.stop
            continue
        for (start, stop), grid in zip(span.runs, _grids(span), strict=True):
            positions[:, token:start] = np.arange(start - token) + position
            position += start - token
            times, rows, columns = _axes(grid, span, numbers)
            placed = positions[:, start:stop].reshape(3, len(times), len(rows), len(columns))
            placed[0] = times[:, None, None] + position
            placed[1] = rows[:, None] + position
            placed[2] = columns + position
            # `last` is the last position used in any direction; a long clip may reach beyond its sides.
            last = max(times[-1], rows[-1], columns[-1]) + position
            position = last + 1 if numbers.after == "last" else position + max(grid[1:]) // numbers.merge
            token = stop
    positions[:, token:] = np.arange(document.tokens - token) + position


def _sounding_positions(span: MediumSpan, numbers: ThreeWay) -> NDArray[Any]:
    """Frames and sound in turn, both counted from where the clip begins."""
    footprint = span.footprint
    axes = _axes(footprint.grid, span, numbers)
    frames = iter(np.stack(np.meshgrid(*axes, indexing="ij")).reshape(3, -1).T)
    placed = np.empty((3, span.stop - span.start), dtype=np.float32)
    sounds = 0
    for place, (start, stop) in enumerate(span.runs):
        own = slice(start - span.start, stop - span.start)
        if place in footprint.heard:
            placed[:, own] = np.arange(sounds, sounds + stop - start)
            sounds += stop - start
        else:
            placed[:, own] = np.stack([next(frames) for _ in range(stop - start)], axis=1)
    return placed


def _grids(span: MediumSpan) -> list[tuple[int, int, int]]:
    """One grid a run: the whole clip, or, where frames have text between them, one frame each."""
    t, h, w = span.footprint.grid
    return [(t // len(span.runs), h, w)] * len(span.runs)


def _axes(
    grid: tuple[int, int, int], span: MediumSpan, numbers: ThreeWay
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Where the grid's frames, rows and columns stand, counted from where it begins."""
    # float32, because the models multiply a float32 tensor here, and its rounding decides between neighbours.
    seconds = np.float32(span.footprint.seconds)
    interval = np.float32(numbers.tokens_per_second * span.footprint.seconds) if seconds else np.float32(1)
    times = np.arange(grid[0]).astype(np.float32) * interval
    # What follows is reckoned in float64, and rounded once.
    times = times.astype(np.float64 if numbers.fractional else np.int64)
    return times, np.arange(grid[1] // numbers.merge), np.arange(grid[2] // numbers.merge)
