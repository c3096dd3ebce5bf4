"""Guesses are what the pages say they are, and never stop a plan."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import ConfigError, UnknownName
from lading.media.geometry import smart_resize, smart_resize_clip
from lading.vlm.estimate import TOKENS_PER_MEDIUM, estimate, image_tokens, video_tokens


def talk(*parts: Any, **more: Any) -> dict[str, Any]:
    return {
        "conversation": [{"role": "user", "content": list(parts)}, {"role": "assistant", "content": "Ada."}],
        **more,
    }


IMAGE, VIDEO, AUDIO = ({"type": kind, kind: "x"} for kind in ("image", "video", "audio"))
WORDS = {"type": "text", "text": "x" * 20}


def test_text_is_a_third_of_its_characters_unless_counted() -> None:
    assert estimate(talk(WORDS)).text == 24 // 3
    assert estimate(talk(WORDS, _text_tokens=41)).text == 41
    assert estimate(talk(WORDS, _text_tokens=0)).text == 0
    assert estimate({"conversation": [{"role": "user", "content": None}]}).total == 0


@pytest.mark.parametrize(
    "names", [("images", "videos"), ("images_meta", "videos_meta"), ("image_meta", "video"), ("image", "video_meta")]
)
def test_media_by_size_where_size_and_configuration_are_known(names: tuple[str, str]) -> None:
    def two(size: Sequence[float]) -> int:
        return int(size[0])

    sizes = {names[0]: [[7, 9]], names[1]: [[11, 9, 9, 1.0, 2.0]]}
    example = talk(IMAGE, IMAGE, VIDEO, AUDIO, mm_inputs_meta=sizes)
    assert estimate(example).media == 4 * TOKENS_PER_MEDIUM
    assert estimate(example, image_tokens=two, video_tokens=two).media == 7 + 11 + 2 * TOKENS_PER_MEDIUM
    assert estimate({**example, "_media_tokens": 5}, image_tokens=two).media == 5
    assert estimate(talk(IMAGE, mm_inputs_meta=None), image_tokens=two).media == TOKENS_PER_MEDIUM


@given(st.integers(1, 3000), st.integers(1, 3000))
def test_pictures_are_counted_by_their_resized_sides(height: int, width: int) -> None:
    numbers = {"patch_size": 14, "merge_size": 2, "min_pixels": 3136, "max_pixels": 100_000}
    found = image_tokens([height, width], numbers, smart_resize)
    if max(height, width) > 200 * min(height, width):
        assert found == TOKENS_PER_MEDIUM
    else:
        sides = smart_resize(height, width, factor=28, min_pixels=3136, max_pixels=100_000)
        assert found == sides[0] * sides[1] // 28**2


@pytest.mark.parametrize("size", [[], [5], ["a", "b"], None, [0, 10], [[1], [2]]])
def test_a_size_that_cannot_be_read_is_no_reason_to_stop(size: Any) -> None:
    assert image_tokens(size, {}, smart_resize) == TOKENS_PER_MEDIUM
    assert video_tokens(size, {}, smart_resize_clip) == TOKENS_PER_MEDIUM


def test_clips_are_sampled_in_time() -> None:
    def tokens(*size: float, **numbers: float) -> int:
        return video_tokens(size, numbers, smart_resize_clip)

    assert tokens(300, 64, 64, 30.0, 10.0) == 10 * 4  # 20 frames, two a patch, 2 × 2 tokens each
    assert tokens(300, 64, 64, 0.0, 10.0) == 10 * 4  # by its duration
    assert tokens(300, 64, 64) == 150 * 4  # no clock: all frames
    assert tokens(300, 64, 64, 30.0, 10.0, max_frames=6) == 3 * 4
    assert tokens(1, 64, 64, 30.0, 0.1, min_pixels=64) == 4
    assert tokens(4, 320, 320, 2.0, 2.0, max_pixels=128 * 128, pixels_per_frame=1) == 2 * 16
    assert tokens(4, 320, 320, 2.0, 2.0, max_pixels=128 * 128, min_pixels=64) == 2 * 4


def test_bad_input_says_what_was_wanted() -> None:
    with pytest.raises(UnknownName, match="did you mean 'patch_size'"):
        image_tokens([8, 8], {"patchsize": 14}, smart_resize)
    with pytest.raises(ConfigError, match="a list of turns under 'conversation'"):
        estimate({"messages": []})
    with pytest.raises(ConfigError, match="found a list"):
        estimate([1, 2])  # type: ignore[arg-type]
