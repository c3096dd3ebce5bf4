"""Samples that fail are replaced by rule, by name, and within bounds."""

import math
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torch.utils.data import DataLoader

from lading import toy
from lading.errors import ConfigError, ExactnessError, SkipSample, TooManyFailures
from lading.ledger import Ledger
from lading.vlm.collate_fns import make_robust_collate
from lading.vlm.datasets import PreTokenizedDatasetWrapper, RobustDatasetWrapper, make_meta_dataset
from lading.vlm.replacement import _remove, replacement
from tests.vlm.rows import numbered, write_meta, write_rows


class Numbers:
    """Items 0 to 9, some of which fail."""

    def __init__(self, *bad: int, size: int = 10) -> None:
        self.bad, self.size = bad, size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> int:
        if index in self.bad:
            raise OSError(f"no number {index}")
        return index


def ledger(size: int = 10) -> Ledger:
    return Ledger(sources=("all",), source=np.zeros(size, dtype=np.int32))


@given(st.integers(2, 40), st.integers(0, 5), st.integers(0, 5), st.data())
def test_stand_ins_never_repeat_before_all_others_had_their_turn(
    size: int, seed: int, epoch: int, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, size - 1))
    drawn = [replacement(index, attempt, size=size, seed=seed, epoch=epoch) for attempt in range(size)]
    assert sorted(drawn) == list(range(size))
    assert drawn[0] == index
    assert replacement(index, size, size=size, seed=seed, epoch=epoch) == drawn[1], "then they begin again"


@pytest.mark.parametrize("size", [999, 1000, 1001])
def test_stand_ins_are_not_all_of_one_kind(size: int) -> None:
    kinds = [
        [replacement(index, attempt, size=size, seed=0, epoch=0) % 2 for attempt in range(1, 21)]
        for index in range(size)
    ]
    assert all(0 < sum(own) < len(own) for own in kinds), "data often alternate, and one kind of them may be bad"


def test_seed_epoch_index_and_attempt_decide_and_nothing_else() -> None:
    def drawn(**more: int) -> list[int]:
        return [replacement(index, 1, size=1000, **{"seed": 0, "epoch": 0, **more}) for index in range(50)]

    torch.manual_seed(1)
    np.random.seed(1)
    first = drawn()
    torch.manual_seed(2)
    np.random.seed(2)
    assert first == drawn()
    assert first != drawn(seed=1)
    assert first != drawn(epoch=1)
    assert len(set(first)) > 40


def test_a_replacement_is_the_same_in_every_run_and_is_written_down() -> None:
    book = ledger()
    wrapped = RobustDatasetWrapper(Numbers(3, 4), ledger=book)
    stand_in = wrapped[3]
    assert stand_in not in (3, 4)
    assert RobustDatasetWrapper(Numbers(3, 4))[3] == stand_in
    assert wrapped[5] == 5
    (entry,) = book.entries()
    assert (entry["index"], entry["fate"], entry["reason"]) == (3, "replaced", "unexpected_error")
    assert entry["by"] == [f"Numbers#{stand_in} (Numbers[{stand_in}])"]
    assert "OSError: no number 3" in str(entry["detail"])


def test_another_epoch_draws_others() -> None:
    wrapped = RobustDatasetWrapper(Numbers(0, size=1000))
    drawn = set()
    for epoch in range(5):
        wrapped.set_epoch(epoch)
        assert wrapped.epoch == epoch
        drawn.add(wrapped[0])
    assert len(drawn) == 5


def test_exhausting_the_retries_lists_the_causes() -> None:
    book = ledger()
    wrapped = RobustDatasetWrapper(Numbers(*range(10)), max_retries=2, ledger=book)
    with pytest.raises(TooManyFailures) as caught:
        wrapped[3]
    text = str(caught.value)
    assert "3 attempts that all failed" in text
    assert text.count("OSError: no number") == 3
    assert "no number 3" in text
    assert [entry["fate"] for entry in book.entries()] == ["dropped"]


def test_no_retries_and_a_lonely_sample() -> None:
    with pytest.raises(TooManyFailures, match="1 attempts"):
        RobustDatasetWrapper(Numbers(3), max_retries=0)[3]
    with pytest.raises(TooManyFailures, match="1 attempts"):
        RobustDatasetWrapper(Numbers(0, size=1))[0]


def test_numbers_outside_are_index_errors_so_that_loops_end() -> None:
    wrapped = RobustDatasetWrapper(Numbers(2, size=4))
    assert len([sample for sample in wrapped]) == 4  # noqa: C416 - the loop by number is what is tested
    assert wrapped[-1] == 3
    with pytest.raises(IndexError):
        wrapped[4]


def test_errors_of_ours_are_not_replaced() -> None:
    class Wrong(Numbers):
        def __getitem__(self, index: int) -> int:
            raise ExactnessError(found="drift")

    with pytest.raises(ExactnessError):
        RobustDatasetWrapper(Wrong())[0]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_what_workers_replace_reaches_the_ledger(method: str) -> None:
    book = ledger()
    wrapped = RobustDatasetWrapper(Numbers(3, 7), ledger=book)
    loader = DataLoader(wrapped, batch_size=2, num_workers=2, multiprocessing_context=method)
    drawn = [int(number) for batch in loader for number in batch]
    alone = RobustDatasetWrapper(Numbers(3, 7))
    assert drawn == [alone[index] for index in range(10)]
    assert book.entries() == []
    assert wrapped.account(handed=range(10)) is book
    book.check(finished=True)
    assert {int(str(entry["index"])) for entry in book.entries()} == {3, 7}
    assert (book.total()["trained"], book.total()["replaced"]) == (8, 2)


def test_workers_that_live_on_see_the_next_epoch() -> None:
    wrapped = RobustDatasetWrapper(Numbers(0, size=200))
    loader = DataLoader(wrapped, sampler=[0], num_workers=1, persistent_workers=True)
    drawn = []
    for epoch in range(3):
        wrapped.set_epoch(epoch)
        drawn += [int(number) for number in loader]
    wanted = [replacement(0, 1, size=200, seed=0, epoch=epoch) for epoch in range(3)]
    assert drawn == wanted


def test_an_epoch_has_a_ledger_of_its_own() -> None:
    first, second = ledger(), ledger()
    wrapped = RobustDatasetWrapper(Numbers(3), ledger=first)
    wrapped[3]
    wrapped.set_epoch(1, ledger=second)
    assert wrapped.account().entries() == []
    assert len(first.entries()) == 1
    wrapped.set_epoch(2)
    with pytest.raises(ConfigError, match="found no ledger"):
        RobustDatasetWrapper(Numbers()).account()


def test_the_journal_leaves_no_file_behind() -> None:
    wrapped = RobustDatasetWrapper(Numbers(), ledger=ledger())
    path = wrapped.log.path
    assert path is not None
    assert path.is_file()
    _remove(path, owner=os.getpid() + 1)
    assert path.is_file(), "a worker that ends must leave it to its owner"
    del wrapped
    assert not path.is_file()


def picky(batch: list[int]) -> list[int]:
    if 3 in batch:
        raise ValueError("no threes")
    return batch


def test_a_batch_that_cannot_be_collated_is_drawn_again() -> None:
    book = ledger()
    wrapped = RobustDatasetWrapper(Numbers(), ledger=book)
    collate = wrapped.robust_collate(picky)
    assert collate([wrapped[1], wrapped[2]]) == [1, 2]
    asked = [wrapped[3], wrapped[4]]
    drawn = collate(asked)
    assert len(drawn) == 2
    assert 3 not in drawn
    assert {entry["index"]: entry["by"] for entry in book.entries()} == {
        index: [f"Numbers#{by} (Numbers[{by}])"] for index, by in zip((3, 4), drawn, strict=True)
    }
    again = RobustDatasetWrapper(Numbers())
    assert again.robust_collate(picky)([again[3], again[4]]) == drawn


def test_a_batch_is_drawn_again_in_workers_by_the_same_rule() -> None:
    wrapped = RobustDatasetWrapper(Numbers(5))
    collate = wrapped.robust_collate(picky)
    loader = DataLoader(wrapped, batch_size=2, num_workers=2, collate_fn=collate)
    assert list(loader) == list(DataLoader(wrapped, batch_size=2, collate_fn=collate))


def even(batch: list[int]) -> int:
    (number,) = batch
    if number % 2:
        raise ValueError("odd")
    return number


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_a_data_set_that_is_no_wrapper_have_stand_ins_of_their_own(workers: int) -> None:
    def drawn() -> list[int]:
        numbers = Numbers(size=1000)
        collate = make_robust_collate(numbers, even)
        return list(DataLoader(numbers, sampler=range(100), collate_fn=collate, num_workers=workers))

    first = drawn()
    assert first[::2] == list(range(0, 100, 2))
    assert len(set(first[1::2])) > 40
    assert first == drawn()


def test_batches_are_counted_over_all_epochs_and_no_ledger_hears_of_them() -> None:
    book = ledger()
    collate = RobustDatasetWrapper(Numbers(size=10), ledger=book).robust_collate(even)
    drawn = [collate([1]) for _ in range(40)]
    assert drawn[:10] != drawn[10:20]
    assert set(drawn) == {0, 2, 4, 6, 8}
    assert book.entries() == []


def test_a_lonely_sample_is_tried_again() -> None:
    tries = iter([1, 1, 0])
    collate = make_robust_collate(Numbers(size=1), lambda batch: even([next(tries)]))
    assert collate([0]) == 0


def test_a_wrapper_draws_the_batch_again_itself() -> None:
    book = ledger()
    wrapped = RobustDatasetWrapper(Numbers(), ledger=book, max_retries=0)
    collate = make_robust_collate(wrapped, picky)
    again = RobustDatasetWrapper(Numbers())
    assert collate([wrapped[3], wrapped[4]]) == again.robust_collate(picky)([again[3], again[4]])
    assert {entry["index"] for entry in book.entries()} == {3, 4}
    with pytest.raises(TooManyFailures, match="2 attempts that all failed"):
        make_robust_collate(wrapped, lambda batch: picky([3]), max_retries=1)([wrapped[0]])


def test_a_collate_function_that_never_works_lists_the_causes() -> None:
    def never(batch: list[int]) -> None:
        raise ValueError(f"not {len(batch)} again")

    wrapped = RobustDatasetWrapper(Numbers(), max_retries=3)
    with pytest.raises(TooManyFailures) as caught:
        wrapped.robust_collate(never)([wrapped[0], wrapped[1]])
    assert str(caught.value).count("ValueError: not 2 again") == 4
    assert "batch of samples 0, 1" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"max_retries": -1}, "max_retries -1"), ({"seed": -2}, "seed -2")],
)
def test_options_are_checked(options: dict[str, int], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        RobustDatasetWrapper(Numbers(), **options)
    with pytest.raises(ConfigError, match="a data set without examples; wanted at least one"):
        RobustDatasetWrapper([])


@pytest.fixture(scope="module")
def processor() -> Any:
    return toy.processor("qwen2_5_vl")


def talk(answer: str, *shown: Any) -> dict[str, Any]:
    pictures = [{"type": "image", "image": one} for one in shown]
    return {
        "conversation": [
            {"role": "user", "content": [*pictures, {"type": "text", "text": "What do you see?"}]},
            {"role": "assistant", "content": [{"type": "text", "text": answer}]},
        ]
    }


def test_a_sample_has_tokens_labels_and_pixels(processor: Any) -> None:
    examples = [talk("A red square.", Image.new("RGB", (64, 48), "red")), talk("Nothing.")]
    wrapped = PreTokenizedDatasetWrapper(examples, processor)
    shown, bare = wrapped[0], wrapped[1]
    for sample in (shown, bare):
        assert sample["input_ids"].shape == sample["labels"].shape == sample["attention_mask"].shape
        assert sample["input_ids"].ndim == 1
        assert sample["attention_mask"].all()
        trained = sample["labels"] != -100
        assert trained.any()
        # Unshifted: a label stands at its own token.
        assert torch.equal(sample["labels"][trained], sample["input_ids"][trained])
    assert set(shown) >= {"pixel_values", "image_grid_thw"}
    assert len(shown["pixel_values"]) == int(math.prod(shown["image_grid_thw"][0].tolist()))
    pad = processor.tokenizer.convert_tokens_to_ids("<|image_pad|>")
    assert int((shown["input_ids"] == pad).sum()) * 4 == len(shown["pixel_values"])
    text = processor.tokenizer.decode(shown["labels"][shown["labels"] != -100])
    assert text == "A red square.<|im_end|>"


def test_no_picture_is_put_into_a_sample_without_one(processor: Any) -> None:
    sample = PreTokenizedDatasetWrapper([talk("Nothing.")], processor)[0]
    assert set(sample) == {"input_ids", "attention_mask", "labels", "mm_token_type_ids"}


def test_what_is_too_long_with_its_media_is_replaced(processor: Any) -> None:
    examples = [talk("Short."), talk("Short.", Image.new("RGB", (200, 160))), talk("Brief.")]
    lengths = [len(PreTokenizedDatasetWrapper(examples, processor)[index]["input_ids"]) for index in range(3)]
    assert lengths[1] > max(lengths[0], lengths[2])
    book = ledger(3)
    limit = max(lengths[0], lengths[2])
    wrapped = PreTokenizedDatasetWrapper(examples, processor, max_length=limit, ledger=book)
    assert wrapped.max_length == limit
    assert [len(wrapped[index]["input_ids"]) <= limit for index in range(3)] == [True] * 3
    assert len(wrapped[0]["input_ids"]) == lengths[0]
    (entry,) = book.entries()
    assert (entry["index"], entry["reason"]) == (1, "too_long")
    assert f"found {lengths[1]} tokens, media included; wanted at most {limit}" in str(entry["detail"])
    with pytest.raises(SkipSample, match="media included"):
        wrapped.encoded(1)


@pytest.mark.parametrize(
    ("example", "reason"),
    [
        (talk("x", "no-such-picture.png"), "missing_media"),
        (talk("x", b"no picture"), "corrupt_media"),
        ({"conversation": [{"role": "user", "content": "hi"}]}, "no_assistant_turn"),
        ({"conversation": [{"role": "user", "content": [{"type": "image"}]}, talk("x")["conversation"][1]]},
         "marks_without_media"),
        ({"messages": []}, "bad_row"),
    ],
)  # fmt: skip
def test_a_bad_sample_is_replaced_for_its_reason(processor: Any, example: dict[str, Any], reason: str) -> None:
    book = ledger(2)
    wrapped = PreTokenizedDatasetWrapper([example, talk("Good.")], processor, ledger=book)
    assert torch.equal(wrapped[0]["input_ids"], wrapped[1]["input_ids"])
    assert [entry["reason"] for entry in book.entries()] == [reason]
    with pytest.raises(TooManyFailures, match=r"2 attempts that all failed: \(0\) list#0"):
        PreTokenizedDatasetWrapper([example, example], processor)[0]


def test_a_share_of_a_corpus_writes_the_corpus_names_down(tmp_path: Path, processor: Any) -> None:
    rows = numbered(6)
    rows[3]["conversations"][0]["value"] = "<image>?"
    write_rows(tmp_path / "a.jsonl", rows)
    meta = write_meta(tmp_path, a={"file_name": "a.jsonl"})
    lazy = make_meta_dataset(meta, shard_data=True, rank=1, world_size=2, lazy=True)
    wrapped = PreTokenizedDatasetWrapper(lazy, processor, ledger=lazy.ledger())
    assert len(wrapped[1]["input_ids"])
    (entry,) = wrapped.account().entries()
    assert (entry["index"], entry["source"], entry["where"]) == (3, "a", f"{tmp_path / 'a.jsonl'}:4")


def test_the_ledger_of_a_share_knows_every_source(tmp_path: Path, processor: Any) -> None:
    for name, size in (("a", 3), ("b", 2)):
        write_rows(tmp_path / f"{name}.jsonl", numbered(size))
    meta = write_meta(tmp_path, a={"file_name": "a.jsonl"}, b={"file_name": "b.jsonl"})
    books = []
    for rank in range(2):
        lazy = make_meta_dataset(meta, shard_data=True, rank=rank, world_size=2, lazy=True)
        wrapped = PreTokenizedDatasetWrapper(lazy, processor, ledger=lazy.ledger())
        books.append(wrapped.account(range(len(wrapped))))
    first, second = books
    assert {name: total["trained"] for name, total in first.totals().items()} == {"a": 2, "b": 1}
    first.merge(second)
    assert {name: total["trained"] for name, total in first.totals().items()} == {"a": 3, "b": 2}
    first.check()


def test_it_can_go_to_a_worker(processor: Any) -> None:
    wrapped = PreTokenizedDatasetWrapper([talk("Yes."), talk("No.")], processor)
    again = pickle.loads(pickle.dumps(wrapped))
    assert torch.equal(again[1]["input_ids"], wrapped[1]["input_ids"])


def test_no_room_at_all_is_refused(processor: Any) -> None:
    with pytest.raises(ConfigError, match="found max_length 0"):
        PreTokenizedDatasetWrapper([talk("Yes.")], processor, max_length=0)
    with pytest.raises(ConfigError, match="without examples"):
        PreTokenizedDatasetWrapper([], processor)
