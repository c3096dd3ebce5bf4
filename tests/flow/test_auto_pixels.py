"""`pixels="auto"`, the default: bytes leave the workers, and whoever reads a batch finds what a processor makes."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import lading
from lading import Loader, families, toy
from lading.microbatch import cut_batch
from lading.records import Batch, LazyPixels, held

CAPABLE = tuple(name for name in families.names() if families.find(name).raw is not None)
PIXELS = ("pixel_values", "pixel_values_videos")
TOY = "toy:qwen2_5_vl"
OPTIONS = {"pack_size": 512, "batch_size": 2}


@pytest.fixture(scope="module")
def meta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("corpus"), samples=30)


@pytest.fixture(scope="module")
def pairs(meta: Path) -> list[tuple[Batch, Batch]]:
    """Batches of the default and of `pixels="model"`, side by side; the first ones are not to be read."""
    by_default, by_model = Loader(meta, TOY, **OPTIONS), Loader(meta, TOY, pixels="model", **OPTIONS)
    return [pair for pair in zip(by_default, by_model, strict=True) if any(name in pair[1] for name in PIXELS)]


def fresh(batch: Batch) -> Batch:
    """A copy that nobody has read."""
    return copy.deepcopy(batch)


def waiting(batch: Batch) -> dict[str, LazyPixels]:
    found = {name: value for name, value in held(batch.inputs).items() if isinstance(value, LazyPixels)}
    return {name: pixels for name, pixels in found.items() if "bytes" in repr(pixels)}


def assert_equal(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        if isinstance(value, torch.Tensor):
            assert isinstance(found[name], torch.Tensor)
            assert found[name].dtype == value.dtype
            assert torch.equal(found[name], value), name


@pytest.mark.parametrize("name", CAPABLE)
@pytest.mark.parametrize("workers", [0, 2])
def test_the_default_feeds_what_model_does_to_the_bit(meta: Path, name: str, workers: int) -> None:
    by_default = Loader(meta, f"toy:{name}", num_workers=workers, **OPTIONS)
    by_model = Loader(meta, f"toy:{name}", num_workers=workers, pixels="model", **OPTIONS)
    seen: list[str] = []
    for lazy, plain in zip(by_default, by_model, strict=True):
        carried = waiting(lazy)
        assert set(carried) == {pixels for pixels in PIXELS if pixels in plain}
        if "pixel_values" in carried:
            assert carried["pixel_values"].nbytes * 8 == plain.tensor("pixel_values").nbytes
        assert_equal(dict(lazy), dict(plain))
        assert not waiting(lazy)
        for pixels, value in held(lazy.inputs).items():
            if isinstance(value, LazyPixels):
                assert value.nbytes == plain.tensor(pixels).nbytes  # the bytes are let go
        seen += carried
    assert set(seen) == set(PIXELS)
    assert by_default.state_dict() == by_model.state_dict()


WAYS: dict[str, Callable[[Batch], Mapping[str, Any]]] = {
    "dict": dict,
    "stars": lambda batch: {**batch},
    "items": lambda batch: {name: value for name, value in batch.items()},  # noqa: C416 - as people write it
    "values": lambda batch: dict(zip(batch, batch.values(), strict=True)),
    "names": lambda batch: {name: batch[name] for name in batch},
    "inputs": lambda batch: {name: batch.inputs[name] for name in batch.inputs},
    "inputs in stars": lambda batch: {**batch.inputs},
    "copy": lambda batch: dict(copy.copy(batch)),
    "deepcopy": lambda batch: dict(copy.deepcopy(batch)),
    "replace": lambda batch: dict(replace(batch, dropped=())),
    "pickle": lambda batch: dict(pickle.loads(pickle.dumps(batch))),
    "to": lambda batch: dict(batch.to("cpu")),
    "with inputs": lambda batch: dict(batch.with_inputs({})),
    "keyword arguments": lambda batch: dict(**batch),
}


@pytest.mark.parametrize("way", WAYS)
def test_whichever_way_it_is_read(pairs: list[tuple[Batch, Batch]], way: str) -> None:
    for lazy, plain in pairs:
        batch = fresh(lazy)
        assert waiting(batch)
        assert_equal(WAYS[way](batch), dict(plain))


def test_what_accelerate_and_the_trainer_do_with_a_batch(pairs: list[tuple[Batch, Batch]]) -> None:
    operations = pytest.importorskip("accelerate.utils.operations")
    for lazy, plain in pairs:
        sent = operations.send_to_device(fresh(lazy), "cpu", non_blocking=True)
        assert isinstance(sent, Batch)
        assert_equal(dict(sent), dict(plain))
        # Mappings are rebuilt as type(mapping)({name: …}).
        for mapping in (fresh(lazy).inputs, dict(fresh(lazy))):
            assert_equal(operations.send_to_device(mapping, torch.device("cpu")), dict(plain))
            assert_equal(operations.recursively_apply(lambda tensor: tensor.clone(), mapping), dict(plain))


def test_accelerate_prepares_a_data_loader_of_ones_own(meta: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    by_model = Loader(meta, TOY, pixels="model", **OPTIONS)
    prepared = accelerate.Accelerator(cpu=True).prepare(DataLoader(**Loader(meta, TOY, **OPTIONS).parts()))
    for lazy, plain in zip(prepared, by_model, strict=True):
        assert_equal(dict(lazy), dict(plain))


def test_asking_around_scales_nothing(pairs: list[tuple[Batch, Batch]]) -> None:
    batch = fresh(pairs[0][0])
    before = list(waiting(batch))
    assert "pixel_values" in batch
    assert "pixel_values" in batch.inputs
    assert list(batch.keys()) == list(batch) == list(batch.inputs)
    assert len(batch) == len(batch.inputs)
    assert batch.label_tokens
    assert "bytes" in repr(batch)
    kept = lading.trained_only(replace(batch, rows=batch.rows[:1])) if len(batch.tensor("labels")) == 1 else batch
    for other in (copy.copy(batch), copy.deepcopy(batch), pickle.loads(pickle.dumps(batch)), batch.to("cpu"), kept):
        assert list(waiting(other)) == before


def test_trained_only_keeps_bytes(meta: Path) -> None:
    batch = next(batch for batch in Loader(meta, TOY, pack_size=512) if "pixel_values" in batch)
    chosen = lading.trained_only(batch)
    assert waiting(chosen)
    assert "logits_to_keep" in chosen
    assert chosen["pixel_values"] is batch["pixel_values"]


def test_copies_of_one_device_are_scaled_once(pairs: list[tuple[Batch, Batch]]) -> None:
    batch = fresh(pairs[0][0])
    (name, *_) = waiting(batch)
    others = [copy.copy(batch), replace(batch, dropped=()), batch.to("cpu"), batch.with_inputs({})]
    assert all(other[name] is batch[name] for other in others)
    assert torch.equal(copy.deepcopy(batch).tensor(name), batch.tensor(name))


def test_threads_that_read_at_once_get_the_same_tensor(pairs: list[tuple[Batch, Batch]]) -> None:
    for lazy, plain in pairs * 5:
        batch = fresh(lazy)
        (name, *_) = waiting(batch)
        start, found = threading.Barrier(8), list[Any]()

        def read(batch: Batch = batch, name: str = name, start: Any = start, found: list[Any] = found) -> None:
            start.wait()
            found.append(batch[name])

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert len({id(tensor) for tensor in found}) == 1
        assert torch.equal(found[0], plain.tensor(name))


@pytest.mark.parametrize("read_before", [False, True])
def test_the_type_that_is_asked_for(meta: Path, pairs: list[tuple[Batch, Batch]], read_before: bool) -> None:
    normalise = Loader(meta, TOY, **OPTIONS).normalise
    for lazy, plain in pairs:
        batch = fresh(lazy)
        if read_before:
            dict(batch)
        for half in (normalise(batch, dtype=torch.bfloat16), batch.to("cpu", dtype=torch.bfloat16)):
            for name in set(PIXELS) & set(plain):
                assert half.tensor(name).dtype == torch.bfloat16
                assert torch.equal(half.tensor(name), plain.tensor(name).to(torch.bfloat16))
            assert half.tensor("input_ids").dtype == torch.int64
        assert bool(waiting(batch)) is not read_before
        assert_equal(dict(normalise(batch)), dict(plain))
        assert_equal(dict(batch), dict(plain))


def test_who_reads_first_without_gradients_does_not_hinder_training(pairs: list[tuple[Batch, Batch]]) -> None:
    model = toy.model("qwen2_5_vl")
    batch = fresh(pairs[0][0])
    with torch.inference_mode():
        dict(batch)
    model(**batch).loss.backward()
    assert any(weight.grad is not None for name, weight in model.named_parameters() if "visual" in name)


def test_microbatches_are_those_of_model(meta: Path, pairs: list[tuple[Batch, Batch]]) -> None:
    fields = Loader(meta, TOY, **OPTIONS).samples.facts.family.table
    for lazy, plain in pairs:
        pieces = len(plain.rows)
        one, other = (cut_batch(batch, pieces, fields=fields) for batch in (fresh(lazy), plain))
        for found, wanted in zip(one, other, strict=True):
            assert_equal(found.inputs, wanted.inputs)


def test_the_trainer_sees_the_same_losses(meta: Path, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        output_dir=str(tmp_path), max_steps=4, report_to=[], use_cpu=True, logging_steps=1, save_strategy="no",
        disable_tqdm=True, seed=1,
    )  # fmt: skip
    losses = []
    for pixels in ("auto", "model"):
        loader = Loader(meta, TOY, pack_size=512, pixels=pixels)

        class PackTrainer(Trainer):  # type: ignore[misc]  # transformers' types are not followed
            packs = loader

            def get_train_dataloader(self) -> Any:
                return self.packs

        trainer = PackTrainer(model=toy.model("qwen2_5_vl"), args=arguments)
        trainer.train()
        losses.append([entry["loss"] for entry in trainer.state.log_history if "loss" in entry])
    assert losses[0] == losses[1]
    assert len(losses[0]) == 4


def test_a_family_without_bytes_goes_on_as_model(meta: Path) -> None:
    for batch, plain in zip(
        Loader(meta, "toy:internvl", pack_size=1024), Loader(meta, "toy:internvl", pack_size=1024, pixels="model"),
        strict=True,
    ):  # fmt: skip
        assert isinstance(batch.inputs, dict)
        assert_equal(dict(batch), dict(plain))


def test_plans_and_cursors_do_not_know_of_it(meta: Path) -> None:
    loaders = [Loader(meta, TOY, pixels=pixels, **OPTIONS) for pixels in ("auto", "model", "uint8")]
    states = []
    for loader in loaders:
        batches = iter(loader)
        next(batches)
        states.append(loader.state_dict())
    assert states[0] == states[1] == states[2]
    loaders[0].load_state_dict(states[1])
    loaders[1].load_state_dict(states[0])
    for lazy, plain in zip(loaders[0], loaders[1], strict=True):
        assert_equal(dict(lazy), dict(plain))


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@needs_cuda
@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_another_device_scales_there(pairs: list[tuple[Batch, Batch]], dtype: torch.dtype | None) -> None:
    for lazy, plain in pairs:
        batch = fresh(lazy)
        there = batch.to("cuda", non_blocking=True, dtype=dtype)
        assert waiting(batch)  # what was left behind is as it was
        assert not waiting(there)
        for name in set(PIXELS) & set(plain):
            assert there.tensor(name).device.type == "cuda"
            wanted = plain.tensor(name).to(dtype or torch.float32)
            near = torch.finfo(wanted.dtype).eps
            assert torch.allclose(there.tensor(name).cpu().float(), wanted.float(), rtol=near, atol=0)


@needs_cuda
def test_pinned_memory_holds_bytes(pairs: list[tuple[Batch, Batch]], meta: Path) -> None:
    for lazy, plain in pairs:
        pinned = fresh(lazy).pin_memory()
        assert waiting(pinned)
        assert_equal(dict(pinned.to("cpu")), dict(plain))
    for batch in DataLoader(**Loader(meta, TOY, **OPTIONS).parts(), pin_memory=True):
        assert all(pixels._state[0].is_pinned() for pixels in waiting(batch).values())
