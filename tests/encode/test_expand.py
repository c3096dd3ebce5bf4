import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.encode.expand import repeat_pads, splice
from lading.errors import SkipSample
from lading.family import Medium
from lading.records import Footprint

PAD = 9


def footprint(*runs: int, text: str | None = None) -> Footprint:
    return Footprint(kind="image", runs=runs, rows=sum(runs) * 4, text=text)


@given(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3), max_size=4), st.integers(0, 3))
def test_every_pad_is_repeated_in_its_place(media: list[list[int]], text: int) -> None:
    ids = [1]
    for runs in media:
        ids += [PAD, 2] * len(runs) + [3] * text
    expanded = repeat_pads(np.array(ids), [PAD], [footprint(*runs) for runs in media], where="w")
    assert len(expanded.ids) == len(ids) + sum(run - 1 for runs in media for run in runs)
    for span, runs in zip(expanded.media, media, strict=True):
        assert [stop - start for start, stop in span.runs] == runs
        assert all((expanded.ids[start:stop] == PAD).all() for start, stop in span.runs)
    assert (expanded.ids == PAD).sum() == sum(map(sum, media))


def test_a_pad_too_many_is_refused() -> None:
    with pytest.raises(SkipSample, match="2 pad tokens; wanted 1"):
        repeat_pads(np.array([PAD, PAD]), [PAD], [footprint(3)], where="w")


def test_splicing_moves_what_stands_behind() -> None:
    medium = Medium(mark="<m>", pad="<p>", geometry=lambda processor: processor)
    text = "ab<m>cd<m>e"
    media = [footprint(1, 1, text="(<p>(<p>"), footprint(1, text="(<p>")]
    spliced = splice(text, {"image": medium}, media, where="w")
    assert spliced.text == "ab(<p>(<p>cd(<p>e"
    for place, letter in ((0, "a"), (1, "b"), (5, "c"), (6, "d"), (10, "e")):
        assert text[place] == letter
        assert spliced.text[spliced.place(place)] == letter


def test_a_mark_too_many_is_refused() -> None:
    medium = Medium(mark="<m>", pad="<m>", geometry=lambda processor: processor)
    with pytest.raises(SkipSample) as caught:
        splice("<m> and <m>", {"image": medium}, [footprint(1)], where="w")
    assert caught.value.reason == "placeholder_in_text"


def test_a_template_may_show_pictures_before_clips() -> None:
    media = {
        kind: Medium(mark=f"<{kind}>", pad=f"<{kind}>", geometry=lambda processor: processor)
        for kind in ("image", "video")
    }
    clip = Footprint(kind="video", runs=(2,), rows=8)
    spliced = splice("<image><video>", media, [clip, footprint(5)], where="w")  # type: ignore[arg-type]
    assert [item.kind for item in spliced.footprints] == ["image", "video"]
