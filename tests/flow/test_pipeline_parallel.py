"""A model in two stages, in two processes, has the loss and the gradients of the whole one.

Four microbatches of two rows: three pictures in one row and none in the other; no media at all; a clip and a picture
in one row and a picture in the other; none and three pictures. Eight pictures for eight rows, so that whoever looks at
shapes first takes them for one each.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lading import toy
from lading.loader import Loader, Samples
from lading.microbatch import PipelineBatch
from lading.packing import build_pack, collate_samples
from lading.records import Batch, Encoded
from lading.vlm.media_rows import row_axes
from lading.vlm.pp_media import VLM_PP_MEDIA_KEY, prepare_vlm_media_for_pp, stage_vlm_media_for_pp

pytestmark = pytest.mark.xdist_group("pipeline")

PICTURES = (3, 0, 0, 0, 1, 1, 0, 3)
CLIPS = (0, 0, 0, 0, 1, 0, 0, 0)
MICROBATCHES = 4
LAYERS = 4
LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-5, 1e-6


def whole_model() -> Any:
    """The toy with as many layers as there may be stages."""
    small = toy.model("qwen2_5_vl")
    small.config.text_config.num_hidden_layers = LAYERS
    small.config.text_config.layer_types = ["full_attention"] * LAYERS
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return type(small)(small.config)


class First(nn.Module):
    """The vision tower, the embeddings and the first layers."""

    def __init__(self, model: Any, stop: int) -> None:
        super().__init__()
        self.model = model.model
        self.model.language_model.layers = self.model.language_model.layers[:stop]
        self.model.language_model.norm = nn.Identity()

    def forward(
        self, input_ids: Tensor, mm_token_type_ids: Tensor | None = None, use_cache: bool = False, **inputs: Any
    ) -> Tensor:
        # Token types only serve to find positions, which are there.
        assert all(value is None or len(value) for value in inputs.values()), "an input of no rows"
        hidden: Tensor = self.model(input_ids=input_ids, use_cache=use_cache, **inputs).last_hidden_state
        return hidden


class Later(nn.Module):
    """Some further layers; the last ones with the norm and the head."""

    def __init__(self, model: Any, start: int, stop: int) -> None:
        super().__init__()
        self.decoder = model.model.language_model
        self.decoder.layers = self.decoder.layers[start:stop]
        self.head = model.lm_head if stop == LAYERS else nn.Identity()
        if stop < LAYERS:
            self.decoder.norm = nn.Identity()

    def forward(
        self, hidden: Tensor, position_ids: Tensor, attention_mask: Tensor | None = None, **unused: Any
    ) -> Tensor:
        assert unused.keys() <= {"mm_token_type_ids", "use_cache"}, "media behind the first stage"
        inputs = {"attention_mask": attention_mask, "position_ids": position_ids, "use_cache": False}
        logits: Tensor = self.head(self.decoder(inputs_embeds=hidden, **inputs).last_hidden_state)
        return logits


def total_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """A sum over tokens, so that those of the microbatches add up; divided by about as many as the batch has."""
    return cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum") / 200


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One or more steps of one schedule."""

    schedule: str
    steps: list[Any]
    """Dictionaries that are prepared, or batches of a loader."""
    stages: int = 2
    framework: bool = False
    only_vision: bool = False
    """Everything but the vision tower is frozen."""


def make_batch(turn: int = 0) -> dict[str, Any]:
    """Eight rows as transformers' own processor makes them, with their labels and three-way positions."""
    processor = toy.processor("qwen2_5_vl")
    draw = torch.Generator().manual_seed(turn)
    sizes = [(56, 84), (84, 56), (56, 56)]
    texts, pictures, clips = [], [], []
    for row, (some, clip) in enumerate(zip(PICTURES, CLIPS, strict=True)):
        marks = "<|vision_start|><|image_pad|><|vision_end|>" * some
        marks += "<|vision_start|><|video_pad|><|vision_end|>" * clip
        texts.append(f"{marks}What do you see, row {row}, turn {turn}? " + "Nothing at all. " * (row % 3))
        pictures += [
            torch.randint(0, 256, (3, *sizes[place]), generator=draw, dtype=torch.uint8) for place in range(some)
        ]
        clips += [torch.randint(0, 256, (4, 3, 56, 56), generator=draw, dtype=torch.uint8) for _ in range(clip)]
    # A schedule's buffers keep the shapes of its first step, so all rows of a run have one length.
    filling: dict[str, Any] = {"padding": "max_length", "max_length": 64, "return_tensors": "pt"}
    made = dict(processor(text=texts, images=pictures, videos=clips, **filling))
    made["position_ids"], _ = whole_model().model.get_rope_index(
        **{name: value for name, value in made.items() if not name.startswith("pixel_values")}
    )
    del made["mm_token_type_ids"]
    labels = made["input_ids"].masked_fill(made["attention_mask"] == 0, -100).roll(-1, dims=1)
    labels[:, -1] = -100
    return {
        **made,
        "labels": labels,
        "n_images_per_sample": torch.tensor(PICTURES),
        "n_videos_per_sample": torch.tensor(CLIPS),
    }


def make_own_batch(samples: Samples) -> Batch:
    """Eight rows of our own: two albums, plain talk, a clip, pictures. Their documents say what belongs to whom."""
    facts, singles = samples.facts, []
    for index in (25, 50, 51, 52, 37, 0, 26, 1):
        sample = samples.encode(index)
        assert isinstance(sample, Encoded)
        singles.append(build_pack([sample], fields=facts.family.table, three_way=facts.three_way))
    return collate_samples(singles, fields=facts.family.table, pad_token=facts.pad_token)


def model_inputs(batch: Mapping[str, Any]) -> dict[str, Any]:
    """What the stages take, of all that a batch carries. Token types only serve to find positions, which are there."""
    unused = ("shift_labels", "use_cache", "mm_token_type_ids")
    return {name: value for name, value in batch.items() if name not in unused}


def whole_step(batch: Mapping[str, Any], *, only_vision: bool = False) -> tuple[float, dict[str, Tensor]]:
    """Loss and gradients of the model in one piece."""
    model = whole_model()
    freeze(model, only_vision)
    inputs = {name: value for name, value in batch.items() if not name.startswith("n_") and name != "labels"}
    logits = model(**inputs, use_cache=False).logits
    loss = total_loss(logits, batch["labels"])
    loss.backward()
    return loss.item(), {name: value.grad for name, value in model.named_parameters() if value.grad is not None}


def freeze(model: Any, only_vision: bool) -> None:
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not only_vision or "visual" in name)


def process(rank: int, folder: Path) -> None:
    """One of the two processes: all scenarios, one after the other."""
    import torch.distributed as dist

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    scenarios: dict[str, Scenario] = torch.load(folder / "scenarios.pt", weights_only=False)
    for name, scenario in scenarios.items():
        torch.save(run(scenario, rank), folder / f"{name}-{rank}.pt")
    dist.destroy_process_group()


def run(scenario: Scenario, rank: int) -> list[dict[str, Any]]:
    from torch.distributed.pipelining import PipelineStage, schedules
    from torch.distributed.pipelining.microbatch import TensorChunkSpec

    count, device = scenario.stages, torch.device("cpu")
    numbers = range(rank, count, 2)
    names: dict[nn.Parameter, str] = {}
    stages = []
    for number in numbers:
        model = whole_model()
        freeze(model, scenario.only_vision)
        names |= {parameter: name for name, parameter in model.named_parameters()}
        start, stop = LAYERS // count * number, LAYERS // count * (number + 1)
        part = Later(model, start, stop) if number else First(model, stop)
        stages.append(PipelineStage(part, number, count, device))
    kind: Any = getattr(schedules, scenario.schedule)
    own = isinstance(scenario.steps[0], PipelineBatch)
    axes = None if own else TensorChunkSpec.from_dict(row_axes(stage_inputs(scenario.steps[0])))
    schedule = kind(
        stages if count > 2 else stages[0],
        n_microbatches=MICROBATCHES,
        loss_fn=total_loss,
        kwargs_chunk_spec=axes,
        scale_grads=False,
    )
    info = SimpleNamespace(has_first_stage=rank == 0, has_last_stage=rank == 1, schedule=schedule, stages=stages)
    pp = SimpleNamespace(info=info) if scenario.framework else schedule
    parts = [stage.submod for stage in stages]
    if own:
        return [own_step(schedule, batch, parts, names) for batch in scenario.steps]
    return [step(schedule, pp, parts, dict(batch), names) for batch in scenario.steps]


def own_step(schedule: Any, batch: PipelineBatch, parts: list[nn.Module], names: Any) -> dict[str, Any]:
    """What a loader hands over goes to the schedule as it is."""
    losses: list[Tensor] = []
    first = isinstance(parts[0], First)
    schedule.step(**batch.step_inputs(first=first, last=not first), losses=losses)
    return outcome(losses, parts, names)


def stage_inputs(batch: Mapping[str, Any]) -> dict[str, Any]:
    return {name: batch[name] for name in batch if name not in ("input_ids", "labels", VLM_PP_MEDIA_KEY)}


def step(schedule: Any, pp: Any, parts: list[nn.Module], batch: dict[str, Any], names: Any) -> dict[str, Any]:
    ids, labels = batch.pop("input_ids"), batch.pop("labels")
    losses: list[Tensor] = []
    before = [dict(vars(stage)) for stage in (pp.info.stages if pp is not schedule else [])]
    with stage_vlm_media_for_pp(pp, parts, batch):
        assert row_axes(batch) == {"attention_mask": 0, "position_ids": 1}, "only what has rows is left"
        first = isinstance(parts[0], First)
        schedule.step(*([ids] if first else []), target=labels, losses=losses, **batch)
    after = [dict(vars(stage)) for stage in (pp.info.stages if pp is not schedule else [])]
    assert [set(one) for one in before] == [set(one) for one in after]
    return outcome(losses, parts, names)


def outcome(losses: list[Tensor], parts: list[nn.Module], names: Any) -> dict[str, Any]:
    """Losses of the microbatches and gradients of this rank's stages, which are then cleared."""
    found = {
        names[parameter]: parameter.grad.clone()
        for part in parts
        for parameter in part.parameters()
        if parameter.grad is not None
    }
    for part in parts:
        part.zero_grad()
    return {"losses": [loss.item() for loss in losses], "gradients": found}


def make_loaded(meta: Path, attention: str) -> PipelineBatch:
    """A batch as a loader hands it over: packs, and pictures in some of its microbatches more than in others."""
    options: dict[str, Any] = {"pack_size": 110, "batch_size": 8, "microbatches": MICROBATCHES}
    loader = Loader(meta, "toy:qwen2_5_vl", attention=attention, progress=False, seed=1, **options)
    batch = next(iter(loader))
    assert isinstance(batch, PipelineBatch)
    return batch


def prepared(batch: Mapping[str, Any]) -> dict[str, Any]:
    return dict(prepare_vlm_media_for_pp(dict(batch), batch_size=8, n_microbatches=MICROBATCHES))


def swapped(batch: dict[str, Any]) -> dict[str, Any]:
    """The fault to be seen: the pictures of the first and the last microbatch, of the same sizes, change places."""
    chunks = {name: list(parts) for name, parts in batch[VLM_PP_MEDIA_KEY].items()}
    pixels = chunks["pixel_values"]
    pixels[0], pixels[3] = pixels[3], pixels[0]
    return {**batch, VLM_PP_MEDIA_KEY: chunks}


@dataclass(frozen=True, kw_only=True)
class Results:
    folder: Path
    batches: list[dict[str, Any]]

    def of(self, name: str, number: int = 0) -> tuple[float, dict[str, Tensor]]:
        """The sum of the microbatches' losses, and the gradients of all stages."""
        both = [torch.load(self.folder / f"{name}-{rank}.pt", weights_only=False)[number] for rank in (0, 1)]
        assert not both[0]["gradients"].keys() & both[1]["gradients"].keys(), "a parameter in two stages"
        return sum(both[1]["losses"]), {**both[0]["gradients"], **both[1]["gradients"]}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, toy_samples: Samples, toy_meta: Path) -> Results:
    folder = tmp_path_factory.mktemp("pipeline")
    own = make_own_batch(toy_samples)
    batches = [make_batch(0), make_batch(1), model_inputs(own.inputs)]
    ready = [prepared(batch) for batch in batches[:2]]
    own_ready = prepare_vlm_media_for_pp(own, len(own.rows), MICROBATCHES)
    loaded = [make_loaded(toy_meta, attention) for attention in ("positions", "mask")]
    batches += [{**model_inputs(batch.inputs), "labels": batch["shift_labels"]} for batch in loaded]
    scenarios = {
        "loader-positions": Scenario(schedule="Schedule1F1B", steps=loaded[:1]),
        "loader-mask": Scenario(schedule="ScheduleGPipe", steps=loaded[1:]),
        "gpipe": Scenario(schedule="ScheduleGPipe", steps=ready),
        "1f1b": Scenario(schedule="Schedule1F1B", steps=ready[:1], framework=True),
        "interleaved": Scenario(schedule="ScheduleInterleaved1F1B", steps=ready[:1], stages=4, framework=True),
        "vision": Scenario(schedule="Schedule1F1B", steps=ready[:1], only_vision=True),
        "documents": Scenario(schedule="Schedule1F1B", steps=[model_inputs(own_ready)]),
        "swapped": Scenario(schedule="ScheduleGPipe", steps=[swapped(ready[0])]),
    }
    torch.save(scenarios, folder / "scenarios.pt")
    torch.multiprocessing.spawn(process, args=(folder,), nprocs=2)
    return Results(folder=folder, batches=batches)


def worst(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> float:
    assert found.keys() == wanted.keys()
    return max(float((found[name] - wanted[name]).abs().max()) for name in wanted)


def test_the_pictures_are_as_many_as_the_rows_and_not_one_each(results: Results) -> None:
    batch = results.batches[0]
    assert len(batch["image_grid_thw"]) == len(batch["input_ids"]) == 8
    chunks = prepared(batch)[VLM_PP_MEDIA_KEY]
    assert [0 if part is None else len(part) for part in chunks["image_grid_thw"]] == [3, 0, 2, 3]
    assert [0 if part is None else len(part) for part in chunks["video_grid_thw"]] == [0, 0, 1, 0]


@pytest.mark.parametrize(("name", "number"), [("gpipe", 0), ("gpipe", 1), ("1f1b", 0), ("interleaved", 0)])
def test_loss_and_all_gradients_equal_the_whole_models(results: Results, name: str, number: int) -> None:
    wanted_loss, wanted = whole_step(results.batches[number])
    loss, found = results.of(name, number)
    assert loss == pytest.approx(wanted_loss, abs=LOSS_TOLERANCE)
    assert worst(found, wanted) <= GRADIENT_TOLERANCE
    assert any("visual" in parameter for parameter in wanted)
    assert all(bool(gradient.any()) for gradient in wanted.values() if gradient.ndim > 1)


def test_a_vision_tower_that_alone_is_trained_gets_its_gradients(results: Results) -> None:
    wanted_loss, wanted = whole_step(results.batches[0], only_vision=True)
    loss, found = results.of("vision")
    assert loss == pytest.approx(wanted_loss, abs=LOSS_TOLERANCE)
    assert worst(found, wanted) <= GRADIENT_TOLERANCE


def test_the_documents_of_a_batch_say_the_same(results: Results) -> None:
    wanted_loss, wanted = whole_step(results.batches[2])
    loss, found = results.of("documents")
    assert {"pixel_values", "pixel_values_videos"} <= results.batches[2].keys()
    assert loss == pytest.approx(wanted_loss, abs=LOSS_TOLERANCE)
    assert worst(found, wanted) <= GRADIENT_TOLERANCE


@pytest.mark.parametrize(("attention", "number"), [("positions", 3), ("mask", 4)])
def test_batches_of_a_loader_go_to_a_schedule_as_they_are(results: Results, attention: str, number: int) -> None:
    batch = results.batches[number]
    wanted_loss, wanted = whole_step(batch)
    loss, found = results.of(f"loader-{attention}")
    assert "pixel_values" in batch
    assert loss == pytest.approx(wanted_loss, abs=LOSS_TOLERANCE)
    assert worst(found, wanted) <= GRADIENT_TOLERANCE


def test_a_loaders_microbatches_are_not_alike(toy_meta: Path) -> None:
    pieces = make_loaded(toy_meta, "positions").microbatches
    assert len({len(piece.inputs.get("image_grid_thw", ())) for piece in pieces}) > 1


def test_the_comparison_sees_media_of_another_microbatch(results: Results) -> None:
    _, wanted = whole_step(results.batches[0])
    _, found = results.of("swapped")
    assert worst(found, wanted) > 100 * GRADIENT_TOLERANCE
