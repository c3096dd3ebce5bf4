import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import plain
from lading.errors import ConfigError, Reason
from lading.plan import make_plan, plan_stats
from lading.plan.file import load_plan, save_plan
from lading.plan.fingerprint import plan_fingerprint
from lading.plan.stats import neighbours_met_again, straggler_factor
from lading.records import Dropped, LengthTable, PackPlan, SampleKey


def table(tokens: list[int], patches: list[int] | None = None) -> LengthTable:
    dropped = tuple(
        Dropped(key=SampleKey(index=n, source="s", where="w"), reason=Reason.MISSING_MEDIA, detail="gone")
        for n, count in enumerate(tokens)
        if count == 0
    )
    counts = np.array(tokens, dtype=np.int32)
    return LengthTable.of(
        sources=("s",),
        tokens=counts,
        label_tokens=counts // 2,
        patches=np.zeros_like(counts) if patches is None else np.array(patches, dtype=np.int32),
        dropped=dropped,
    )


def same(one: PackPlan, other: PackPlan) -> bool:
    arrays = ("members", "starts", "tokens", "order", "too_long")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)


@given(st.lists(st.integers(0, 60), max_size=60), st.integers(1, 5), st.integers(0, 3))
def test_every_sample_is_packed_or_dropped(tokens: list[int], world_size: int, epoch: int) -> None:
    lengths = table(tokens)
    plan = make_plan(lengths, pack_size=40, world_size=world_size, epoch=epoch)
    fitting = [n for n, count in enumerate(tokens) if 0 < count <= 40]
    assert sorted(plan.members.tolist()) == fitting
    assert plan.too_long.tolist() == [n for n, count in enumerate(tokens) if count > 40]
    stats = plan_stats(plan, lengths)
    assert stats.samples == stats.packed + stats.dropped
    assert stats.dropped == sum(stats.dropped_by_reason.values())
    assert stats.packs >= stats.lower_bound
    assert set(plan.order.flatten().tolist()) == set(range(len(plan)))
    assert plan.order.size == len(plan) + plan.repeated
    assert plan.repeated < world_size
    assert plan.tokens.sum() == sum(tokens[n] for n in fitting)


def test_the_same_arguments_give_the_same_plan_and_others_another() -> None:
    lengths = table(np.random.default_rng(0).integers(1, 100, 500).tolist())
    first = make_plan(lengths, pack_size=200, seed=1, epoch=2)
    assert same(first, make_plan(lengths, pack_size=200, seed=1, epoch=2))
    assert not same(first, make_plan(lengths, pack_size=200, seed=1, epoch=3))
    assert not same(first, make_plan(lengths, pack_size=200, seed=2, epoch=2))


def test_the_ranks_of_a_step_get_like_packs() -> None:
    random = np.random.default_rng(0)
    tokens = random.lognormal(5, 1, 4000).astype(int).clip(1, 4096)
    lengths = table(tokens.tolist(), (tokens * random.random(len(tokens)) * 4).astype(int).tolist())
    balanced = plan_stats(make_plan(lengths, pack_size=4096, world_size=8), lengths).straggler
    shuffled = make_plan(lengths, pack_size=4096, world_size=1)
    costs = np.array(
        [tokens[shuffled.pack(n)].astype(float).dot(tokens[shuffled.pack(n)]) for n in range(len(shuffled))]
    )
    plain = straggler_factor(random.permutation(costs)[: len(costs) // 8 * 8].reshape(-1, 8))
    assert balanced < 1.05 < plain


def test_a_plan_survives_the_disk(tmp_path: Path) -> None:
    plan = make_plan(table([5, 6, 0, 99, 7]), pack_size=12, world_size=2, seed=4)
    save_plan(plan, tmp_path / "deep" / "my.plan")
    loaded = load_plan(tmp_path / "deep" / "my.plan", check=True)
    assert same(plan, loaded)
    assert (loaded.seed, loaded.algorithm, loaded.uncounted, loaded.samples) == (4, "balanced", 1, 5)
    assert isinstance(loaded.members, np.memmap), "nothing is read before it is used"
    assert plan_fingerprint(loaded) == plan_fingerprint(plan)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["my.plan"]


def test_an_empty_plan_survives_the_disk(tmp_path: Path) -> None:
    save_plan(make_plan(table([]), pack_size=8, world_size=3), tmp_path / "x")
    assert len(load_plan(tmp_path / "x", check=True)) == 0


def test_a_plan_file_is_compact(tmp_path: Path) -> None:
    plan = make_plan(table(np.random.default_rng(0).integers(1, 100, 20_000).tolist()), pack_size=1000, world_size=4)
    save_plan(plan, tmp_path / "x")
    per_sample = (tmp_path / "x").stat().st_size / 20_000
    assert per_sample < 6, "four bytes a sample, and what a pack needs"


def test_a_damaged_plan_file_is_noticed(tmp_path: Path) -> None:
    save_plan(make_plan(table([5, 6, 7]), pack_size=12), tmp_path / "x")
    content = bytearray((tmp_path / "x").read_bytes())
    header = content.index(b"\n", len(b"lading plan 4\n") + 1)
    content[(header // 64 + 1) * 64] ^= 1
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ConfigError, match="damaged"):
        load_plan(tmp_path / "x", check=True)
    (tmp_path / "x").write_bytes(bytes(content[:-200]))
    with pytest.raises(ConfigError, match="no plan"):
        load_plan(tmp_path / "x")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_plan(tmp_path / "nowhere")


def test_every_damaged_byte_of_a_plan_file_is_noticed(tmp_path: Path) -> None:
    plan = make_plan(table([5, 6, 7, 3, 40]), pack_size=12, world_size=2)
    save_plan(plan, tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        (tmp_path / "x").write_bytes(damaged)
        with suppress(ConfigError):
            loaded = load_plan(tmp_path / "x", check=True)
            # What fills up to the next array is nobody's.
            assert same(plan, loaded)
            assert loaded.order.tolist() == plan.order.tolist()
            assert loaded.too_long.tolist() == plan.too_long.tolist()
    for length in range(0, len(whole) - 8, 7):
        (tmp_path / "x").write_bytes(whole[:length])
        with pytest.raises(ConfigError):
            load_plan(tmp_path / "x")


@pytest.mark.parametrize("value", [None, "", "<f8", "O", -1, 10**30, 1.5, True, [], {}, [-1], [10**12]])
def test_a_forged_header_is_refused_by_name(tmp_path: Path, value: object) -> None:
    """Its digest made anew: types and places must be right all the same."""
    save_plan(make_plan(table([5, 6, 7]), pack_size=12), tmp_path / "whole")
    magic, header, rest = (tmp_path / "whole").read_bytes().split(b"\n", 2)
    told = json.loads(header)
    names = [(name,) for name in told if name != "digests"]
    names += [("arrays", name) for name in told["arrays"]]
    names += [("arrays", name, fact) for name in told["arrays"] for fact in ("type", "shape", "offset")]
    for path in names:
        forged = json.loads(header)
        inner = forged
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = value
        digests = forged.pop("digests")
        forged["digests"] = {**digests, "header": plain.digest(forged)}
        (tmp_path / "x").write_bytes(b"\n".join([magic, json.dumps(forged).encode(), rest]))
        if isinstance(value, str) and path[0] in ("algorithm", "placing", "lengths"):
            load_plan(tmp_path / "x")
            continue
        with pytest.raises(ConfigError):
            load_plan(tmp_path / "x")


@pytest.mark.parametrize(
    "change",
    [
        {"members": [9, 0, 1, 2]},
        {"members": [0, 0, 1, 2]},
        {"starts": [1, 2, 4]},
        {"starts": [0, 2, 9]},
        {"starts": [0, 4, 4]},
        {"starts": []},
        {"tokens": [5]},
        {"order": [[9, 0]]},
        {"order": [[1, 1]]},
        {"order": [[0, 1], [0, 1]]},
        {"order": [[0], [1]]},
        {"members": [0, 1, 2], "starts": [0, 2, 3]},
        {"tokens": [5, 13]},
        {"costs": [[1, 1, np.nan], [1, 1, 1]]},
        {"costs": [[1, 1, -1.0], [1, 1, 1]]},
        {"too_long": [3]},
        {"too_long": [9]},
        {"repeated": 1},
        {"world_size": 1},
        {"uncounted": 1},
        {"samples": 5},
        {"samples": 10**15},
    ],
)
def test_packs_that_make_up_no_plan_are_refused_by_name(tmp_path: Path, change: dict[str, object]) -> None:
    """Written whole, their digests right: by something else than a planner."""
    plan = make_plan(table([5, 6, 7, 3]), pack_size=12, world_size=2)
    assert (plan.members.shape, plan.starts.shape, plan.order.shape) == ((4,), (3,), (1, 2))
    save_plan(plan, tmp_path / "x")
    load_plan(tmp_path / "x", check=True)
    arrays = {
        name: np.array(value, dtype=np.float32 if name == "costs" else np.int64)
        for name, value in change.items()
        if isinstance(value, list)
    }
    save_plan(replace(plan, **{**change, **arrays}), tmp_path / "x")
    with pytest.raises(ConfigError, match="not what was written"):
        load_plan(tmp_path / "x", check=True)


@pytest.mark.parametrize("content", [b"hello", b"lading plan 4\n" + b"[" * 60_000 + b"\n", b"lading plan 4\n\xff\n"])
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ConfigError, match="no plan"):
        load_plan(tmp_path / "x")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pack_size": 0}, "pack size 0"),
        ({"pack_size": 8, "world_size": 0}, "world size 0"),
        ({"pack_size": 8, "algorithm": "best_fot"}, "did you mean 'best_fit'"),
        ({"pack_size": 8, "placing": "suffled"}, "did you mean 'shuffled'"),
        ({"pack_size": 8, "seed": -1}, "seed -1"),
    ],
)
def test_what_cannot_be_planned_is_said(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_plan(table([1]), **options)  # type: ignore[arg-type]


def test_no_samples_make_an_empty_plan() -> None:
    stats = plan_stats(make_plan(table([]), pack_size=8, world_size=3), table([]))
    assert (stats.packs, stats.steps, stats.fill) == (0, 0, 0.0)


def test_who_shares_a_pack_does_not_depend_on_the_number_of_ranks() -> None:
    lengths = table(np.random.default_rng(0).integers(1, 100, 500).tolist())
    one, eight = (make_plan(lengths, pack_size=200, world_size=ranks) for ranks in (1, 8))
    assert np.array_equal(one.members, eight.members)
    assert plan_fingerprint(one) == plan_fingerprint(eight)


def test_large_corpora_are_packed_window_by_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lading.plan.make.WINDOW", 1000)
    monkeypatch.setattr("lading.plan.order.SLICE", 64)
    lengths = table(np.random.default_rng(0).integers(1, 100, 4321).tolist())
    plan = make_plan(lengths, pack_size=500, world_size=8)
    assert sorted(plan.members.tolist()) == list(range(4321))
    assert set(plan.order.ravel().tolist()) == set(range(len(plan)))
    assert plan_stats(plan, lengths).fill > 0.98


def test_neighbours_and_steps_are_others_in_every_epoch() -> None:
    random = np.random.default_rng(0)
    lengths = table(
        random.lognormal(5, 1, 20_000).astype(int).clip(1, 4096).tolist(), random.integers(0, 900, 20_000).tolist()
    )
    plans = [make_plan(lengths, pack_size=4096, world_size=8, epoch=epoch) for epoch in (0, 1)]
    tight = [make_plan(lengths, pack_size=4096, epoch=epoch, algorithm="best_fit") for epoch in (0, 1)]
    assert neighbours_met_again(*plans) < neighbours_met_again(*tight) / 2 < 0.5
    assert neighbours_met_again(plans[0], plans[0]) == 1.0
    assert abs(plan_stats(plans[0], lengths).order_correlation) < 0.25
