"""Samples by length: the same way on every rank, nothing lost, from any place on."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Subset
from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize as their_image
from transformers.models.qwen3_vl.video_processing_qwen3_vl import smart_resize as their_video

from lading import toy
from lading.errors import ConfigError
from lading.loader import Samples, read_processor
from lading.records import ImageSize, VideoSize
from lading.vlm.datasets import PreTokenizedDatasetWrapper, RobustDatasetWrapper, make_meta_dataset
from lading.vlm.samplers import LengthGroupedSampler, _smart_resize_image, _smart_resize_video


def talks(*sizes: int) -> list[dict[str, Any]]:
    """Examples of as many estimated tokens."""
    return [{"conversation": [{"role": "assistant", "content": "x" * (3 * size)}]} for size in sizes]


def test_longest_first_from_a_place_that_moves() -> None:
    sampler = LengthGroupedSampler(talks(3, 9, 5, 7), batch_size=0)
    assert sampler.batch_size == 1
    assert sampler.lengths == [3, 9, 5, 7]
    assert sampler.sorted_indices == [1, 3, 2, 0]
    assert len(sampler) == 4
    seen = set()
    for epoch in range(12):
        sampler.set_epoch(epoch)
        order = list(sampler)
        begin = sampler.sorted_indices.index(order[0])
        assert order == sampler.sorted_indices[begin:] + sampler.sorted_indices[:begin]
        seen.add(begin)
    assert len(seen) > 1


def test_counts_made_beforehand_come_first() -> None:
    example = {**talks(7)[0], "_text_tokens": 11, "_media_tokens": 13}
    sampler = LengthGroupedSampler([example])
    assert sampler._estimate_tokens(example) == (11, 13)
    assert sampler.lengths == [24]
    assert sampler._estimate_tokens(talks(7)[0]) == (7, 0)
    assert LengthGroupedSampler([{"input_ids": [1, 2, 3]}]).lengths == [3]


def test_overlong_samples_are_left_out_by_name(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        sampler = LengthGroupedSampler(talks(3, 9, 5), max_length=5)
    assert sorted(sampler) == [0, 2]
    assert [entry.key.index for entry in sampler.dropped] == [1]
    assert "left out 1 of 3 samples" in caplog.text
    assert "list[1]" in caplog.text


def test_exact_lengths_where_the_data_set_can_count(toy_meta: Path, toy_samples: Samples) -> None:
    examples = make_meta_dataset(toy_meta)
    processor = toy.processor("qwen2_5_vl")
    wrapper = PreTokenizedDatasetWrapper(examples, processor)
    lengths = [len(wrapper[index]["input_ids"]) for index in range(len(wrapper))]
    assert LengthGroupedSampler(wrapper).lengths == lengths
    assert LengthGroupedSampler(toy_samples).lengths == lengths
    assert LengthGroupedSampler(examples, processor=processor, exact_lengths=True).lengths == lengths
    guessed = LengthGroupedSampler(wrapper, exact_lengths=False).lengths
    assert guessed == LengthGroupedSampler(examples).lengths != lengths
    bounded = PreTokenizedDatasetWrapper(examples, processor, max_length=100)
    usable = [index for index, length in enumerate(lengths) if length <= 100]
    assert sorted(LengthGroupedSampler(bounded)) == usable


def test_samples_that_cannot_be_used_are_left_out(tmp_path: Path) -> None:
    rows = [{"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]} for _ in range(3)]
    rows[1] = {**rows[1], "conversations": [{"from": "human", "value": "<image>"}, *rows[1]["conversations"][1:]]}
    rows[1]["images"] = ["missing.png"]  # type: ignore[assignment,list-item]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "meta.json").write_text(json.dumps({"a": {"file_name": "a.jsonl"}}))
    wrapper = PreTokenizedDatasetWrapper(make_meta_dataset(tmp_path / "meta.json"), toy.processor("qwen2_5_vl"))
    sampler = LengthGroupedSampler(wrapper)
    assert sorted(sampler) == [0, 2]
    assert [entry.reason.value for entry in sampler.dropped] == ["missing_media"]


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_vl"])
@given(data=st.data())
def test_media_are_estimated_as_the_processor_counts_them(family: str, data: st.DataObject) -> None:
    processor = toy.processor(family)
    facts = read_processor(processor)
    sampler = LengthGroupedSampler(talks(1), processor=processor)
    height, width, frames = (data.draw(st.integers(32, 400)) for _ in range(3))
    fps = data.draw(st.sampled_from([8.0, 24.0, 30.0]))
    picture = facts.geometries["image"].footprints([ImageSize(height=height, width=width)])[0]
    assert sampler._estimate_image_tokens([height, width]) == sum(picture.runs)
    clip = facts.geometries["video"].footprints([VideoSize(frames=frames, height=height, width=width, fps=fps)])[0]
    guessed = sampler._estimate_video_tokens([frames, height, width, fps, frames / fps])
    # Which frames a clip has left is rounded in several ways; one temporal patch more or less is a good guess.
    assert abs(guessed - sum(clip.runs)) <= 2 * sum(clip.runs) / clip.grid[0]


def test_numbers_are_read_only_where_a_processor_has_them() -> None:
    assert LengthGroupedSampler._extract_image_config(None) is None
    assert LengthGroupedSampler._extract_video_config(toy.processor("internvl")) is None
    config = LengthGroupedSampler._extract_image_config(toy.processor("qwen2_5_vl"))
    assert config == {"patch_size": 14, "merge_size": 2, "min_pixels": 4 * 28 * 28, "max_pixels": 32 * 28 * 28}


def test_wrappers_are_looked_under_but_their_choice_is_kept() -> None:
    examples = talks(3, 9, 5, 7)
    raw = LengthGroupedSampler._get_raw_samples
    assert raw(RobustDatasetWrapper(RobustDatasetWrapper(examples))) is examples
    assert raw(Subset(RobustDatasetWrapper(examples), [3, 0])) == [examples[3], examples[0]]  # type: ignore[arg-type]
    assert LengthGroupedSampler(Subset(examples, [3, 0, 1])).lengths == [7, 3, 9]  # type: ignore[arg-type]


def test_resume_at_every_place() -> None:
    examples = talks(*range(1, 12))

    def sampler() -> LengthGroupedSampler:
        made = LengthGroupedSampler(examples, batch_size=2)
        made.set_epoch(3)
        return made

    whole = list(sampler())
    for stop in range(len(whole) + 1):
        first = iter(running := sampler())
        head = [next(first) for _ in range(stop)]
        state = json.loads(json.dumps(running.state_dict()))
        later = LengthGroupedSampler(examples, batch_size=2)
        later.load_state_dict(state)
        later.set_epoch(3)
        assert head + list(later) == whole
        assert list(later) == whole, "only once: the next round is whole again"
    assert sampler().state_dict(consumed=4)["position"] == 4
    later.load_state_dict(state)
    later.set_epoch(4)
    assert len(list(later)) == len(whole), "another epoch begins at its first place"


def test_a_loader_takes_it() -> None:
    sampler = LengthGroupedSampler(talks(3, 9, 5, 7))
    loader = DataLoader(list(range(4)), sampler=sampler, batch_size=2)  # type: ignore[arg-type]
    assert [number for batch in loader for number in batch.tolist()] == list(sampler)


def test_bad_input() -> None:
    with pytest.raises(ConfigError, match="at least one usable sample"):
        LengthGroupedSampler([])
    with pytest.raises(ConfigError, match="at least one usable sample"):
        LengthGroupedSampler(talks(3, 4), max_length=2)
    with pytest.raises(ConfigError, match="found max_length 0"):
        LengthGroupedSampler(talks(3), max_length=0)
    with pytest.raises(ConfigError, match="found seed -1"):
        LengthGroupedSampler(talks(3), seed=-1)
    with pytest.raises(ConfigError, match="an example: a dict"):
        LengthGroupedSampler([[1, 2]])
    with pytest.raises(ConfigError, match="exact_lengths=True and a list"):
        LengthGroupedSampler(talks(3), exact_lengths=True)
    sampler = LengthGroupedSampler(talks(3, 4))
    sampler.set_epoch(-1)
    with pytest.raises(ConfigError, match="epoch -1"):
        list(sampler)
    for wrong in ({}, {**sampler.state_dict(), "seed": 1}, {**sampler.state_dict(), "samples": 9}):
        with pytest.raises(ConfigError, match="skipped or repeated"):
            sampler.load_state_dict(wrong)


SHARES = [list(range(1, 12)), [40, 2, 7, 9, 11, 30, 1]]


def rank_main(rank: int, folder: str) -> None:
    """One of two ranks, on gloo: its numbers for three epochs, what it repeats, and a resumed half."""
    store = distributed.FileStore(f"{folder}/store", 2)
    distributed.init_process_group("gloo", rank=rank, world_size=2, store=store)
    sampler = LengthGroupedSampler(talks(*SHARES[rank]), batch_size=2)
    epochs = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        epochs.append(list(sampler))
    again = LengthGroupedSampler(talks(*SHARES[rank]), batch_size=2)
    again.load_state_dict({**sampler.state_dict(), "epoch": 1, "position": 5})
    refused = []
    for share, seed in (([50] if rank else [1], 42), ([1], rank)):
        try:
            LengthGroupedSampler(talks(*share), seed=seed, max_length=10)
        except ConfigError as error:
            refused.append(str(error))
    found = {
        "epochs": epochs,
        "repeated": sampler.repeated,
        "places": len(sampler),
        "resumed": list(again),
        "refused": refused,
    }
    Path(folder, f"{rank}.json").write_text(json.dumps(found))
    distributed.destroy_process_group()


def test_two_ranks_with_unequal_shares_keep_in_step(tmp_path: Path) -> None:
    multiprocessing.spawn(rank_main, args=(str(tmp_path),), nprocs=2)  # type: ignore[no-untyped-call]
    ranks = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    assert [rank["places"] for rank in ranks] == [11, 11]
    begins = []
    for epoch in range(3):
        for rank, share in zip(ranks, SHARES, strict=True):
            order = rank["epochs"][epoch]
            assert len(order) == 11
            assert set(order) == set(range(len(share))), "nothing is lost"
        # Quantiles of the shares stand side by side: the order falls, but for the one place where it begins again.
        falls = [[share[i] for i in rank["epochs"][epoch]] for rank, share in zip(ranks, SHARES, strict=True)]
        boundaries = [[at for at in range(1, 11) if sizes[at] > sizes[at - 1]] for sizes in falls]
        assert boundaries[0] == boundaries[1], "every rank begins at the same place"
        begins.append(tuple(boundaries[0]))
    assert len(set(begins)) > 1
    assert ranks[0]["repeated"] == []
    assert len(ranks[1]["repeated"]) == 11 - 7
    for rank in ranks:
        assert rank["resumed"] == rank["epochs"][1][5:]
        assert len(rank["refused"]) == 2, "a bad share stops every rank, not one"
        assert "(1, 42, 1), (0, 42, 1)" in rank["refused"][0]
        assert "same seed" in rank["refused"][1]


def test_shapes_that_cannot_be_are_value_errors_as_theirs() -> None:
    long, short = (28, 28 * 201), (1, 64, 64)
    for theirs, ours, size in ((their_image, _smart_resize_image, long), (their_video, _smart_resize_video, short)):
        with pytest.raises(ValueError):  # noqa: PT011 - what it says is theirs
            theirs(*size)
        with pytest.raises(ValueError, match=r"found a .*; wanted .* \[_smart_resize"):
            ours(*size)
    assert _smart_resize_video(2, 64, 64) == their_video(2, 64, 64, 2, 32, 128 * 128, 16 * 16 * 2 * 2 * 2 * 6144)
