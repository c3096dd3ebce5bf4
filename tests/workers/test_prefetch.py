"""Heavy packs begin before their turn, and nobody waits for them; what is handed out does not change."""

import os
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

from lading import Loader, toy
from lading.plan.assign_workers import assign_workers, decoding_costs
from lading.workers.prefetch import LOOK_SECONDS, Prefetcher

WAITING = 2
"""Batches that a `DataLoader` keeps for each of its workers."""


def stalled(seconds: NDArray[np.float64], assigned: list[int], step: float) -> float:
    """How long training waits, all in all: every worker makes its batches in order, at most `WAITING` before they are
    taken, and a step takes one batch.
    """
    workers = max(assigned) + 1
    shares = [[turn for turn, own in enumerate(assigned) if own == worker] for worker in range(workers)]
    done: dict[int, float] = {}
    free, begun, now, waited = [0.0] * workers, [0] * workers, 0.0, 0.0

    def begin(worker: int) -> None:
        if begun[worker] < len(shares[worker]):
            turn = shares[worker][begun[worker]]
            free[worker] = done[turn] = max(free[worker], now) + seconds[turn]
            begun[worker] += 1

    for worker in range(workers):
        for _ in range(WAITING):
            begin(worker)
    for turn, worker in enumerate(assigned):
        waited += max(0.0, done[turn] - now) if turn >= workers else 0.0  # nobody can be early for the first ones
        now = max(now, done[turn])
        begin(worker)
        now += step
    return waited


def round_robin(count: int, workers: int) -> list[int]:
    """Who makes which batch in one `DataLoader` with so many workers."""
    return [turn % workers for turn in range(count)]


@given(
    seed=st.integers(0, 1000),
    workers=st.integers(4, 16),
    rare=st.sampled_from([0.01, 0.02, 0.05]),
    weight=st.sampled_from([15.0, 30.0]),
    busy=st.sampled_from([0.5, 0.7]),
)
def test_rare_heavy_batches_stall_far_less_than_in_plain_order(
    seed: int, workers: int, rare: float, weight: float, busy: float
) -> None:
    dice = np.random.default_rng(seed)
    costs = np.where(dice.random(600) < rare, weight, 1.0) * dice.uniform(0.8, 1.2, 600)
    costs[300] = weight
    step = costs.mean() / workers / busy
    plain = stalled(costs, round_robin(600, workers), step)
    assert plain > 0
    assert stalled(costs, assign_workers(costs, workers), step) < 0.5 * plain
    # Costs that are only roughly known are good enough.
    rough = costs * dice.uniform(0.6, 1.6, 600)
    assert stalled(costs, assign_workers(rough, workers), step) < plain


@given(costs=st.lists(st.floats(0, 1e6), max_size=60), workers=st.integers(1, 9))
def test_every_batch_has_one_worker(costs: list[float], workers: int) -> None:
    assigned = assign_workers(costs, workers)
    assert len(assigned) == len(costs)
    assert all(0 <= worker < workers for worker in assigned)


@given(count=st.integers(1, 60), workers=st.integers(1, 9))
def test_batches_of_one_cost_go_round(count: int, workers: int) -> None:
    assigned = assign_workers([3.0] * count, workers)
    assert all(len(set(assigned[first : first + workers])) == min(workers, count - first) for first in range(count))


class Slow(Dataset[int]):
    """Numbers that take as long as they say."""

    def __init__(self, seconds: list[float]) -> None:
        self.seconds = seconds

    def __getitem__(self, number: int) -> int:
        time.sleep(self.seconds[number])
        return number


def wait_for_all(seconds: list[float], assigned: list[int], step: float) -> tuple[list[int], float]:
    """What real workers hand out, and how long a consumer of one batch a `step` waits for it."""
    dataset, waited, seen = Slow(seconds), 0.0, []

    def open_loader(worker: int, share: list[list[int]]) -> DataLoader[int]:
        return DataLoader(dataset, batch_sampler=share, num_workers=1, collate_fn=lambda numbers: numbers[0])

    asked = time.monotonic()
    for number in Prefetcher[int](open_loader, [[number] for number in range(len(seconds))], assigned):
        waited += time.monotonic() - asked if seen else 0.0  # but for the workers' start
        seen.append(number)
        time.sleep(step)
        asked = time.monotonic()
    return seen, waited


@pytest.mark.slow
def test_real_workers_do_not_let_a_step_wait_for_a_heavy_batch() -> None:
    seconds = [0.01] * 60
    seconds[40] = 1.5
    plain, waited_plainly = wait_for_all(seconds, round_robin(60, 2), step=0.05)
    ahead, waited = wait_for_all(seconds, assign_workers(seconds, 2), step=0.05)
    assert plain == ahead == list(range(60))
    assert waited_plainly > 1.0
    assert waited < 0.5 * waited_plainly


class Deadly(Dataset[int]):
    """Kills its worker the first time that a number is asked for."""

    def __init__(self, folder: Path, number: int) -> None:
        self.mark, self.number = folder / "killed", number

    def __getitem__(self, number: int) -> int:
        if number == self.number and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number


@pytest.mark.slow
def test_a_worker_that_dies_takes_nothing_of_the_others_with_it(tmp_path: Path) -> None:
    opened: list[tuple[int, int]] = []

    def open_loader(worker: int, share: list[list[int]]) -> DataLoader[int]:
        opened.append((worker, share[0][0]))
        return DataLoader(Deadly(tmp_path, 6), batch_sampler=share, num_workers=1, collate_fn=lambda own: own[0])

    batches = [[number] for number in range(12)]
    assert list(Prefetcher[int](open_loader, batches, [0, 1, 2] * 4)) == list(range(12))
    assert opened[:3] == [(0, 0), (1, 1), (2, 2)]
    assert len(opened) == 4
    assert opened[3][0] == 0, "only the dead one's loader is opened again"
    assert opened[3][1] in (3, 6), "from the first batch that had not arrived"


@pytest.mark.slow
def test_a_batch_may_take_longer_than_workers_are_left_alone() -> None:
    asked: list[bool] = []

    def open_loader(worker: int, share: list[list[int]]) -> DataLoader[int]:
        seconds = [0.0, 2.5 * LOOK_SECONDS, 0.0]
        return DataLoader(Slow(seconds), batch_sampler=share, num_workers=1, collate_fn=lambda own: own[0])

    def end_if_late(worker: int, process: BaseProcess) -> bool:
        asked.append(process.is_alive())
        return False

    assert list(Prefetcher[int](open_loader, [[0], [1], [2]], [0, 0, 0], end_if_late)) == [0, 1, 2]
    assert len(asked) >= 2
    assert all(asked)


def test_packs_with_clips_are_known_to_be_heavy(tmp_path: Path) -> None:
    loader = Loader(toy.write_corpus(tmp_path, samples=60), "toy:qwen2_5_vl", pack_size=300)
    costs = decoding_costs(loader.lengths, loader.plan)
    clips = np.array([loader.lengths.frames[loader.plan.pack(number)].sum() > 0 for number in range(len(loader.plan))])
    assert len(costs) == len(loader.plan)
    assert costs[clips].min() > costs[~clips].max()
