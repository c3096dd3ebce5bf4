import json
import multiprocessing
import os
import pickle
import signal
import time
from functools import partial
from itertools import chain
from pathlib import Path

import pytest
import torch

from lading import Loader, toy
from lading.errors import ConfigError, CorpusError, SkipSample, TooManyFailures
from lading.plan.file import save_plan
from lading.records import Batch
from lading.sources.files import file_fingerprint

TOY = "toy:qwen2_5_vl"


def documents(batch: Batch) -> list[int]:
    return [document.key.index for row in batch.rows for document in row]


def same(one: Batch, other: Batch) -> bool:
    assert set(one.keys()) == set(other.keys())
    return all(
        torch.equal(value, other.tensor(name)) if isinstance(value, torch.Tensor) else value is other[name]
        for name, value in one.inputs.items()
    )


def test_an_epoch_trains_on_everything_once(toy_meta: Path) -> None:
    loader = Loader(toy_meta, TOY, pack_size=512)
    seen = [index for batch in loader for index in documents(batch)]
    assert sorted(seen) == list(range(60))
    loader.ledger.check()
    assert loader.ledger.total()["trained"] == 60
    assert loader.ledger.repeats == 0


def test_every_epoch_has_its_own_order(toy_meta: Path) -> None:
    loader = Loader(toy_meta, TOY, pack_size=512)
    first = [documents(batch) for batch in loader]
    other = [documents(batch) for batch in loader]
    assert loader.config.epoch == 1, "every full pass is an epoch of its own"
    loader.set_epoch(0)
    again = [documents(batch) for batch in loader]
    assert first == again
    assert first != other
    assert sorted(chain(*other)) == sorted(chain(*first))


@pytest.mark.parametrize("batch_size", [1, 2, 3])
@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_ranks_stay_in_step_and_miss_nothing(toy_meta: Path, world_size: int, batch_size: int) -> None:
    loaders = [
        Loader(toy_meta, TOY, pack_size=300, world_size=world_size, rank=rank, batch_size=batch_size)
        for rank in range(world_size)
    ]
    epochs = [list(loader) for loader in loaders]
    assert len({len(epoch) for epoch in epochs}) == 1
    assert all(len(epoch) == len(loader) for epoch, loader in zip(epochs, loaders, strict=True))
    books = loaders[0].ledger
    for loader in loaders[1:]:
        books.merge(loader.ledger)
    books.check()
    assert books.total()["trained"] == 60


@pytest.mark.slow
def test_workers_change_nothing(toy_meta: Path) -> None:
    alone = list(Loader(toy_meta, TOY, pack_size=512))
    helped = list(Loader(toy_meta, TOY, pack_size=512, num_workers=2))
    assert len(alone) == len(helped)
    assert all(same(one, other) for one, other in zip(alone, helped, strict=True))


def test_a_loader_carries_on_at_every_step(toy_meta: Path) -> None:
    whole = Loader(toy_meta, TOY, pack_size=512)
    batches, states = [], [whole.state_dict()]
    for batch in whole:
        batches.append(batch)
        states.append(whole.state_dict())
    resumed = Loader(toy_meta, TOY, pack_size=512)
    for step, state in enumerate(states[:-1]):
        resumed.load_state_dict(state)
        assert same(next(iter(resumed)), batches[step])
    resumed.load_state_dict(json.loads(json.dumps(states[2])))
    resumed.set_epoch(states[2]["epoch"])  # the habit of DistributedSampler; it must not lose the cursor
    rest = list(resumed)
    assert len(rest) == len(batches) - 2
    assert all(same(one, other) for one, other in zip(rest, batches[2:], strict=True))
    resumed.ledger.check()
    resumed.load_state_dict(states[-1])
    assert list(resumed) == [], "an epoch that is over has no batches left"
    assert len(list(resumed)) == len(resumed), "and the next pass is the next epoch"
    assert resumed.config.epoch == 1


@pytest.mark.parametrize(("before", "after"), [(2, 1), (2, 4), (1, 3)])
def test_a_run_may_carry_on_with_another_batch_size(toy_meta: Path, before: int, after: int) -> None:
    first = Loader(toy_meta, TOY, pack_size=256, batch_size=before)
    batches = iter(first)
    seen = [index for _ in range(3) for index in documents(next(batches))]
    second = Loader(toy_meta, TOY, pack_size=256, batch_size=after)
    second.load_state_dict(first.state_dict())
    seen += [index for batch in second for index in documents(batch)]
    assert sorted(seen) == list(range(60))
    second.ledger.check()


def test_after_a_look_at_a_batch_set_epoch_begins_anew(toy_meta: Path) -> None:
    loader = Loader(toy_meta, TOY, pack_size=512)
    next(iter(loader))
    loader.set_epoch(0)
    assert sum(len(documents(batch)) for batch in loader) == 60
    loader.ledger.check()


def test_the_global_generator_is_left_alone(toy_meta: Path) -> None:
    loader = Loader(toy_meta, TOY, pack_size=512)
    before = torch.random.get_rng_state()
    list(loader)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_cursor_into_another_plan_is_refused_and_the_difference_named(toy_meta: Path) -> None:
    state = Loader(toy_meta, TOY, pack_size=512).state_dict()
    other = Loader(toy_meta, TOY, pack_size=256)
    next(iter(other))
    here = other.state_dict()
    with pytest.raises(ConfigError, match="pack_size 512 where it is 256 here"):
        other.load_state_dict(state)
    assert other.state_dict() == here, "nothing was loaded"
    with pytest.raises(ConfigError, match="seed 0 where it is 7 here"):
        Loader(toy_meta, TOY, pack_size=512, seed=7).load_state_dict(state)
    cut = Loader(toy_meta, TOY, pack_size=64, too_long="truncate")
    with pytest.raises(ConfigError, match=r"other lengths of samples: .* or another too_long"):
        Loader(toy_meta, TOY, pack_size=64).load_state_dict(cut.state_dict())
    unsealed = {name: value for name, value in here.items() if name != "digest"} | {"version": 2}
    for steps, named in ((-1, "-1 as segment 0: steps"), (10_000, "cursor to step 10000")):
        with pytest.raises(ConfigError, match=named):
            other.load_state_dict({**unsealed, "stretches": [{"world_size": 1, "steps": steps}]})
    with pytest.raises(ConfigError, match="the version of a state"):
        Loader(toy_meta, TOY, pack_size=512).load_state_dict({"step": 3})


def test_a_changed_corpus_is_refused(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path, samples=30)
    state = Loader(meta, TOY, pack_size=512).state_dict()
    talks = tmp_path / "talks.jsonl"
    lines = talks.read_text().splitlines()
    talks.write_text("\n".join([*lines, lines[0]]) + "\n")
    with pytest.raises(ConfigError, match="samples 30 where it is 31 here; other lengths of samples"):
        Loader(meta, TOY, pack_size=512).load_state_dict(state)


def test_a_copy_of_the_data_is_no_other_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a file so large that it is told by blocks: a copy has another time of change."""
    monkeypatch.setattr("lading.sources.files.file_fingerprint", partial(file_fingerprint, whole=100))
    meta = toy.write_corpus(tmp_path, samples=30)
    state = Loader(meta, TOY, pack_size=512).state_dict()
    os.utime(tmp_path / "talks.jsonl", ns=(1, 1))
    Loader(meta, TOY, pack_size=512).load_state_dict(state)


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_a_plan_from_a_file_is_the_plan(toy_meta: Path, tmp_path: Path, world_size: int) -> None:
    """Whoever planned it, and for however many ranks."""
    planned = Loader(toy_meta, TOY, pack_size=512, world_size=4)
    save_plan(planned.plan, tmp_path / "x.plan")
    made = Loader(toy_meta, TOY, pack_size=512, world_size=world_size)
    read = Loader(toy_meta, TOY, pack_size=512, world_size=world_size, plan=tmp_path / "x.plan")
    assert [documents(batch) for batch in read] == [documents(batch) for batch in made]
    read.load_state_dict(made.state_dict())
    with pytest.raises(ConfigError, match="pack_size 512 where it is 256 here"):
        Loader(toy_meta, TOY, pack_size=256, plan=tmp_path / "x.plan")


@pytest.mark.parametrize("last_step", ["repeat", "drop"])
def test_what_is_left_for_the_last_step_is_repeated_or_dropped_by_name(toy_meta: Path, last_step: str) -> None:
    options = {"pack_size": 300, "world_size": 4, "last_step": last_step}
    loaders = [Loader(toy_meta, TOY, rank=rank, **options) for rank in range(4)]
    assert loaders[0].plan.repeated
    seen = [index for loader in loaders for batch in loader for index in documents(batch)]
    books = loaders[0].ledger
    for loader in loaders[1:]:
        books.merge(loader.ledger)
    books.check()
    total = books.total()
    if last_step == "repeat":
        assert set(seen) == set(range(60))
        assert len(seen) - 60 == books.repeats == sum(int(str(entry["again"])) for entry in books.repeated()) > 0
        assert all("where" in entry for entry in books.repeated())
    else:
        assert len(seen) == len(set(seen)) == total["trained"] == 60 - total["dropped"]
        assert total["reasons"] == {"last_step": total["dropped"]}
        assert "wanted 4, one for each rank" in str(books.entries()[0]["detail"])


@pytest.mark.slow
def test_a_killed_worker_is_replaced(toy_meta: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole = [documents(batch) for batch in Loader(toy_meta, TOY, pack_size=300)]
    loader = Loader(toy_meta, TOY, pack_size=300, num_workers=2)
    seen = []
    for batch in loader:
        seen.append(documents(batch))
        if len(seen) in (2, 5):
            os.kill(multiprocessing.active_children()[0].pid or 0, signal.SIGKILL)
            time.sleep(0.2)  # torch would raise here, in the middle of a training step
    assert seen == whole
    assert "A worker died" in caplog.text
    loader.ledger.check()


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0.0, 1.0])
@pytest.mark.parametrize(("samples", "pack_size"), [(60, 128), (6000, 32768)])
def test_a_worker_killed_while_it_hands_a_batch_over_is_replaced(
    tmp_path: Path, samples: int, pack_size: int, moment: float
) -> None:
    """At once, its memory is asked for and nobody answers; later, half of a batch is left that filled the pipe."""
    lines = [
        {"messages": [{"role": "user", "content": f"question {n}"}, {"role": "assistant", "content": "yes"}]}
        for n in range(samples)
    ]
    (tmp_path / "talks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    loader = Loader(tmp_path / "talks.jsonl", TOY, pack_size=pack_size, num_workers=1)
    batches = iter(loader)
    first = next(batches)
    assert (len(pickle.dumps(first.rows)) > 1 << 16) == (pack_size > 10_000), "what fits into a pipe, and what does not"
    time.sleep(2)  # the worker now waits with its next batches
    os.kill(multiprocessing.active_children()[0].pid or 0, signal.SIGKILL)
    time.sleep(moment)
    seen = [*documents(first), *(index for batch in batches for index in documents(batch))]
    assert sorted(seen) == list(range(samples))
    loader.ledger.check()


def test_what_breaks_after_counting_is_dropped_by_name_or_stops_the_run(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path, samples=30)
    loader = Loader(meta, TOY, pack_size=512)
    broken = tmp_path / "media" / "shape-3.png"
    broken.write_bytes(broken.read_bytes()[:-40])
    batches = list(loader)
    loader.ledger.check()
    assert loader.ledger.total()["reasons"] == {"corrupt_media": 1}
    assert loader.ledger.entries()[0]["source"] == "shapes"
    assert sum(len(documents(batch)) for batch in batches) == 29
    with pytest.raises(TooManyFailures, match=r"at most 0 \(max_failures\)"):
        list(Loader(meta, TOY, pack_size=512, max_failures=0))
    with pytest.raises(SkipSample, match=r"shape-3\.png"):
        list(Loader(meta, TOY, pack_size=512, strict=True))


def test_a_pack_that_fails_whole_is_replaced_by_a_named_one(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path, samples=30)
    loader = Loader(meta, TOY, pack_size=64)  # small packs: most hold one document
    lonely = next(n for n in range(len(loader.plan)) if loader.plan.pack(n).tolist() == [4])
    broken = tmp_path / "media" / "shape-4.png"
    broken.write_bytes(broken.read_bytes()[:-40])
    steps = len(list(loader))
    assert steps == len(loader), "the ranks must stay in step"
    entry = next(entry for entry in loader.ledger.entries() if entry["index"] == 4)
    assert entry["fate"] == "replaced"
    assert entry["by"]
    assert loader.plan.pack(lonely).tolist() == [4]
    loader.ledger.check()
    again = Loader(meta, TOY, pack_size=64)
    list(again)
    assert again.ledger.entries() == loader.ledger.entries(), "replacements are a function of the seed"


def test_over_long_samples_are_named(toy_meta: Path) -> None:
    loader = Loader(toy_meta, TOY, pack_size=80)
    total = loader.ledger.total()
    assert total["reasons"] == {"too_long": total["dropped"]}
    assert total["dropped"] > 0
    assert "wanted at most the pack size, 80" in str(loader.ledger.entries()[0]["detail"])
    list(loader)
    loader.ledger.check()
    with pytest.raises(SkipSample, match="pack size, 80"):
        Loader(toy_meta, TOY, pack_size=80, strict=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pack_sise": 3}, "did you mean 'pack_size'"),
        ({"pack_size": 8, "media_root": "."}, "did you mean 'media_roots'"),
        ({"pack_size": 8, "batchsize": 2}, "did you mean 'batch_size'"),
        ({"pack_size": 8, "max_steps": 9}, r"you may be looking for your trainer's own option"),
        ({"pack_size": 8, "packing": True}, r"you may be looking for packing, which is always on"),
        ({"pack_size": 8, "max_pixels": 9}, r"you may be looking for an option of the processor"),
        ({"pack_size": 8, "drop_last": True}, r'you may be looking for `last_step="drop"`'),
        ({"pack_size": 8, "epochs": 3}, r"you may be looking for `loader\.steps\(epochs="),
        ({"pack_size": 8, "patch_size": 3}, r"an option of the processor"),
        ({}, "no pack_size"),
        ({"pack_size": 0, "batch_size": 0, "attention": "x"}, "pack_size 0 .*batch_size 0 .*attention 'x'"),
        ({"pack_size": "512"}, "pack_size '512'"),
        ({"pack_size": 8, "seed": -1}, "seed -1"),
        ({"pack_size": 8, "strict": 1}, "strict 1"),
        ({"pack_size": 8, "num_workers": -1}, "num_workers -1"),
        ({"pack_size": 8, "rank": 2, "world_size": 2}, "rank 2"),
        ({"pack_size": 8, "attention": "flash"}, "attention 'flash'"),
        ({"pack_size": 8, "algorithm": "magic"}, "algorithm 'magic'"),
        ({"pack_size": 8, "family": "qwen9"}, "family 'qwen9'"),
    ],
)
def test_options_that_cannot_be(toy_meta: Path, options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Loader(toy_meta, TOY, **options)


def test_a_processor_of_no_family_is_named(toy_meta: Path) -> None:
    class StrangeProcessor:
        pass

    with pytest.raises(ConfigError, match="StrangeProcessor without a tokenizer"):
        Loader(toy_meta, StrangeProcessor(), pack_size=8)


@pytest.mark.parametrize("placeholder", [False, True])
def test_fixed_length_rows(toy_meta: Path, placeholder: bool) -> None:
    loader = Loader(toy_meta, TOY, pack_size=150, fixed_length=True, placeholder_media=placeholder)
    assert {batch.tensor("input_ids").shape[1] for batch in loader} == {150}


@pytest.mark.slow
def test_an_error_of_a_worker_is_ours(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path, samples=30)
    loader = Loader(meta, TOY, pack_size=512, num_workers=2, strict=True)
    broken = tmp_path / "media" / "shape-3.png"
    broken.write_bytes(broken.read_bytes()[:-40])
    with pytest.raises(SkipSample, match=r"shape-3\.png"):
        list(loader)


def test_nothing_to_train_on_is_said(toy_meta: Path, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"nothing to train on among 60 samples \(too_long 60\)"):
        Loader(toy_meta, TOY, pack_size=2)
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(CorpusError, match="among 0 samples"):
        Loader(tmp_path / "none.jsonl", TOY, pack_size=2)


def test_ranks_without_a_process_group_are_refused(toy_meta: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(ConfigError, match="WORLD_SIZE=4 and no process group"):
        Loader(toy_meta, TOY, pack_size=512)
    assert Loader(toy_meta, TOY, pack_size=512, rank=1, world_size=4).config.rank == 1


def test_where_layers_differ_each_kind_has_its_mask(toy_meta: Path) -> None:
    with pytest.raises(ConfigError, match="masks of more than one kind"):
        Loader(toy_meta, "toy:gemma3", pack_size=512, attention="mask")
    config = toy.model("gemma3").config
    loader = Loader(toy_meta, "toy:gemma3", pack_size=512, attention="mask", model_config=config)
    masks = next(iter(loader))["attention_mask"]
    assert isinstance(masks, dict)
    assert set(masks) == {"full_attention", "sliding_attention"}
