import pytest

from lading.errors import UnknownName
from lading.fields import AXES, Field


def test_every_axis_knows_its_media() -> None:
    kinds = {axis: Field(axis=axis).kinds for axis in AXES}
    assert kinds["token"] == kinds["sample"] == ()
    assert kinds["visual_patch"] == ("image", "video")
    assert all(kinds[axis] == (axis.split("_")[0],) for axis in AXES if axis.startswith(("image", "video", "audio")))


def test_every_axis_knows_its_unit() -> None:
    units = {axis: Field(axis=axis).unit for axis in AXES}
    assert units["image"] == ""
    assert units["image_patch"] == units["visual_patch"] == "patch"
    assert (units["video_run"], units["image_group"]) == ("run", "group")


def test_an_unknown_axis_is_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean 'image_patch'"):
        Field(axis="image_patches")  # type: ignore[arg-type]
