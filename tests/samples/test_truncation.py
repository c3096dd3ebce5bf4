"""Over-long samples, cut: exact, the longest that fits, counted, and the same wherever they are opened."""

import json
import tempfile
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lading import Loader, families, toy
from lading.encode import Encoder
from lading.errors import ConfigError, SkipSample
from lading.fields import IGNORE_INDEX
from lading.lengths import count_lengths
from lading.loader import Samples, load_processor, read_processor
from lading.records import Conversation, Dropped, Encoded
from lading.samples.samples import fit
from tests.support.shorter import Turn, longest_fitting, samples_of, shorter_lengths

TOY = "toy:qwen2_5_vl"
PICTURES = {"a.png": (60, 60), "b.png": (150, 40), "c.png": (30, 120)}

words = st.lists(st.sampled_from(["red", "a blue", "square,", "where?", "Two"]), min_size=1, max_size=8).map(" ".join)
pictures = st.sampled_from([{"type": "image", "image": name} for name in PICTURES])
question = st.tuples(st.just("user"), st.lists(st.one_of(words, pictures), min_size=1, max_size=3))
answer = st.tuples(st.just("assistant"), st.lists(st.one_of(words, pictures), min_size=1, max_size=4))
talks = st.lists(st.tuples(question, answer), min_size=1, max_size=4).map(lambda pairs: [*chain(*pairs)])


@pytest.mark.parametrize("name", families.names())
@settings(max_examples=15)
@given(talk=talks, unanswered=st.booleans(), which=st.integers(0, 9), less=st.integers(-1, 1))
def test_what_is_left_is_the_longest_shorter_talk_that_fits(
    name: str, talk: list[Turn], unanswered: bool, which: int, less: int
) -> None:
    facts = read_processor(load_processor(f"toy:{name}"))
    with tempfile.TemporaryDirectory() as folder:
        for file, size in PICTURES.items():
            Image.new("RGB", size, "olive").save(Path(folder) / file)
        samples = samples_of(facts, Path(folder), [*talk, ("user", ("And then?",))] if unanswered else talk)
        counted = count_lengths(samples)
        if counted.dropped:  # an answer of pictures alone has nothing to learn
            return
        lengths = shorter_lengths(samples, samples.conversation(0)) or [int(counted.tokens[0])]
        # At the facts of a cut, where one token decides; never so wide that nothing must be cut.
        limit = min(lengths[which % len(lengths)] - less, int(counted.tokens[0]) - 1)
        expected = longest_fitting(samples, samples.conversation(0), limit)
        cut, table = fit(samples, counted, limit=limit, too_long="truncate")
        again, _ = fit(samples, counted, limit=limit, too_long="truncate")
        assert again.cuts == cut.cuts
        if expected is None:
            assert [entry.reason for entry in table.dropped] == ["too_long"]
            assert table.tokens[0] == 0
            return
        found = cut.encode(0, counted=int(table.tokens[0]))
        assert isinstance(found, Encoded)
        assert found.document == expected.document
        assert found.document.tokens <= limit
        assert set(found.tensors) == set(expected.tensors)
        assert all(torch.equal(tensor, expected.tensors[name]) for name, tensor in found.tensors.items())
        assert int((found.tensors["labels"] != IGNORE_INDEX).sum()) == table.label_tokens[0] > 0
        assert (table.truncated[0].tokens, table.truncated[0].kept) == (counted.tokens[0], found.document.tokens)


@pytest.fixture
def samples(tmp_path: Path) -> Samples:
    """A short talk, one long answer, a talk of many answers, and one whose only fault is a long last question."""
    long = " ".join(["word"] * 200)
    turns = [(role, (f"{role} says {place}.",)) for place in range(30) for role in ("user", "assistant")]
    return samples_of(
        read_processor(load_processor(TOY)),
        tmp_path,
        [("user", ("Hi.",)), ("assistant", ("Hello.",))],
        [("user", ("Tell me.",)), ("assistant", (long,))],
        turns,
        [("user", ("Hi.",)), ("assistant", ("Hello.",)), ("user", (long,))],
    )


def test_one_long_answer_is_dropped_by_name(samples: Samples) -> None:
    _, table = fit(samples, count_lengths(samples), limit=100, too_long="truncate")
    (entry,) = table.dropped
    assert entry.key.index == 1
    assert entry.key.where.endswith("talks.jsonl:2")
    assert entry.reason == "too_long"
    assert "no answer that ends within the first 100" in entry.detail


def test_text_behind_the_last_answer_is_cut_first(samples: Samples) -> None:
    counted = count_lengths(samples)
    cut, table = fit(samples, counted, limit=100, too_long="truncate")
    assert table.tokens[3] == counted.tokens[0], "what is left is the short talk"
    assert table.tokens[0] == counted.tokens[0]
    assert [entry.key.index for entry in table.truncated] == [2, 3]
    assert set(cut.cuts) == {2, 3}


def test_what_fits_is_not_looked_at_again(samples: Samples) -> None:
    counted = count_lengths(samples)
    for options in ({"limit": 100, "too_long": "drop"}, {"limit": 10_000, "too_long": "truncate"}):
        same, table = fit(samples, counted, **options)  # type: ignore[arg-type]
        assert same is samples
        assert table is counted
    _, table = fit(samples, counted, limit=100, too_long="truncate")
    assert counted.tokens[2] > 100, "the table that was given is left as it was"
    assert np.all(table.tokens <= 100)


def test_few_cuts_are_tried(samples: Samples) -> None:
    """A talk of thirty answers is rendered a few times, not thirty."""
    rendered: list[str] = []
    tokeniser = samples.facts.tokeniser

    def render(talk: Conversation) -> str:
        rendered.append(talk.key.where)
        return tokeniser.render(talk)

    counted = count_lengths(samples)
    watched = replace(
        samples, encoder=Encoder(facts=replace(samples.facts, tokeniser=replace(tokeniser, render=render)))
    )
    fit(watched, counted, limit=int(counted.tokens[2]) // 2, too_long="truncate")
    times = sum(where.endswith(":3") for where in rendered)
    assert 2 <= times < 10


def test_strict_raises_only_what_cannot_be_cut(tmp_path: Path, samples: Samples) -> None:
    file = tmp_path / "talks.jsonl"
    with pytest.raises(SkipSample, match=r"no answer that ends .*talks\.jsonl:2"):
        Loader(file, TOY, pack_size=100, too_long="truncate", strict=True)
    with pytest.raises(SkipSample, match=r"^found \d+ tokens; wanted at most the pack size, 100 \["):
        Loader(file, TOY, pack_size=100, strict=True)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:1] + lines[2:]))
    loader = Loader(file, TOY, pack_size=100, too_long="truncate", strict=True)
    list(loader)
    assert loader.ledger.total()["truncated"] == 2


def test_the_books_name_what_was_cut(toy_meta: Path, tmp_path: Path) -> None:
    dropping = Loader(toy_meta, TOY, pack_size=110)
    loader = Loader(toy_meta, TOY, pack_size=110, too_long="truncate")
    stats = loader.stats
    batches = list(loader)
    loader.ledger.check()
    total = loader.ledger.total()
    assert 0 < total["truncated"] == stats.truncated == len(loader.lengths.truncated)
    assert total["truncated"] + total["dropped"] == dropping.ledger.total()["dropped"]
    assert total["trained"] == sum(len(row) for batch in batches for row in batch.rows) == stats.packed
    lost = int(sum(dropping.lengths.tokens - loader.lengths.tokens))
    whole = sum(int(dropping.lengths.tokens[entry.key.index]) for entry in loader.lengths.dropped)
    assert total["tokens_cut"] == stats.tokens_cut == lost - whole
    assert sum(totals["truncated"] for totals in loader.ledger.totals().values()) == total["truncated"]
    assert f"; {total['truncated']} truncated by {total['tokens_cut']} tokens" in str(loader.ledger)
    loader.ledger.save(tmp_path / "ledger.json")
    saved = json.loads((tmp_path / "ledger.json").read_text())
    assert saved["total"]["truncated"] == len(saved["truncated"])
    assert sum(entry["tokens"] - entry["kept"] for entry in saved["truncated"]) == total["tokens_cut"]
    assert {entry["fate"] for entry in saved["truncated"]} == {"trained"}
    assert all(entry["where"].rpartition(":")[2].isdigit() for entry in saved["truncated"])
    assert max(batch.tensor("input_ids").shape[1] for batch in batches) <= 110


@pytest.mark.slow
def test_workers_and_a_resumed_run_cut_alike(toy_meta: Path) -> None:
    options = {"pack_size": 110, "too_long": "truncate"}
    whole = Loader(toy_meta, TOY, **options)
    batches = iter(whole)
    first = [next(batches) for _ in range(3)]
    state = whole.state_dict()
    rest = [batch.tensor("input_ids") for batch in batches]
    resumed = Loader(toy_meta, TOY, num_workers=2, **options)
    resumed.load_state_dict(state)
    for one, other in zip(rest, resumed, strict=True):
        assert torch.equal(one, other.tensor("input_ids"))
    assert len(first) == 3
    assert resumed.ledger.truncations() == whole.ledger.truncations()


def test_a_cut_sample_that_breaks_later_is_dropped_and_no_longer_counted_as_cut(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path, samples=60)
    loader = Loader(meta, TOY, pack_size=110, too_long="truncate")
    entry = next(entry for entry in loader.lengths.truncated if entry.key.source == "albums")
    before = loader.ledger.total()["truncated"]
    media = loader.samples.conversation(entry.key.index).media
    broken = Path(str(media[0].reference))
    broken.write_bytes(broken.read_bytes()[:-40])
    list(loader)
    loader.ledger.check()
    assert loader.ledger.total()["truncated"] == before - 1
    assert entry.key.index in [left_out["index"] for left_out in loader.ledger.entries()]


def test_a_medium_behind_the_cut_is_not_opened(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path, samples=60)
    loader = Loader(meta, TOY, pack_size=110, too_long="truncate")
    entry = next(entry for entry in loader.lengths.truncated if entry.key.source == "albums")
    whole = Samples(corpus=loader.samples.corpus, encoder=Encoder(facts=loader.samples.facts)).conversation(
        entry.key.index
    )
    kept = loader.samples.conversation(entry.key.index)
    assert len(kept.media) < len(whole.media)
    Path(str(whole.media[-1].reference)).unlink()
    assert not isinstance(loader.samples.encode(entry.key.index, counted=entry.kept), Dropped)


def test_the_option_is_one_of_two(toy_meta: Path) -> None:
    with pytest.raises(ConfigError, match="too_long 'clip' \\(wanted one of drop, truncate\\)"):
        Loader(toy_meta, TOY, pack_size=8, too_long="clip")
