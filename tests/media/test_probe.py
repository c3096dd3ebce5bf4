"""Footprints equal what processors make, for pictures of any size: a difference would raise `ExactnessError`."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from lading import families, toy
from lading.encode import Encoder
from lading.errors import SkipSample
from lading.media import probe
from lading.media.geometry.clips import refuse_still_clips
from lading.media.probe import Answer, Probe, compress
from lading.records import Conversation, Dropped, ImageSize, MediaPart, Message, SampleKey, Size, TextPart, VideoSize
from lading.samples.skip import SkipPolicy


def talk(*sizes: tuple[int, int]) -> Conversation:
    pictures = tuple(MediaPart(kind="image", reference=Image.new("RGB", size)) for size in sizes)
    return Conversation(
        key=SampleKey(index=0, source="s", where="w"),
        messages=(
            Message(role="user", parts=(*pictures, TextPart(text="What?"))),
            Message(role="assistant", parts=(TextPart(text="This."),)),
        ),
    )


SIDES = st.integers(1, 400)


@pytest.mark.parametrize("name", families.names())
@settings(max_examples=8, deadline=None)
@given(sizes=st.lists(st.tuples(SIDES, SIDES), min_size=1, max_size=3))
@example(sizes=[(1, 1)])
@example(sizes=[(400, 3), (3, 400)])
def test_pictures_of_any_size(name: str, sizes: list[tuple[int, int]]) -> None:
    encoder = Encoder.of(toy.processor(name))
    conversation = talk(*sizes)
    encoded = SkipPolicy().attempt(conversation.key, lambda: encoder.encode(conversation))
    if isinstance(encoded, Dropped):
        assert encoded.reason == "impossible_shape", encoded
        return
    assert len(encoded.document.footprints("image")) == len(sizes)
    pads = sum(sum(footprint.runs) for footprint in encoded.document.footprints("image"))
    found = sum(encoded.tensors["input_ids"].tolist().count(pad) for pad in encoder.facts.tokeniser.pads)
    assert found == pads


def test_runs_of_pads_are_written_once() -> None:
    assert compress("a<p><p>b<p>", "<p>") == ("a<p>b<p>", (2, 1))
    assert compress("nothing", "<p>") == ("nothing", ())


@pytest.mark.parametrize(
    "size", [VideoSize(frames=0, height=9, width=9, fps=8.0), VideoSize(frames=3, height=9, width=9, fps=0)]
)
def test_a_clip_that_does_not_play_is_named(size: VideoSize) -> None:
    with pytest.raises(SkipSample, match="a clip that plays"):
        refuse_still_clips(size)


def test_answers_are_kept_but_not_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Size, ...]] = []

    def ask(sizes: tuple[Size, ...]) -> Answer:
        asked.append(sizes)
        return ["p"] * len(sizes), [1] * len(sizes)

    monkeypatch.setattr(probe, "KEPT", 10)
    own = Probe(kind="image", pad="p", ask=ask)
    for width in range(1, 101):
        for _ in range(2):
            assert own.footprints([ImageSize(height=1, width=width)])[0].rows == 1
        assert len(own.known) <= 10
    assert len(asked) == 100
