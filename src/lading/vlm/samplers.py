"""`nemo_automodel.components.datasets.vlm.samplers`, under its names."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import torch.distributed as distributed
from torch.utils.data import Sampler, Subset

from lading.errors import ConfigError, SkipSample
from lading.ledger import too_long
from lading.media.geometry import ClipGrid, PatchGrid, smart_resize, smart_resize_clip
from lading.records import Dropped
from lading.vlm import estimate as guess
from lading.vlm.costs import Cost, described, exact_costs, name_of
from lading.vlm.datasets import PreTokenizedDatasetWrapper
from lading.vlm.length_groups import grouped_order, length_order, stretch

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


class LengthGroupedSampler(Sampler[int]):
    """Samples by length, longest first, so that place N holds samples of like length on every rank.

    Each rank has its own share of the data (`make_meta_dataset(shard_data=True)`) and sorts it by total tokens. All
    ranks have the same `seed` and begin each epoch at the same place of that order. Shares may differ in size: the
    ranks ask each other once, here in the constructor (which is a collective call wherever a process group runs, gloo
    or any other), and a smaller share is stretched by repeats, spread evenly and named in `repeated`. So all ranks
    yield equally many numbers, and none of their samples is left out.

    Lengths are exact where the data set can count (`PreTokenizedDatasetWrapper`, `lading.loader.Samples`): from text
    and the headers of media. Otherwise they are estimated (`lading.vlm.estimate` says how). `exact_lengths=True`
    counts raw examples too, by the `processor`; `exact_lengths=False` never does. Samples over `max_length`, or that
    cannot be used at all, are left out: logged by name, and kept in `dropped`.

    >>> talks = [{"conversation": [{"role": "user", "content": "x" * size}]} for size in (30, 90, 60)]
    >>> sampler = LengthGroupedSampler(talks)
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
        order, self._position, self._resume_at = self._order(), self._resume_at, 0
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
        """Where the epoch stands. With worker processes the sampler is ahead of the training loop: `consumed` is then
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

    def _order(self) -> list[int]:
        order, chosen = np.asarray(self.sorted_indices, dtype=np.int64), {"seed": self.seed, "epoch": self.epoch}
        numbers: list[int] = grouped_order(order, places=self.places, batch_size=self.batch_size, **chosen).tolist()
        return numbers

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
        return guess.image_tokens(img_meta, self._image_cfg or {}, _smart_resize_image)

    def _estimate_video_tokens(self, vid_meta: Sequence[float]) -> int:
        """Tokens of a clip of [total_frames, height, width, fps, duration]."""
        return guess.video_tokens(vid_meta, self._video_cfg or {}, _smart_resize_video)

    @staticmethod
    def _extract_image_config(processor: Any) -> dict[str, Any] | None:
        """The numbers of `lengths.estimate.IMAGE_NUMBERS`; `None` where the processor has no such grid of patches."""
        try:
            grid = PatchGrid.read(processor)
        except (AttributeError, KeyError, TypeError):
            return None
        pixels = {"min_pixels": grid.min_pixels, "max_pixels": grid.max_pixels}
        return {"patch_size": grid.patch, "merge_size": grid.merge, **pixels}

    @staticmethod
    def _extract_video_config(processor: Any) -> dict[str, Any] | None:
        """The numbers of `lengths.estimate.VIDEO_NUMBERS`, or `None`."""
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


def count_exactly(dataset: Any, examples: Any, processor: Any) -> list[Cost | Dropped]:
    """The costs of a data set that can tell them, or of examples for a processor; without both, an error."""
    counted = exact_costs(dataset)
    if counted is None and processor is not None:
        counted = exact_costs(PreTokenizedDatasetWrapper(examples, processor))
    if counted is None:
        raise ConfigError(
            found=f"exact_lengths=True and a {type(dataset).__name__}",
            wanted="a PreTokenizedDatasetWrapper, or examples and a processor",
        )
    return counted
