"""The page `pp_media`: its names, its four layouts, Step-3 crops, and media at the first stage of a real schedule."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader

from lading.errors import ConfigError
from lading.vlm import pp_media
from lading.vlm.pp_media import (
    VLM_PP_MEDIA_KEY,
    _select_image_grid,
    chunk_step3_media,
    chunk_vlm_media,
    prepare_vlm_media_for_pp,
    stage_vlm_media_for_pp,
    wrap_vlm_collate_for_pp,
)

PAGE = {
    "_select_image_grid": ["image_grid_hws", "image_grid_thw", "image_sizes", "image_position_ids"],
    "chunk_step3_media": [
        "pixel_values",
        "batch_size",
        "n_microbatches",
        "num_patches=None",
        "patch_pixel_values=None",
        "patch_newline_mask=None",
    ],
    "chunk_vlm_media": ["pixel_values", "image_grid", "batch_size", "n_microbatches", "n_images_per_sample=None"],
    "prepare_vlm_media_for_pp": ["batch", "batch_size", "n_microbatches"],
    "stage_vlm_media_for_pp": ["pp", "model_parts", "batch"],
    "wrap_vlm_collate_for_pp": ["collate_fn", "n_microbatches"],
}


@pytest.mark.parametrize("name", PAGE)
def test_names_parameters_and_defaults_are_the_pages(name: str) -> None:
    parameters = inspect.signature(getattr(pp_media, name)).parameters.values()
    written = [
        p.name if p.default is inspect.Parameter.empty else f"{p.name}={p.default}"  # what was added has a default
        for p in parameters
    ]
    assert written[: len(PAGE[name])] == PAGE[name]
    assert all("=" in added for added in written[len(PAGE[name]) :])


def test_constants_are_the_pages() -> None:
    assert VLM_PP_MEDIA_KEY == "_vlm_pp_media_chunks"
    assert pp_media._VLM_MEDIA_KEYS[:4] == ("pixel_values", "patch_pixel_values", "num_patches", "patch_newline_mask")
    assert pp_media._VLM_MEDIA_KEYS[4].startswith("ima")
    assert pp_media.__all__ == [
        "VLM_PP_MEDIA_KEY",
        "chunk_vlm_media",
        "prepare_vlm_media_for_pp",
        "stage_vlm_media_for_pp",
        "wrap_vlm_collate_for_pp",
    ]
    for key in ("second_per_grid_ts", "image_grid_thw", "image_grid_hws", "input_features", "audio_embed_sizes"):
        assert key in pp_media._VLM_MEDIA_KEYS


def test_the_first_grid_there_is() -> None:
    hws, thw, sizes, positions = (torch.tensor([number]) for number in range(4))
    assert _select_image_grid(hws, thw, sizes, positions) is hws
    assert _select_image_grid(None, thw, sizes, positions) is thw
    assert _select_image_grid(None, None, sizes, positions) is sizes
    assert _select_image_grid(None, None, None, positions) is positions
    assert _select_image_grid(None, None, None, None) is None


def lengths(chunks: list[Any]) -> list[int]:
    return [0 if chunk is None else len(chunk) for chunk in chunks]


class TestLayouts:
    GRIDS = torch.tensor([[1, 2, 2], [1, 4, 2], [1, 2, 6], [1, 4, 4]])

    def test_one_picture_a_sample(self) -> None:
        pixels, sizes = chunk_vlm_media(torch.arange(4).reshape(4, 1, 1, 1), torch.full((4, 2), 56), 4, 2)
        assert [chunk.flatten().tolist() for chunk in pixels] == [[0, 1], [2, 3]]
        assert lengths(sizes) == [2, 2]

    def test_padded_patches(self) -> None:
        positions = torch.zeros(4, 16, 2, dtype=torch.long)
        pixels, grids = chunk_vlm_media(torch.zeros(4, 16, 7), positions, 4, 3)
        assert lengths(pixels) == lengths(grids) == [2, 1, 1]
        pixels, grids = chunk_vlm_media(torch.zeros(4, 16, 7), positions, 4, 3, torch.tensor([0, 0, 3, 1]))
        assert lengths(pixels) == lengths(grids) == [0, 3, 1]

    @pytest.mark.parametrize("trailing", [(7,), (3, 14, 14)], ids=["flat", "Kimi"])
    def test_flat_patches_by_counts(self, trailing: tuple[int, ...]) -> None:
        patches = torch.arange(40).reshape(40, *[1] * len(trailing)).expand(40, *trailing)
        pixels, grids = chunk_vlm_media(patches, self.GRIDS, 3, 3, torch.tensor([2, 0, 2]))
        assert lengths(pixels) == [12, 0, 28]
        assert lengths(grids) == [2, 0, 2]
        assert int(pixels[2].flatten()[0]) == 12
        assert torch.equal(torch.cat(grids), self.GRIDS)

    def test_flat_patches_one_picture_a_sample(self) -> None:
        pixels, _ = chunk_vlm_media(torch.zeros(40, 7), self.GRIDS, 4, 2)
        assert lengths(pixels) == [12, 28]
        two_sided, _ = chunk_vlm_media(torch.zeros(40, 7), self.GRIDS[:, 1:], 4, 2)
        assert lengths(two_sided) == [12, 28]

    @pytest.mark.parametrize("pixels", [torch.zeros(4, 3, 8, 8), torch.zeros(4, 16, 7), torch.zeros(40, 7)])
    def test_counts_come_first(self, pixels: Tensor) -> None:
        counts = torch.tensor([3, 1, 0, 0])
        chunks, grids = chunk_vlm_media(pixels, self.GRIDS, 4, 2, counts)
        assert lengths(grids) == [4, 0]
        assert lengths(chunks) == [len(pixels), 0]

    def test_what_would_be_a_guess_is_refused(self) -> None:
        with pytest.raises(ConfigError, match=r"4 rows of image_grid_thw for 2 rows .* wanted n_images_per_sample"):
            chunk_vlm_media(torch.zeros(40, 7), self.GRIDS, 2, 2)
        with pytest.raises(ConfigError, match="39 rows of pixel_values; wanted 40"):
            chunk_vlm_media(torch.zeros(39, 7), self.GRIDS, 4, 2)


class TestStep3:
    PICTURES = torch.arange(4).reshape(4, 1, 1, 1)

    def test_crops_follow_their_pictures(self) -> None:
        numbers = torch.tensor([2, 0, 0, 3])
        crops, mask = torch.arange(5).reshape(5, 1, 1, 1), torch.tensor([True, False, True, True, False])
        chunks = chunk_step3_media(self.PICTURES, 4, 2, numbers, crops, mask)
        assert list(chunks) == ["pixel_values", "num_patches", "patch_pixel_values", "patch_newline_mask"]
        assert [chunk.flatten().tolist() for chunk in chunks["patch_pixel_values"]] == [[0, 1], [2, 3, 4]]
        assert [chunk.tolist() for chunk in chunks["patch_newline_mask"]] == [[True, False], [True, True, False]]
        assert [chunk.tolist() for chunk in chunks["num_patches"]] == [[2, 0], [0, 3]]
        assert lengths(chunks["pixel_values"]) == [2, 2]

    def test_as_many_crops_as_pictures_are_not_one_each(self) -> None:
        chunks = chunk_step3_media(self.PICTURES, 4, 2, torch.tensor([4, 0, 0, 0]), torch.zeros(4, 1))
        assert lengths(chunks["patch_pixel_values"]) == [4, 0]

    def test_pictures_alone(self) -> None:
        assert list(chunk_step3_media(self.PICTURES, 4, 4)) == ["pixel_values"]

    def test_several_pictures_a_sample(self) -> None:
        numbers, counts = torch.tensor([2, 0, 0, 3]), torch.tensor([0, 4])
        chunks = chunk_step3_media(self.PICTURES, 2, 2, numbers, torch.zeros(5, 1), None, counts)
        assert lengths(chunks["pixel_values"]) == [0, 4]
        assert lengths(chunks["patch_pixel_values"]) == [0, 5]

    def test_crops_that_nobody_counts(self) -> None:
        with pytest.raises(ConfigError, match="patch_pixel_values by itself; wanted num_patches"):
            chunk_step3_media(self.PICTURES, 4, 2, None, torch.zeros(4, 1))
        with pytest.raises(ConfigError, match="4 rows of patch_pixel_values; wanted 5"):
            chunk_step3_media(self.PICTURES, 4, 2, torch.tensor([2, 0, 0, 3]), torch.zeros(4, 1))


def make_batch() -> dict[str, Any]:
    """Four rows with 3, 1, 0 and 0 pictures of four patches each, and a clip in the last."""
    return {
        "input_ids": torch.arange(20).reshape(4, 5),
        "attention_mask": torch.ones(4, 5),
        "pixel_values": torch.arange(16.0).reshape(16, 1),
        "image_grid_thw": torch.tensor([[1, 2, 2]] * 4),
        "pixel_values_videos": torch.zeros(8, 1),
        "video_grid_thw": torch.tensor([[2, 2, 2]]),
        "second_per_grid_ts": [0.5],
        "image_sizes": None,
        "n_images_per_sample": torch.tensor([3, 1, 0, 0]),
        "n_videos_per_sample": torch.tensor([0, 0, 0, 1]),
    }


class TestPrepare:
    def test_media_leave_the_batch_under_their_own_names(self) -> None:
        batch = make_batch()
        ready = prepare_vlm_media_for_pp(batch, 4, 2)
        assert ready is batch
        assert set(ready) == {"input_ids", "attention_mask", VLM_PP_MEDIA_KEY}
        chunks = ready[VLM_PP_MEDIA_KEY]
        assert lengths(chunks["pixel_values"]) == [16, 0]
        assert lengths(chunks["image_grid_thw"]) == [4, 0]
        assert chunks["second_per_grid_ts"] == [None, [0.5]]
        assert "image_grid_hws" not in chunks
        assert "image_sizes" not in chunks

    def test_sides_without_time_keep_their_name(self) -> None:
        batch = {"input_ids": torch.zeros(2, 3), "pixel_values": torch.zeros(10, 3, 14, 14)}
        batch["image_grid_hws"] = torch.tensor([[2, 2], [2, 3]])
        chunks = prepare_vlm_media_for_pp(batch, 2, 2)[VLM_PP_MEDIA_KEY]
        assert list(chunks) == ["pixel_values", "image_grid_hws"]
        assert lengths(chunks["pixel_values"]) == [4, 6]

    def test_text_alone_gets_no_key(self) -> None:
        batch = {"input_ids": torch.zeros(2, 3), "n_images_per_sample": torch.tensor([0, 0]), "pixel_values": None}
        assert set(prepare_vlm_media_for_pp(batch, 2, 2)) == {"input_ids"}

    def test_twice_is_once(self) -> None:
        batch = prepare_vlm_media_for_pp(make_batch(), 4, 2)
        chunks = batch[VLM_PP_MEDIA_KEY]
        assert prepare_vlm_media_for_pp(batch, 4, 2)[VLM_PP_MEDIA_KEY] is chunks


def collate_nothing_in_particular(rows: list[int]) -> dict[str, Any]:
    return make_batch()


class TestWrap:
    def test_in_a_loader_with_workers(self) -> None:
        collate = wrap_vlm_collate_for_pp(collate_nothing_in_particular, n_microbatches=2)
        pickle.loads(pickle.dumps(collate))
        rows: Any = list(range(4))
        (batch,) = DataLoader(rows, batch_size=4, collate_fn=collate, num_workers=1)
        assert lengths(batch[VLM_PP_MEDIA_KEY]["pixel_values"]) == [16, 0]
        assert torch.equal(batch[VLM_PP_MEDIA_KEY]["pixel_values"][0], make_batch()["pixel_values"])

    def test_bad_numbers_and_batches(self) -> None:
        with pytest.raises(ConfigError, match="found 0 microbatches; wanted at least 1"):
            wrap_vlm_collate_for_pp(collate_nothing_in_particular, 0)
        with pytest.raises(ConfigError, match="found 5 microbatches of 4 rows; wanted 1 to 4"):
            wrap_vlm_collate_for_pp(collate_nothing_in_particular, 5)([])
        with pytest.raises(ConfigError, match="found a batch without input_ids"):
            wrap_vlm_collate_for_pp(lambda _: {"labels": torch.zeros(4, 5)}, 2)([])


class Seeing(nn.Module):
    """A stage that writes down what it is shown, and fails when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.seen: list[dict[str, Any]] = []
        self.fails = False

    def forward(self, ids: Tensor, **media: Any) -> Tensor:
        self.seen.append(media)
        if self.fails:
            raise ValueError("as it was told")
        return ids * self.weight


@pytest.fixture(scope="module")
def group() -> Iterator[None]:
    """A process group of this process alone, so that torch's own stages and schedules can be made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        yield
        dist.destroy_process_group()


@pytest.mark.xdist_group("pipeline")
@pytest.mark.usefixtures("group")
class TestStaging:
    def make(self, microbatches: int = 2) -> tuple[Seeing, Any]:
        from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

        module = Seeing()
        stage = PipelineStage(module, 0, 1, torch.device("cpu"))
        return module, ScheduleGPipe(stage, microbatches, loss_fn=lambda out, _: out.sum())

    def run(self, schedule: Any, pp: Any, module: nn.Module, batch: Any) -> None:
        with stage_vlm_media_for_pp(pp, [module], batch):
            assert VLM_PP_MEDIA_KEY not in batch, "what is left can be passed to the schedule"
            schedule.step(batch["input_ids"].float(), target=torch.zeros(4, 1))

    @pytest.mark.parametrize("kind", ["schedule", "stages", "framework", "framework without stages"])
    def test_each_microbatch_sees_its_own(self, kind: str) -> None:
        module, schedule = self.make()
        info = SimpleNamespace(has_first_stage=True, schedule=schedule, stages=[schedule._stage])
        bare = SimpleNamespace(has_first_stage=True, schedule=schedule, stages=None)
        pp: Any = {
            "schedule": schedule,
            "stages": [schedule._stage],
            "framework": SimpleNamespace(info=info),
            "framework without stages": SimpleNamespace(info=bare),
        }[kind]
        before = set(vars(schedule._stage))
        for _ in range(2):
            module.seen.clear()
            self.run(schedule, pp, module, prepare_vlm_media_for_pp(make_batch(), 4, 2))
            first, second = module.seen[-2:]  # A probe may have come before them.
            assert set(first) == {"pixel_values", "image_grid_thw"}
            assert torch.equal(first["pixel_values"], make_batch()["pixel_values"])
            assert set(second) == {"pixel_values_videos", "video_grid_thw", "second_per_grid_ts"}
        assert set(vars(schedule._stage)) == before

    def test_a_probe_sees_the_first_microbatch(self) -> None:
        module, schedule = self.make()
        self.run(schedule, schedule, module, prepare_vlm_media_for_pp(make_batch(), 4, 2))
        assert [sorted(media) for media in module.seen[:-2]] == [["image_grid_thw", "pixel_values"]]

    def test_it_is_taken_away_when_the_schedule_fails(self) -> None:
        module, schedule = self.make()
        before = set(vars(schedule._stage))
        module.fails = True
        with pytest.raises(ValueError, match="as it was told"):
            self.run(schedule, schedule, module, prepare_vlm_media_for_pp(make_batch(), 4, 2))
        assert set(vars(schedule._stage)) == before

    @pytest.mark.parametrize(("cut", "ran"), [(4, 2), (2, 4)])
    def test_another_number_of_microbatches_is_refused(self, cut: int, ran: int) -> None:
        module, schedule = self.make(ran)
        elsewhere = SimpleNamespace(info=SimpleNamespace(has_first_stage=False, schedule=schedule))
        for pp in (schedule, elsewhere):  # On all ranks alike: one that went on alone would wait for the others.
            with pytest.raises(ConfigError, match=f"found a schedule of {ran} microbatches; wanted {cut}"):
                self.run(schedule, pp, module, prepare_vlm_media_for_pp(make_batch(), 4, cut))
        assert module.seen == []

    def test_media_go_to_the_device_of_the_stage(self) -> None:
        module, schedule = self.make()
        batch = {
            "input_ids": torch.zeros(4, 5),
            "pixel_values": [torch.zeros(2, 3)] * 4,
            "image_sizes": torch.ones(4, 2),
        }
        prepare_vlm_media_for_pp(batch, 4, 2)
        with stage_vlm_media_for_pp(schedule, [module], batch):
            schedule._stage.device = torch.device("meta")
            schedule._stage.forward_one_chunk(0, (batch["input_ids"][:2],))
            schedule._stage.forward_one_chunk(1, (batch["input_ids"][2:],))
        for media in module.seen:
            assert [value.device.type for value in (*media["pixel_values"], media["image_sizes"])] == ["meta"] * 3

    def test_evaluation_too(self) -> None:
        module, schedule = self.make()
        batch = prepare_vlm_media_for_pp(make_batch(), 4, 2)
        with stage_vlm_media_for_pp(schedule, [module], batch):
            schedule.eval(batch["input_ids"].float(), target=torch.zeros(4, 1))
        assert lengths([media.get("pixel_values") for media in module.seen[-2:]]) == [16, 0]


class TestStagingElsewhere:
    def test_a_rank_without_the_first_stage_has_nothing_to_do(self) -> None:
        module, batch = Seeing(), prepare_vlm_media_for_pp(make_batch(), 4, 2)
        pp = SimpleNamespace(info=SimpleNamespace(has_first_stage=False, schedule=None, stages=[]))
        with stage_vlm_media_for_pp(pp, [module], batch):
            module(batch["input_ids"])
        assert module.seen == [{}]
        assert VLM_PP_MEDIA_KEY not in batch

    def test_without_torchs_stages_calls_are_counted(self) -> None:
        module, batch = Seeing(), prepare_vlm_media_for_pp(make_batch(), 4, 2)
        pp = SimpleNamespace(info=SimpleNamespace(has_first_stage=True))
        with stage_vlm_media_for_pp(pp, [module], batch):
            module(batch["input_ids"][:2])
            module(batch["input_ids"][2:])
        module(batch["input_ids"])
        assert lengths([media.get("pixel_values") for media in module.seen]) == [16, 0, 0]
        assert module.seen[2] == {}

    def test_calls_that_are_too_few_or_too_many(self) -> None:
        pp = SimpleNamespace(info=SimpleNamespace(has_first_stage=True))

        def call(module: nn.Module, times: int) -> None:
            batch = prepare_vlm_media_for_pp(make_batch(), 4, 2)
            with stage_vlm_media_for_pp(pp, [module], batch):
                for _ in range(times):
                    module(batch["input_ids"])

        with pytest.raises(ConfigError, match="ran 1 microbatches; wanted 2"):
            call(Seeing(), 1)
        with pytest.raises(ConfigError, match="runs microbatch 3; wanted 2"):
            call(Seeing(), 3)

    def test_a_schedule_that_never_ran_is_mentioned(self) -> None:
        pp = SimpleNamespace(info=SimpleNamespace(has_first_stage=True))
        batch = prepare_vlm_media_for_pp(make_batch(), 4, 2)
        with pytest.warns(UserWarning, match="did not run"), stage_vlm_media_for_pp(pp, [Seeing()], batch):
            pass

    def test_a_batch_without_media_asks_nothing_of_the_pipeline(self) -> None:
        with stage_vlm_media_for_pp(None, [], {"input_ids": torch.zeros(2, 3)}):
            pass

    def test_what_is_no_pipeline(self) -> None:
        batch = prepare_vlm_media_for_pp(make_batch(), 4, 2)
        with (
            pytest.raises(ConfigError, match=r"found NoneType with 0 stages.*wanted pp\.info with has_first_stage"),
            stage_vlm_media_for_pp(None, [], batch),
        ):
            pass
