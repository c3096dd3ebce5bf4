"""`nemo_automodel.components.datasets.vlm.samplers`, under its names: samples in order of their length.

Each rank sorts its own samples, longest first. Place N then holds samples of like length on all ranks, so little is
padded and nobody waits long. Traced on shares of five and four samples, batches of two, five places a rank:

    rank 0, sorted    9 7 5 3 1                    rank 1, sorted        8 6 4 2
    repeated          9 7 5 3 1                    to five places        8 8 6 4 2     one repeat, named
    from place 3 on   3 1 | 9 7 | 5                                      4 2 | 8 8 | 6

A share that is short is lengthened by repeats, spread evenly, so that places stay alike in length up to the end; no
sample is left out to make the numbers equal. An epoch begins at a place from which whole batches reach the end, so that
no batch holds the shortest and the longest samples together.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import torch.distributed as distributed
from numpy.typing import NDArray
from torch.utils.data import Sampler, Subset

from lading.errors import ConfigError, SkipSample
from lading.ledger import too_long
from lading.media.geometry import ClipGrid, PatchGrid, smart_resize, smart_resize_clip
from lading.records import Dropped
from lading.vlm import estimate as guess
from lading.vlm.planning import count_exactly, described, exact_costs, name_of

__all__ = ["LengthGroupedSampler", "_smart_resize_image", "_smart_resize_video", "logger"]

logger = logging.getLogger(__name__)
VERSION = 1


def _smart_resize_image(
    height: int, width: int, factor: int = 28, min_pixels: int = 56 * 56, max_pixels: int = 14 * 14 * 4 * 1280
) -> tuple[int, int]:
    """The resized (height, width) of a picture; a `ValueError`, as transformers' own, for a shape that cannot be.

    >>> _smart_resize_image(768, 1024)
    (756, 1036)
    """
    with _refusing("_smart_resize_image"):
        return smart_resize(height, width, factor=factor, min_pixels=min_pixels, max_pixels=max_pixels)


def _smart_resize_video(
    num_frames: int,
    height: int,
    width: int,
    temporal_factor: int = 2,
    factor: int = 32,
    min_pixels: int = 128 * 128,
    max_pixels: int = 16 * 16 * 2 * 2 * 2 * 6144,
) -> tuple[int, int]:
    """The resized (height, width) of a clip's frames, all frames together within the bounds; or a `ValueError`.

    >>> _smart_resize_video(16, 480, 640)
    (480, 640)
    """
    bounds = {"min_pixels": min_pixels, "max_pixels": max_pixels}
    with _refusing("_smart_resize_video"):
        return smart_resize_clip(num_frames, height, width, temporal_factor=temporal_factor, factor=factor, **bounds)


@contextmanager
def _refusing(where: str) -> Iterator[None]:
    """A shape that cannot be, as an error about an argument: whoever calls with numbers has no sample to skip."""
    try:
        yield
    except SkipSample as skip:
        raise ConfigError(found=skip.found, wanted=skip.wanted, where=where) from skip


def length_order(lengths: Sequence[int], max_length: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(sample numbers, longest first; those over `max_length`). Samples of one length keep their order.

    >>> order, too_long = length_order([3, 9, 5, 12], max_length=10)
    >>> order.tolist(), too_long.tolist()
    ([1, 2, 0], [3])
    """
    if max_length is not None and max_length < 1:
        raise ConfigError(found=f"max_length {max_length}", wanted="1 or more, or None")
    numbers = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-numbers, kind="stable").astype(np.int64)
    if max_length is None:
        return order, order[:0]
    fits = numbers[order] <= max_length
    return order[fits], np.sort(order[~fits])


def stretch(order: NDArray[np.int64], places: int) -> NDArray[np.int64]:
    """The order on more places: every sample at least once, repeats spread evenly.

    >>> stretch(np.array([4, 2, 0]), 5).tolist()
    [4, 4, 2, 2, 0]
    """
    if places < len(order) or (places and not len(order)):
        raise ConfigError(
            found=f"{places} places for {len(order)} samples", wanted="at least one sample, none left out"
        )
    return order[np.arange(places) * len(order) // max(1, places)]


def rotation(places: int, *, batch_size: int, seed: int, epoch: int) -> int:
    """Where an epoch begins: a function of its arguments alone, so the same on every rank.

    >>> sorted({rotation(5, batch_size=2, seed=0, epoch=epoch) for epoch in range(20)})
    [1, 3, 5]
    """
    if seed < 0 or epoch < 0:
        raise ConfigError(found=f"seed {seed}, epoch {epoch}", wanted="numbers from 0 up")
    batches = places // batch_size
    return places - batch_size * int(np.random.default_rng([seed, epoch]).integers(batches + 1)) if batches else 0


def grouped_order(
    order: NDArray[np.int64], *, places: int, batch_size: int, seed: int, epoch: int
) -> NDArray[np.int64]:
    """One epoch of a rank: its order, stretched to as many places as every rank has, from the epoch's place on.

    >>> grouped_order(np.array([3, 1, 0, 2]), places=4, batch_size=1, seed=0, epoch=0).tolist()
    [3, 1, 0, 2]
    """
    return np.roll(stretch(order, places), -rotation(places, batch_size=batch_size, seed=seed, epoch=epoch))


class LengthGroupedSampler(Sampler[int]):
    """Samples by length, longest first, so that place N holds samples of like length on every rank.

    Each rank has its own share of the data (`make_meta_dataset(shard_data=True)`) and sorts it by total tokens. All
    ranks have the same `seed` and begin each epoch at the same place of that order. Shares may differ in size: the
    ranks ask each other once, here in the constructor (which is a collective call wherever a process group runs, gloo
    or any other), and a smaller share is lengthened by repeats, named in `repeated`. So all ranks yield equally many
    numbers, and none of their samples is left out.

    Lengths are exact where the data set can count (`PreTokenizedDatasetWrapper`, `lading.Samples`): from text
    and the headers of media. Otherwise they are estimated (`lading.vlm.estimate` says how). `exact_lengths=True`
    counts raw examples too, by the `processor`; `exact_lengths=False` never does. Samples over `max_length`, or that
    cannot be used at all, are left out: logged by name, and kept in `dropped`.

    >>> sampler = LengthGroupedSampler(
    ...     [{"conversation": [{"role": "user", "content": "x" * size}]} for size in (30, 90, 60)])
    >>> sampler.lengths, sampler.sorted_indices, sorted(sampler)
    ([10, 30, 20], [1, 2, 0], [0, 1, 2])
    """

    def __init__(
        self,
        dataset: Any,
        seed: int = 42,
        processor: Any = None,
        max_length: int | None = None,
        batch_size: int = 1,
        exact_lengths: bool | None = None,
    ) -> None:
        if seed < 0:
            raise ConfigError(found=f"seed {seed}", wanted="0 or more", where=type(self).__name__)
        self.seed, self.epoch, self.max_length, self.batch_size = seed, 0, max_length, max(1, batch_size)
        self._image_cfg = self._extract_image_config(processor)
        self._video_cfg = self._extract_video_config(processor)
        self._processor, self._exact = processor, exact_lengths
        self.dropped: list[Dropped] = []
        self.lengths: list[int] = self._compute_or_load_lengths(dataset)
        order, over = length_order(self.lengths, max_length)
        refused = {entry.key.index for entry in self.dropped}
        self.sorted_indices: list[int] = [index for index in order.tolist() if index not in refused]
        self.dropped += [too_long(name_of(dataset, index), self.lengths[index], max_length or 0) for index in over]
        for line in described(self.dropped, len(self.lengths)):
            logger.warning("%s", line)
        self.places = self._agreed_places()
        self._position = self._resume_at = 0

    def __iter__(self) -> Iterator[int]:
        """This epoch's numbers, from where `load_state_dict` said, once."""
        numbers, chosen = np.asarray(self.sorted_indices, dtype=np.int64), {"seed": self.seed, "epoch": self.epoch}
        order = grouped_order(numbers, places=self.places, batch_size=self.batch_size, **chosen).tolist()
        self._position, self._resume_at = self._resume_at, 0
        while self._position < len(order):
            self._position += 1
            yield order[self._position - 1]

    def __len__(self) -> int:
        """How many numbers an epoch has: on every rank as many as the largest share."""
        return self.places

    @property
    def repeated(self) -> list[int]:
        """The samples that stand once more than others in an epoch, so that this rank keeps in step."""
        places = stretch(np.asarray(self.sorted_indices, dtype=np.int64), self.places)
        return [int(index) for index in places[1:][places[1:] == places[:-1]]]

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch. What was loaded for this very epoch stays; another one begins at its first place."""
        if epoch != self.epoch:
            self._resume_at = self._position = 0
        self.epoch = epoch

    def state_dict(self, consumed: int | None = None) -> dict[str, int]:
        """Where the epoch stands. Worker processes ask for more than was trained on: with them, `consumed` is
        the number of samples (on this rank, in this epoch) that were trained on.
        """
        position = self._position if consumed is None else consumed
        return {"version": VERSION, "epoch": self.epoch, "position": position, **self._identity()}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Carry on where `state_dict` was taken, with the same samples, seed and batch size on as many ranks."""
        wanted = {"version": VERSION, **self._identity()}
        if {name: state.get(name) for name in wanted} != wanted or not {"epoch", "position"} <= set(state):
            found, follows = f"the state {dict(state)}", "samples would be skipped or repeated"
            raise ConfigError(found=found, wanted=f"{wanted}, epoch, position", consequence=follows)
        self.epoch, self._resume_at, self._position = state["epoch"], state["position"], state["position"]

    def _identity(self) -> dict[str, int]:
        sizes = {"places": self.places, "samples": len(self.sorted_indices)}
        return {"seed": self.seed, "batch_size": self.batch_size, **sizes}

    def _agreed_places(self) -> int:
        """The size of the largest share. Every rank sees all shares, so that a bad one stops all, not one."""
        mine = (len(self.sorted_indices), self.seed, self.batch_size)
        shares: list[Any] = [mine]
        if distributed.is_available() and distributed.is_initialized():
            shares = [None] * distributed.get_world_size()
            distributed.all_gather_object(shares, mine)
        if not all(share[0] for share in shares) or len({share[1:] for share in shares}) > 1:
            raise ConfigError(
                found="(samples, seed, batch size) of each rank: " + ", ".join(map(str, shares)),
                wanted="at least one usable sample on each, and the same seed and batch size on all",
                where=type(self).__name__,
            )
        return int(max(share[0] for share in shares))

    def _compute_or_load_lengths(self, dataset: Any) -> list[int]:
        """Tokens of each sample: counted where possible, else estimated from the list underneath."""
        examples = self._get_raw_samples(dataset)
        counted = None if self._exact is False else exact_costs(dataset)
        if self._exact and counted is None:
            counted = count_exactly(dataset, examples, self._processor)
        if counted is None:
            return [sum(self._estimate_tokens(example)) for example in examples]
        self.dropped = [cost for cost in counted if isinstance(cost, Dropped)]
        return [0 if isinstance(cost, Dropped) else cost.tokens for cost in counted]

    def _estimate_tokens(self, example: Mapping[str, Any]) -> tuple[int, int]:
        """(text tokens, media tokens): those counted beforehand, else a guess. Tokenised samples have their length."""
        found = guess.estimate(
            example, image_tokens=self._estimate_image_tokens, video_tokens=self._estimate_video_tokens
        )
        return found.text, found.media

    def _estimate_image_tokens(self, img_meta: Sequence[float]) -> int:
        """Tokens of a picture of [height, width]."""
        return guess.image_tokens(img_meta, self._image_cfg or {})

    def _estimate_video_tokens(self, vid_meta: Sequence[float]) -> int:
        """Tokens of a clip of [total_frames, height, width, fps, duration]."""
        return guess.video_tokens(vid_meta, self._video_cfg or {})

    @staticmethod
    def _extract_image_config(processor: Any) -> dict[str, Any] | None:
        """The numbers of `estimate.IMAGE_NUMBERS`; `None` where the processor has no such grid of patches."""
        try:
            grid = PatchGrid.read(processor)
        except (AttributeError, KeyError, TypeError):
            return None
        pixels = {"min_pixels": grid.min_pixels, "max_pixels": grid.max_pixels}
        return {"patch_size": grid.patch, "merge_size": grid.merge, **pixels}

    @staticmethod
    def _extract_video_config(processor: Any) -> dict[str, Any] | None:
        """The numbers of `estimate.VIDEO_NUMBERS`, or `None`."""
        try:
            grid = ClipGrid.read(processor, fps=2.0)
        except (AttributeError, KeyError, TypeError):
            return None
        sizes = {"patch_size": grid.patch, "merge_size": grid.merge, "temporal_patch_size": grid.temporal}
        frames = {"fps": grid.fps, "min_frames": grid.min_frames, "max_frames": grid.max_frames}
        pixels = {"min_pixels": grid.min_pixels, "max_pixels": grid.max_pixels}
        # The Qwen2-VL kind bounds each frame by itself; the later kinds bound all frames together.
        alone = type(processor.video_processor).__name__.startswith("Qwen2VL")
        return {**sizes, **frames, **pixels, "pixels_per_frame": int(alone)}

    @staticmethod
    def _get_raw_samples(dataset: Any) -> Sequence[Any]:
        """The examples under wrappers of the same length, and under the choice of a `Subset`."""
        if isinstance(dataset, Subset):
            raw = LengthGroupedSampler._get_raw_samples(dataset.dataset)
            return [raw[index] for index in dataset.indices]
        if isinstance(dataset, _Wrapper) and len(dataset.dataset) == len(dataset):
            return LengthGroupedSampler._get_raw_samples(dataset.dataset)
        return cast("Sequence[Any]", dataset)


@runtime_checkable
class _Wrapper(Protocol):
    """A data set around another one."""

    dataset: Any

    def __len__(self) -> int: ...
