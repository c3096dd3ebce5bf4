import gc

import numpy as np
import pytest
from PIL import Image

from lading.media.in_place import pixels_of


@pytest.mark.parametrize("size", [(1, 1), (7, 5), (640, 480)])
def test_pixels_are_the_pictures_own(size: tuple[int, int]) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), np.uint8)
    picture = Image.fromarray(noise)
    found = pixels_of(picture)
    assert found.shape == (size[1], size[0], 4), "not copied"
    assert np.array_equal(found[..., :3], noise)


def test_pixels_outlive_the_picture() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (480, 640, 3), np.uint8)
    found = pixels_of(Image.fromarray(noise))
    gc.collect()
    others = [Image.new("RGB", (640, 480), "white") for _ in range(8)]  # would be put where it was
    assert np.array_equal(found[..., :3], noise)
    assert others


def test_a_picture_in_several_pieces_is_copied() -> None:
    """Pillow keeps at most 16 MB in one piece."""
    picture = Image.new("RGB", (4000, 2000), (9, 8, 7))
    found = pixels_of(picture)
    assert found.shape == (2000, 4000, 3)
    assert (found == (9, 8, 7)).all()
