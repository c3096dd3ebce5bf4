"""Properties of join, split, clip, shift and pad over made-up documents."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.errors import ExactnessError, SkipSample
from lading.fields import IGNORE_INDEX, TOKEN_FIELDS, Field
from lading.records import Document, Encoded, Footprint, MediumSpan, SampleKey
from lading.tensors import LARGE, clip, extent, insert_unsaid, join, pad, shift, split

FIELDS = {
    **TOKEN_FIELDS,
    "pixel_values": Field(axis="image_patch"),
    "image_grid_thw": Field(axis="image"),
    "pixel_values_videos": Field(axis="video_patch"),
    "flag": Field(axis="sample"),
}


@st.composite
def encoded_samples(draw: st.DrawFn) -> Encoded:
    """A sample with up to three media between runs of text."""
    token, spans, media = (
        0,
        [],
        draw(st.lists(st.tuples(st.sampled_from(["image", "video"]), st.integers(1, 4)), max_size=3)),
    )
    for kind, features in media:
        token += draw(st.integers(1, 4))
        footprint = Footprint(kind=kind, runs=(features,), rows=features * 4, grid=(1, 2, features * 2))
        spans.append(MediumSpan(footprint=footprint, runs=((token, token + features),)))
        token += features
    length = token + draw(st.integers(1, 6))
    document = Document(
        key=SampleKey(index=draw(st.integers(0, 99)), source="s", where="w"), tokens=length, media=tuple(spans)
    )
    number = draw(st.integers(1, 10_000))
    tensors = {
        "input_ids": torch.arange(length) + number,
        "labels": torch.where(torch.arange(length) >= length - 1, torch.arange(length), IGNORE_INDEX),
        "position_ids": torch.arange(length).expand(4, -1),
        "flag": torch.tensor([number]),
    }
    for name in ("pixel_values", "image_grid_thw", "pixel_values_videos"):
        rows = extent(document, FIELDS[name])
        if rows:
            tensors[name] = torch.arange(rows * 3).reshape(rows, 3) + number
    return Encoded(document=document, spans=((length - 1, length),), tensors=tensors)


@given(st.lists(encoded_samples(), min_size=1, max_size=6))
def test_split_undoes_join(samples: list[Encoded]) -> None:
    parts = split(join([sample.tensors for sample in samples], FIELDS), [s.document for s in samples], FIELDS)
    for sample, part in zip(samples, parts, strict=True):
        assert set(part) == set(sample.tensors)
        assert all(torch.equal(part[name], tensor) for name, tensor in sample.tensors.items())


@given(encoded_samples(), st.data())
def test_clip_keeps_media_and_tokens_together(sample: Encoded, data: st.DataObject) -> None:
    wanted = data.draw(st.integers(1, sample.document.tokens))
    if wanted < sample.document.tokens:  # the only label is on the last token
        with pytest.raises(SkipSample, match="no label among the first"):
            clip(sample, wanted, FIELDS)
        sample = dataclasses.replace(sample, tensors={**sample.tensors, "labels": sample.tensors["input_ids"]})
    cut = clip(sample, wanted, FIELDS)
    assert cut.document.tokens <= wanted
    assert all(span.stop <= cut.document.tokens for span in cut.document.media)
    for name, tensor in cut.tensors.items():
        assert tensor.shape[FIELDS[name].dim] == extent(cut.document, FIELDS[name])
        assert torch.equal(tensor, sample.tensors[name].narrow(FIELDS[name].dim, 0, tensor.shape[FIELDS[name].dim]))


@settings(max_examples=50)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_shift_stays_inside_each_document(lengths: list[int]) -> None:
    labels = torch.arange(sum(lengths))
    shifted = shift(labels, lengths)
    start = 0
    for length in lengths:
        assert shifted[start : start + length].tolist() == [*range(start + 1, start + length), IGNORE_INDEX]
        start += length
    assert labels.tolist() == list(range(sum(lengths))), "the input must not change"


def test_padding_counts_where_positions_do() -> None:
    padded = pad(torch.tensor([[0, 1, 2], [0, 1, 2]]), 5, TOKEN_FIELDS["position_ids"])
    assert padded.tolist() == [[0, 1, 2, 0, 1], [0, 1, 2, 0, 1]]


def test_an_undeclared_tensor_is_never_guessed_at() -> None:
    with pytest.raises(ExactnessError, match="does not declare"):
        join([{"mystery": torch.zeros(1)}, {"mystery": torch.zeros(1)}], FIELDS)


def test_rows_that_do_not_add_up_are_an_error_of_ours() -> None:
    document = Document(key=SampleKey(index=0, source="s", where="w"), tokens=3)
    with pytest.raises(ExactnessError, match="4 rows of 'input_ids'; wanted 3"):
        split({"input_ids": torch.zeros(4)}, [document], FIELDS)


def test_what_is_unsaid_stands_before_every_answer() -> None:
    picture = Footprint(kind="image", runs=(2,), rows=8)
    document = Document(
        key=SampleKey(index=0, source="s", where="w"), tokens=7, media=(MediumSpan(footprint=picture, runs=((3, 5),)),)
    )
    labels = torch.tensor([-100, 11, -100, -100, -100, 15, 16])
    sample = Encoded(
        document=document, spans=((1, 2), (5, 7)), tensors={"input_ids": torch.arange(10, 17), "labels": labels}
    )
    longer = insert_unsaid(sample, [8, 9])
    assert longer.tensors["input_ids"].tolist() == [10, 8, 9, 11, 12, 13, 14, 8, 9, 15, 16]
    assert longer.tensors["labels"].tolist() == [-100, -100, -100, 11, -100, -100, -100, -100, -100, 15, 16]
    assert longer.spans == ((3, 4), (9, 11))
    assert longer.document.media[0].runs == ((5, 7),)
    assert longer.document.tokens == 11


class Joined(torch.utils.data.Dataset[tuple[bool, bool, torch.Tensor]]):
    """A large and a small tensor, joined in a worker: whether each lies in shared memory, and the large one."""

    def __getitem__(self, index: int) -> tuple[bool, bool, torch.Tensor]:
        halves = [torch.full((LARGE // 2,), value, dtype=torch.uint8) for value in (1, 2)]
        fields = {"pixel_values": Field(axis="image_patch")}
        large = join([{"pixel_values": half} for half in halves], fields)["pixel_values"]
        small = join([{"pixel_values": half[:9]} for half in halves], fields)["pixel_values"]
        return large.is_shared(), small.is_shared(), large

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize("workers", [0, 1])
def test_what_is_large_is_joined_where_the_main_process_reads_it(workers: int) -> None:
    loader = torch.utils.data.DataLoader(Joined(), batch_size=None, num_workers=workers)
    ((large, small, joined),) = loader
    assert large == bool(workers)
    assert not small
    assert joined.sum().item() == LARGE // 2 * 3
