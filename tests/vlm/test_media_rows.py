"""Media follow their rows: by counts, by documents, for every input of every family."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.distributed.pipelining.microbatch import split_args_kwargs_into_chunks

from lading import families, toy
from lading.encode import Encoder
from lading.errors import ConfigError, ExactnessError
from lading.fields import COUNT_NAMES, Field
from lading.loader import Samples
from lading.microbatch import cut_batch, piece_sizes
from lading.packing import build_pack, collate_packs
from lading.records import Batch, Encoded
from lading.sources import open_corpus
from lading.vlm.media_rows import chunk_media, row_axes
from lading.vlm.pp_media import VLM_PP_MEDIA_KEY, prepare_vlm_media_for_pp

MEDIA = families.media_inputs()


def owners(counts: Sequence[int], rows_of_each: Sequence[int]) -> Tensor:
    """One number for each row of a tensor: the batch row it belongs to."""
    of_media = [row for row, count in enumerate(counts) for _ in range(count)]
    return torch.tensor([row for row, rows in zip(of_media, rows_of_each, strict=True) for _ in range(rows)])


def everything(counts: Sequence[int], sides: Sequence[int]) -> dict[str, Any]:
    """A batch with every media input there is, each row filled with the number of its owner."""
    total = sum(counts)
    grids = torch.tensor([[1, side, 2] for side in sides[:total]]).reshape(total, 3)
    crops = [side % 3 for side in sides[:total]]
    rows_of = {
        "image_grid_thw": [2 * side for side in sides[:total]],
        "num_patches": crops,
        "num_local_patches": crops,
        "video_grid_thw": [2 * side for side in sides[:total]],
        "num_frames_per_video": [2 * side for side in sides[:total]],
    }
    batch: dict[str, Any] = {name: torch.tensor(counts) for name in COUNT_NAMES.values()}
    for name, ways in MEDIA.items():
        counter = next((other for way in ways for other in way.counted_by if other in rows_of), "")
        batch[name] = owners(counts, rows_of.get(counter, [1] * total))
    batch |= {"image_grid_thw": grids, "video_grid_thw": grids, "num_patches": torch.tensor(crops)}
    batch |= {"num_local_patches": crops, "num_frames_per_video": torch.tensor(rows_of["num_frames_per_video"])}
    batch["batch_num_images"] = torch.tensor(counts)
    return batch


COUNTERS = ("image_grid_thw", "video_grid_thw", "num_patches", "num_local_patches", "num_frames_per_video")


@given(st.data())
def test_every_input_goes_with_its_rows_and_nothing_is_lost(data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=6), label="counts")
    sides = data.draw(st.lists(st.integers(1, 4), min_size=sum(counts), max_size=sum(counts)), label="sides")
    pieces = data.draw(st.integers(1, len(counts)), label="pieces")
    batch = everything(counts, sides)
    chunks = chunk_media(batch, rows=len(counts), pieces=pieces)
    assert chunks.keys() == MEDIA.keys()
    row_pieces = torch.tensor_split(torch.arange(len(counts)), pieces)
    for name, parts in chunks.items():
        assert all(part is None or len(part) for part in parts), f"{name}: a tensor of no rows"
        present = [torch.as_tensor(part) for part in parts if part is not None]
        whole = torch.as_tensor(batch[name])
        if name != "batch_num_images":
            assert torch.equal(torch.cat(present) if present else whole[:0], whole), name
        if name in COUNTERS or name == "batch_num_images":
            continue
        for part, rows in zip(parts, row_pieces, strict=True):
            assert part is None or set(part.tolist()) <= set(rows.tolist()), f"{name} in another microbatch"


@pytest.mark.parametrize("pixels", [torch.arange(4), torch.arange(4 * 8).reshape(4, 8)[:, 0]])
def test_counts_come_before_a_shape_that_happens_to_fit(pixels: Tensor) -> None:
    batch = {
        "pixel_values": pixels,
        "image_sizes": torch.zeros(4, 2),
        "n_images_per_sample": torch.tensor([3, 1, 0, 0]),
    }
    chunks = chunk_media(batch, rows=4, pieces=2)
    assert torch.equal(chunks["pixel_values"][0], pixels)
    assert chunks["pixel_values"][1] is None
    assert chunks["image_sizes"][1] is None


@given(st.integers(1, 12), st.data())
def test_rows_are_cut_as_torch_cuts_them(rows: int, data: st.DataObject) -> None:
    pieces = data.draw(st.integers(1, rows))
    parts, _ = split_args_kwargs_into_chunks((torch.zeros(rows, 2),), {}, pieces)
    assert [len(part[0]) for part in parts] == piece_sizes(rows, pieces)


def test_positions_have_their_rows_on_another_axis() -> None:
    batch = {"attention_mask": torch.zeros(4, 9), "position_ids": torch.zeros(3, 4, 9), "use_cache": False}
    assert row_axes(batch) == {"attention_mask": 0, "position_ids": 1}
    assert row_axes({"position_ids": torch.zeros(4, 9), "attention_mask": torch.zeros(4, 1, 9, 9)}) == {
        "position_ids": 0,
        "attention_mask": 0,
    }


class TestLayouts:
    def test_stacked_by_sample_as_idefics_does(self) -> None:
        pixels, mask = torch.zeros(4, 2, 3, 8, 8), torch.ones(4, 2, 8, 8)
        batch = {"pixel_values": pixels, "pixel_attention_mask": mask}
        chunks = chunk_media(batch, rows=4, pieces=2)
        assert [part.shape[:2] for part in chunks["pixel_values"]] == [(2, 2), (2, 2)]
        chunks = chunk_media({**batch, "n_images_per_sample": [2, 1, 0, 0]}, rows=4, pieces=2)
        assert chunks["pixel_values"][0].shape[:2] == chunks["pixel_attention_mask"][0].shape[:2] == (2, 2)
        assert chunks["pixel_values"][1] is chunks["pixel_attention_mask"][1] is None

    def test_joined_on_the_second_axis_as_idefics_packs_are(self) -> None:
        pixels, mask = torch.arange(5.0).reshape(1, 5, 1, 1, 1), torch.ones(1, 5, 8, 8)
        batch = {"pixel_values": pixels, "pixel_attention_mask": mask}
        batch |= {"n_images_per_sample": torch.tensor([1, 0, 0, 1]), "n_tiles_per_image": torch.tensor([3, 2])}
        chunks = chunk_media(batch, rows=4, pieces=2)
        assert [part.flatten().tolist() for part in chunks["pixel_values"]] == [[0, 1, 2], [3, 4]]

    def test_tiles_are_counted_where_no_grid_does_it(self) -> None:
        batch = {"pixel_values": torch.arange(6), "n_images_per_sample": [2, 1], "n_tiles_per_image": [3, 1, 2]}
        assert [part.tolist() for part in chunk_media(batch, 2, 2)["pixel_values"]] == [[0, 1, 2, 3], [4, 5]]
        with pytest.raises(ConfigError, match=r"found 6 rows of pixel_values; wanted 3.*n_tiles_per_image"):
            chunk_media({**batch, "n_tiles_per_image": None}, 2, 2)

    def test_padded_patches_with_a_grid_beside_them(self) -> None:
        grids = torch.tensor([[1, 2, 2], [1, 4, 4], [1, 2, 4]])
        batch = {"pixel_values": torch.zeros(3, 16, 7), "image_grid_thw": grids, "n_images_per_sample": [0, 3]}
        chunks = chunk_media(batch, 2, 2)
        assert chunks["pixel_values"][0] is None
        assert chunks["pixel_values"][1].shape == (3, 16, 7)

    def test_frames_of_clips_are_counted_by_their_numbers(self) -> None:
        frames = torch.arange(7)
        batch = {"pixel_values_videos": frames, "video_position_ids": frames, "num_frames_per_video": [4, 3]}
        chunks = chunk_media({**batch, "n_videos_per_sample": [1, 0, 1]}, 3, 3)
        assert chunks["num_frames_per_video"] == [[4], None, [3]]
        for name in ("pixel_values_videos", "video_position_ids"):
            assert chunks[name][1] is None
            assert [chunks[name][0].tolist(), chunks[name][2].tolist()] == [[0, 1, 2, 3], [4, 5, 6]]

    def test_samples_with_pictures_only_may_be_counted(self) -> None:
        batch = {"batch_num_images": torch.tensor([3, 1]), "image_sizes": torch.zeros(4, 2)}
        chunks = chunk_media({**batch, "n_images_per_sample": [3, 0, 1]}, 3, 3)
        assert [None if part is None else part.tolist() for part in chunks["batch_num_images"]] == [[3], None, [1]]

    def test_numbers_of_images_stand_in_for_counts(self) -> None:
        batch = {"batch_num_images": torch.tensor([3, 1, 0, 0]), "image_sizes": torch.arange(4)}
        chunks = chunk_media(batch, 4, 2)
        assert chunks["image_sizes"][1] is chunks["batch_num_images"][1] is None


@pytest.mark.parametrize("name", families.names())
def test_every_input_of_every_family_is_in_the_table(name: str) -> None:
    for field_name, field in families.find(name).fields.items():
        assert field in families.media_inputs()[field_name]
        assert field in families.media_inputs(families.find(name).fields)[field_name]


@pytest.mark.parametrize("pieces", [1, 2, 3, 4])
@pytest.mark.parametrize("name", toy.recipes())
def test_batches_of_documents_need_no_counts(name: str, pieces: int, toy_meta: Path) -> None:
    samples = Samples(corpus=open_corpus(toy_meta), encoder=Encoder.of(toy.processor(name)))
    fields, facts = samples.facts.family.table, samples.facts
    packs = []
    for number, row in enumerate(((25, 26), (0,), (50, 51), (1, 52))):
        good = [sample for index in row if isinstance(sample := samples.encode(index), Encoded)]
        packs.append(build_pack(good, fields=fields, three_way=facts.three_way, number=number))
    batch = collate_packs(packs, fields=fields, pad_token=facts.pad_token)
    parts = cut_batch(batch, pieces)
    moved = prepare_vlm_media_for_pp(batch, 4, pieces)
    assert not MEDIA.keys() & moved.keys()
    assert moved[VLM_PP_MEDIA_KEY]
    for piece, part in enumerate(parts):
        for media, values in moved[VLM_PP_MEDIA_KEY].items():
            value, wanted = values[piece], part.inputs.get(media)
            assert (value is None) == (wanted is None), media
            assert value is None or (isinstance(wanted, Tensor) and torch.equal(value, wanted)), media


class TestBadInput:
    IDS = torch.zeros(4, 5, dtype=torch.long)

    @pytest.mark.parametrize("pieces", [0, -1, 5])
    def test_impossible_numbers_of_microbatches(self, pieces: int) -> None:
        with pytest.raises(ConfigError, match=rf"found {pieces} microbatches of 4 rows; wanted 1 to 4"):
            prepare_vlm_media_for_pp({"input_ids": self.IDS}, 4, pieces)

    def test_no_rows(self) -> None:
        with pytest.raises(ConfigError, match="found 1 microbatches of 0 rows"):
            piece_sizes(0, 1)

    @pytest.mark.parametrize("batch", [{}, {"input_ids": None}, {"pixel_values": torch.zeros(4, 3)}])
    def test_no_input_ids(self, batch: dict[str, Any]) -> None:
        with pytest.raises(ConfigError, match="found a batch without input_ids; wanted input_ids with 4 rows"):
            prepare_vlm_media_for_pp(batch, 4, 2)

    def test_another_batch_size(self) -> None:
        with pytest.raises(ConfigError, match=r"found input_ids \[4, 5\]; wanted input_ids with 8 rows"):
            prepare_vlm_media_for_pp({"input_ids": self.IDS}, 8, 2)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"n_images_per_sample": [2, 1, 0, 0]}, r"4 rows of image_grid_thw; wanted 3, as n_images_per_sample"),
            ({"n_images_per_sample": [3, 1]}, r"n_images_per_sample = \[3, 1\]; wanted 4 counts"),
            ({"n_images_per_sample": [5, -1, 0, 0]}, r"\[5, -1, 0, 0\]; wanted 4 counts"),
            ({"pixel_values": torch.zeros(15, 3)}, r"15 rows of pixel_values; wanted 16, as image_grid_thw"),
            ({"image_sizes": torch.zeros(3, 2)}, r"3 rows of image_sizes; wanted 4, as n_images_per_sample"),
            ({"n_videos_per_sample": [1, 0, 0, 0]}, r"n_videos_per_sample = \[1, 0, 0, 0\] and no video tensors"),
            ({"patch_pixel_values": torch.zeros(2, 3)}, r"patch_pixel_values by itself; wanted num_patches"),
            (
                {"input_features": torch.zeros(3, 8)},
                r"3 rows of input_features for 4 rows.*without n_audios_per_sample",
            ),
            ({"n_images_per_sample": None, "image_grid_thw": None}, r"16 rows of pixel_values for 4 rows"),
        ],
    )
    def test_numbers_that_do_not_add_up(self, change: dict[str, Any], message: str) -> None:
        batch = {
            "input_ids": self.IDS,
            "pixel_values": torch.zeros(16, 3),
            "image_grid_thw": torch.tensor([[1, 2, 2]] * 4),
            "n_images_per_sample": [3, 1, 0, 0],
            **change,
        }
        before = dict(batch)
        with pytest.raises(ConfigError, match=message):
            prepare_vlm_media_for_pp(batch, 4, 2)
        assert batch == before, "what was refused is left as it was"

    def test_documents_that_do_not_fit_their_tensors(self, toy_samples: Samples) -> None:
        facts, sample = toy_samples.facts, toy_samples.encode(0)
        assert isinstance(sample, Encoded)
        inputs = {"input_ids": self.IDS[:1], "image_grid_thw": torch.zeros(3, 3)}
        batch = Batch(inputs=inputs, rows=((sample.document,),), fields=facts.family.table)
        with pytest.raises(ExactnessError, match="found 3 rows of 'image_grid_thw'; wanted 1"):
            cut_batch(batch, 1)

    def test_what_nobody_declared(self) -> None:
        batch = {"input_ids": self.IDS, "depth_values": torch.zeros(2, 8), "n_images_per_sample": [2, 0, 0, 0]}
        with pytest.raises(ConfigError, match=r"found depth_values, which no family declares; wanted .*fields="):
            prepare_vlm_media_for_pp(dict(batch), 4, 2)
        chunks = prepare_vlm_media_for_pp(batch, 4, 2, fields={"depth_values": Field(axis="image")})[VLM_PP_MEDIA_KEY]
        assert [part if part is None else len(part) for part in chunks["depth_values"]] == [2, None]

    def test_one_microbatch_needs_no_counts(self) -> None:
        batch = {"pixel_values": torch.zeros(16, 3), "image_grid_thw": torch.tensor([[1, 4, 4]])}
        chunks = chunk_media(batch, rows=4, pieces=1)
        assert len(chunks["pixel_values"][0]) == 16
