"""`nemo_automodel.components.datasets.vlm.pp_media`, under its names: media for pipeline-parallel training.

A pipeline schedule splits each tensor of a batch by rows. Media have rows of their own (patches, pictures, clips), so
they are cut beforehand and handed to the first stage, microbatch by microbatch:

    loader = DataLoader(data, batch_size=8, collate_fn=wrap_vlm_collate_for_pp(collate, n_microbatches=4))
    for batch in loader:
        with stage_vlm_media_for_pp(pp, model_parts, batch):
            pp.info.schedule.step(batch.pop("input_ids"), target=batch.pop("labels"), **batch)

**What the model sees.** The first stage's module is called with the media of its own microbatch as keywords, each under
its own name (`image_grid_thw` stays `image_grid_thw`). A microbatch without images is called without `pixel_values` and
whatever belongs to it, never with a tensor of no rows. Where ranks must all run the vision tower (FSDP, ZeRO), give
plain text a placeholder image before it gets here.

**Who owns what.** `n_images_per_sample`, `n_videos_per_sample` and `n_audios_per_sample` in the batch say it, [B]
numbers each. They are looked at before any shape, and do not reach the model. Tiles or crops of pictures, where no grid
or `num_patches` counts them, are counted by `n_tiles_per_image`, and rows of any one input by
`n_<its name>_per_sample`. Without counts, only one medium for each row is accepted. A `lading.Batch` needs no counts:
its documents know.

**What is cut.** Every input that a family declares in its `fields`, those of other packages' families too. A tensor
that no family declares is refused by name, unless `fields` says what its rows count: `{"depth": Field(axis="image")}`.

**Rows.** Microbatches are cut as torch cuts them (`torch.tensor_split`). Three-way positions [3, B, S] stay in the
batch; `lading.vlm.media_rows.row_axes` says on which axis a schedule must split each tensor. Media are cut for batches
that do not divide, too, but torch's stages exchange activations of one shape and need equal microbatches of one length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import torch

from lading.errors import ConfigError
from lading.families import media_inputs
from lading.fields import BOUNDARIES, Field
from lading.microbatch import cut_batch, piece_sizes
from lading.records import Batch
from lading.vlm.media_rows import WHERE, MediaRows, bookkeeping, chunk_media, refuse_undeclared
from lading.vlm.pipeline_stage import staged_media

__all__ = [
    "VLM_PP_MEDIA_KEY",
    "chunk_vlm_media",
    "prepare_vlm_media_for_pp",
    "stage_vlm_media_for_pp",
    "wrap_vlm_collate_for_pp",
]

VLM_PP_MEDIA_KEY: Final = "_vlm_pp_media_chunks"
"""Where a prepared batch keeps its media: a dictionary of lists, one entry for each microbatch, `None` for nothing."""

_STEP3: Final = ("pixel_values", "patch_pixel_values", "num_patches", "patch_newline_mask")
_VLM_MEDIA_KEYS: Final = tuple(dict.fromkeys((*_STEP3, *media_inputs())))
"""Every media input of every family, in the page's order. `lading.families.media_inputs` says what their rows count."""


def _select_image_grid(
    image_grid_hws: torch.Tensor | None,
    image_grid_thw: torch.Tensor | None,
    image_sizes: torch.Tensor | None,
    image_position_ids: torch.Tensor | None,
) -> torch.Tensor | None:
    """The first of a batch's tensors with one row for each image, in this order; `None` where there is none.

    >>> _select_image_grid(None, torch.tensor([[1, 4, 6]]), torch.tensor([[56, 84]]), None)
    tensor([[1, 4, 6]])
    """
    candidates = (image_grid_hws, image_grid_thw, image_sizes, image_position_ids)
    return next((candidate for candidate in candidates if candidate is not None), None)


def chunk_step3_media(
    pixel_values: torch.Tensor,
    batch_size: int,
    n_microbatches: int,
    num_patches: torch.Tensor | None = None,
    patch_pixel_values: torch.Tensor | None = None,
    patch_newline_mask: torch.Tensor | None = None,
    n_images_per_sample: torch.Tensor | None = None,
) -> dict[str, list[torch.Tensor]]:
    """Step-3 style images for each microbatch: the whole pictures, and their crops by `num_patches`.

    Only what was given is returned. A microbatch without crops gets a tensor of no rows.

    >>> chunks = chunk_step3_media(torch.zeros(2, 3, 8, 8), 2, 2, torch.tensor([3, 0]), torch.zeros(3, 3, 4, 4))
    >>> [len(chunk) for chunk in chunks["patch_pixel_values"]]
    [3, 0]
    """
    given = {
        "pixel_values": pixel_values,
        "num_patches": num_patches,
        "patch_pixel_values": patch_pixel_values,
        "patch_newline_mask": patch_newline_mask,
    }
    media = MediaRows.read({**given, "n_images_per_sample": n_images_per_sample}, batch_size)
    return {name: media.cut(name, n_microbatches) for name, value in given.items() if value is not None}


def chunk_vlm_media(
    pixel_values: torch.Tensor,
    image_grid: torch.Tensor,
    batch_size: int,
    n_microbatches: int,
    n_images_per_sample: torch.Tensor | None = None,
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Pixels and what describes them (one row for each image), for each microbatch.

    1. `[N, C, H, W]`: a row for each image.
    2. `[N, max_patches, D]`: a row for each image, padded.
    3. `[total_patches, D]` (or `[total_patches, C, H, W]`): flat patches, counted by the grid's sides.
    4. The same without `n_images_per_sample`: one image for each sample, or an error.

    Counts come first, also where there happen to be as many images as samples. A microbatch without images gets
    tensors of no rows.

    >>> pixels, sizes = chunk_vlm_media(
    ...     torch.zeros(4, 3, 8, 8), torch.zeros(4, 2), 4, 2, n_images_per_sample=torch.tensor([3, 1, 0, 0]))
    >>> [len(chunk) for chunk in pixels]
    [4, 0]
    """
    # Sides are multiplied out where pixels are flat; what is described patch by patch is padded, as the pixels are.
    name = "image_grid_thw" if image_grid.ndim <= 2 else "image_position_ids"
    batch = {"pixel_values": pixel_values, name: image_grid, "n_images_per_sample": n_images_per_sample}
    media = MediaRows.read(batch, batch_size)
    return media.cut("pixel_values", n_microbatches), media.cut(name, n_microbatches)


def prepare_vlm_media_for_pp(
    batch: MutableMapping[str, Any] | Batch,
    batch_size: int,
    n_microbatches: int,
    fields: Mapping[str, Field] | None = None,
) -> MutableMapping[str, Any]:
    """The batch with its media under `VLM_PP_MEDIA_KEY`, cut for the microbatches. A mapping is changed in place.

    `fields` says what the rows of inputs count that no family declares. A `lading.Batch` becomes a dictionary; it is
    cut by the table of its own family. A batch without media gets no such key.

    >>> batch = {"input_ids": torch.zeros(2, 5), "image_sizes": torch.tensor([[8, 8]]), "n_images_per_sample": [0, 1]}
    >>> prepare_vlm_media_for_pp(batch, batch_size=2, n_microbatches=2)[VLM_PP_MEDIA_KEY]
    {'image_sizes': [None, tensor([[8, 8]])]}
    """
    inputs = batch.inputs if isinstance(batch, Batch) else batch
    _checked_rows(inputs.get("input_ids"), batch_size)
    piece_sizes(batch_size, n_microbatches)  # Impossible numbers are refused even where there are no media to cut.
    if isinstance(batch, Batch):
        chunks = _chunk_documents(batch, n_microbatches, fields)
        batch = dict(inputs)
    else:
        refuse_undeclared({name: value for name, value in batch.items() if name != VLM_PP_MEDIA_KEY}, fields)
        chunks = chunk_media(batch, batch_size, n_microbatches, fields)
    # Only now, when nothing was refused, is a mapping changed.
    for name in [name for name in batch if name in chunks or name in _VLM_MEDIA_KEYS or bookkeeping(name)]:
        del batch[name]
    if chunks:
        batch[VLM_PP_MEDIA_KEY] = chunks
    return batch


def _checked_rows(ids: object, rows: int | None) -> int:
    """How many rows a batch has by its ids, which must be `rows` where that is known."""
    if isinstance(ids, torch.Tensor) and rows in (None, len(ids)):
        return len(ids)
    raise ConfigError(
        found=f"input_ids {list(ids.shape)}" if isinstance(ids, torch.Tensor) else "a batch without input_ids",
        wanted="input_ids" if rows is None else f"input_ids with {rows} rows",
        where=WHERE,
    )


def _chunk_documents(batch: Batch, pieces: int, fields: Mapping[str, Field] | None) -> dict[str, list[Any]]:
    """The media of a batch whose documents say what belongs to whom."""
    table = {**batch.fields, **(fields or {})}
    if any(name in batch.inputs for name in BOUNDARIES):
        raise ConfigError(
            found='a batch with the boundaries of its documents (attention="varlen")',
            wanted="Loader(microbatches=…), whose microbatches have boundaries of their own",
            consequence="a schedule would split the boundaries as if they were rows",
            where=WHERE,
        )
    cut = [piece.inputs for piece in cut_batch(batch, pieces, fields=table)]
    names = [name for name in batch.inputs if name in table and table[name].axis != "token"]
    return {name: [own.get(name) for own in cut] for name in names}


@contextmanager
def stage_vlm_media_for_pp(
    pp: Any, model_parts: list[torch.nn.Module], batch: MutableMapping[str, Any]
) -> Iterator[None]:
    """A context for one call of a schedule's `step` or `eval`: the batch's media wait at the first stage.

    On every rank the chunks are taken out of `batch`, which may then be passed on as keywords. On ranks without the
    first stage nothing else happens. `pp` is a framework's pipeline (`pp.info.has_first_stage`, `.stages`, `.schedule`)
    or a torch schedule; `lading.vlm.pipeline_stage` says what exactly is asked of it. Media are moved to the stage's
    device when their turn comes. At the end of the block, also by an error, the stage is as it was before.

    A schedule of another number of microbatches than the media were cut for is refused.
    """
    with staged_media(pp, model_parts, batch.pop(VLM_PP_MEDIA_KEY, None)):
        yield


def wrap_vlm_collate_for_pp(
    collate_fn: Callable[[Any], MutableMapping[str, Any]],
    n_microbatches: int,
    fields: Mapping[str, Field] | None = None,
) -> Callable[[Any], MutableMapping[str, Any]]:
    """A collate function that also prepares the media, for a DataLoader (it can be pickled if `collate_fn` can).

    >>> collate = wrap_vlm_collate_for_pp(lambda rows: {"input_ids": torch.tensor(rows)}, n_microbatches=2)
    >>> collate([[1, 2], [3, 4]])
    {'input_ids': tensor([[1, 2], [3, 4]])}
    """
    if n_microbatches < 1:
        raise ConfigError(found=f"{n_microbatches} microbatches", wanted="at least 1", where="wrap_vlm_collate_for_pp")
    return partial(_collate_for_pp, collate_fn, n_microbatches, fields)


def _collate_for_pp(
    collate_fn: Callable[[Any], MutableMapping[str, Any]],
    n_microbatches: int,
    fields: Mapping[str, Field] | None,
    examples: Any,
) -> MutableMapping[str, Any]:
    batch = collate_fn(examples)
    inputs = batch.inputs if isinstance(batch, Batch) else batch
    rows = _checked_rows(inputs.get("input_ids"), None)
    return prepare_vlm_media_for_pp(batch, rows, n_microbatches, fields)
