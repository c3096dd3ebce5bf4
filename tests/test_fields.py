import pytest

from lading.errors import UnknownName
from lading.fields import AXES, Field


def test_every_axis_knows_its_medium() -> None:
    kinds = {axis: Field(axis=axis).kind for axis in AXES}
    assert kinds["token"] is None
    assert kinds["sample"] is None
    assert {kinds[axis] for axis in AXES if axis not in ("token", "sample")} == {"image", "video", "audio"}


def test_only_patch_axes_are_ragged() -> None:
    assert [axis for axis in AXES if Field(axis=axis).ragged] == ["image_patch", "video_patch", "audio_patch"]


def test_an_unknown_axis_is_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean 'image_patch'"):
        Field(axis="image_patches")  # type: ignore[arg-type]
