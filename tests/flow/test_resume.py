"""A run may stop anywhere and carry on with any number of ranks and workers: nothing is lost, nothing comes twice."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from lading import Loader
from lading.records import Batch

RANKS = (1, 2, 3, 4, 8)
STEPS = 200
EVERY, FIRST = (int(part) for part in os.environ.get("LADING_EVERY_STEP", "100:0").split(":"))
"""Every how many steps, and from which on, the rest of the epoch is really gone through. 1:0 is all of them, for an
hour or so; 4:0, 4:1, 4:2 and 4:3 are the same in four shares."""

LOADERS: dict[tuple[Path, int, int, int], Loader] = {}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short talks: two hundred steps of two ranks."""
    path = tmp_path_factory.mktemp("resume") / "talks.jsonl"
    with path.open("w") as file:
        for number in range(1000):
            said = [
                {"role": "user", "content": "how far " + "up " * (number % 7)},
                {"role": "assistant", "content": f"sample {number} " + "and on " * (number % 5)},
            ]
            file.write(json.dumps({"messages": said}) + "\n")
    return path


def opened(corpus: Path, world_size: int, rank: int, workers: int = 0) -> Loader:
    """Loaders are used again and again: what they know must come from the state alone."""
    name = (corpus, world_size, rank, workers)
    if name not in LOADERS:
        options = {"pack_size": 96, "world_size": world_size, "rank": rank, "num_workers": workers}
        LOADERS[name] = Loader(corpus, "toy:qwen2_5_vl", **options)
    return LOADERS[name]


def documents(batch: Batch) -> list[int]:
    return [document.key.index for row in batch.rows for document in row]


def planned(loader: Loader) -> list[list[int]]:
    """The documents of each step that is left, over all ranks, repeats of the last step not among them."""
    order, step = loader._epoch.order, loader._epoch.step
    repeated = loader._epoch._schedule.repeated
    steps = [row.tolist() for row in order[step:]]
    if steps and repeated:
        steps[-1] = steps[-1][: len(steps[-1]) - repeated]
    return [[index for pack in packs for index in loader.plan.pack(pack).tolist()] for packs in steps]


Whole = tuple[list[list[Batch]], list[dict[str, Any]], int]


@pytest.fixture(scope="module")
def whole(corpus: Path) -> Whole:
    """An epoch of two ranks that is never stopped: their batches, and the first one's state after every step."""
    loaders = [opened(corpus, 2, rank) for rank in range(2)]
    states = [loaders[0].state_dict()]
    batches: list[list[Batch]] = [[], []]
    for step in zip(*loaders, strict=True):
        for rank, batch in enumerate(step):
            batches[rank].append(batch)
        states.append(json.loads(json.dumps(loaders[0].state_dict())))
    assert len(states) > STEPS
    return batches, states, loaders[0].plan.samples


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("ranks", RANKS)
def test_any_number_of_ranks_carries_on_from_every_step(corpus: Path, whole: Whole, ranks: int, workers: int) -> None:
    """What is left is right at every step; and where it is gone through, that is what is trained on."""
    batches, states, samples = whole
    done: list[int] = []
    for step, state in enumerate(states):
        loaders = [opened(corpus, ranks, rank, workers) for rank in range(ranks if step % EVERY == FIRST else 1)]
        for loader in loaders:
            loader.load_state_dict(state)
        left = planned(loaders[0])
        assert Counter(done) + Counter(index for own in left for index in own) == Counter(range(samples))
        if step % EVERY == FIRST:
            trained = [[documents(batch) for batch in loader] for loader in loaders]
            assert len({len(own) for own in trained}) == 1, "ranks stay in step"
            for own, now in zip(left, zip(*trained, strict=True), strict=True):
                seen = Counter(index for rank in now for index in rank)
                assert not Counter(own) - seen
                assert own is left[-1] or seen == Counter(own), "repeats are in the last step alone"
            books = loaders[0].ledger
            for loader in loaders[1:]:
                books.merge(loader.ledger)
            books.check()
            assert books.total()["trained"] == samples
        if step < len(batches[0]):
            done += [index for rank in range(2) for index in documents(batches[rank][step])]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_with_as_many_ranks_every_later_batch_is_the_same_to_the_bit(corpus: Path, whole: Whole, workers: int) -> None:
    batches, states, _ = whole
    for step in range(FIRST, len(states) - 1, EVERY):
        for rank in range(2):
            loader = opened(corpus, 2, rank, workers)
            loader.load_state_dict(states[step])
            rest = list(loader)
            assert len(rest) == len(batches[rank]) - step
            for one, other in zip(rest, batches[rank][step:], strict=True):
                assert one.rows == other.rows
                assert one.keys() == other.keys()
                for name, value in one.items():
                    assert not isinstance(value, torch.Tensor) or torch.equal(value, other.tensor(name))


def test_ranks_may_change_again_and_again(corpus: Path) -> None:
    LOADERS.clear()  # a loader that was told to carry on elsewhere still would
    state: dict[str, Any] | None = None
    seen: Counter[int] = Counter()
    samples = opened(corpus, 1, 0).plan.samples
    for ranks, steps in ((4, 13), (1, 40), (8, 9), (8, 3), (3, 20), (2, 10_000)):
        loaders = [opened(corpus, ranks, rank) for rank in range(ranks)]
        for loader in loaders:
            if state is None:
                loader.set_epoch(0)
            else:
                loader.load_state_dict(state)
        for _, batches in zip(range(steps), zip(*loaders, strict=True), strict=False):
            seen.update(index for batch in batches for index in documents(batch))
        state = json.loads(json.dumps(loaders[-1].state_dict()))
    assert set(seen) == set(range(samples))
    assert sum(seen.values()) - samples <= 20, "one pack at most is repeated, in the last step of two ranks"
    books = loaders[0].ledger
    books.merge(loaders[1].ledger)
    books.check()
    assert books.total()["trained"] == samples


RUN = """
import json, os, sys
from pathlib import Path
from lading import Loader
corpus, folder, ranks, workers = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
loaders = [Loader(corpus, "toy:qwen2_5_vl", pack_size=96, world_size=ranks, rank=rank, num_workers=workers)
           for rank in range(ranks)]
saved = folder / "checkpoint.json"
seen = []
if saved.exists():
    checkpoint = json.loads(saved.read_text())
    seen = checkpoint["seen"]
    for loader in loaders:
        loader.load_state_dict(checkpoint["state"])
for step in zip(*loaders, strict=True):
    seen += [document.key.index for batch in step for row in batch.rows for document in row]
    (folder / "new.json").write_text(json.dumps({"seen": seen, "state": loaders[0].state_dict()}))
    os.replace(folder / "new.json", saved)
    print(len(seen), flush=True)
"""


@pytest.mark.slow
def test_a_killed_process_carries_on_from_its_last_checkpoint(corpus: Path, tmp_path: Path) -> None:
    """`kill -9` while it trains with two ranks and workers; others carry on with three, are killed, and one ends it."""
    for ranks, workers, killed_after in ((2, 1, 30), (3, 0, 25), (1, 2, None)):
        command = [sys.executable, "-c", RUN, str(corpus), str(tmp_path), str(ranks), str(workers)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for number, _ in enumerate(process.stdout):
                if number == killed_after:
                    process.send_signal(signal.SIGKILL)
                    break
            process.wait(120)
        assert process.returncode == (0 if killed_after is None else -signal.SIGKILL)
    seen = Counter(json.loads((tmp_path / "checkpoint.json").read_text())["seen"])
    assert seen == Counter(range(1000)), "one rank is left at the end: no step is short, nothing is repeated"
