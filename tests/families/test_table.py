import pytest

from lading import families
from lading.errors import UnknownName
from lading.family import Family


def test_names_and_files_agree() -> None:
    for family in families.all_families():
        assert families.find(family.name) is family
        for processor in family.processors:
            assert families.for_processor(processor) is family


def test_an_unknown_family_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'qwen2_5_vl'"):
        families.find("qwen2_5vl")


def test_a_field_of_an_undeclared_medium_is_refused() -> None:
    from lading.fields import Field

    good = families.find("qwen2_5_vl")
    with pytest.raises(AssertionError, match="no such medium"):
        Family(
            name="x", title="X", processors=(), models=(), turns=good.turns, media={},
            fields={"pixel_values": Field(axis="image_patch")}, tensors=good.tensors,
        )  # fmt: skip
