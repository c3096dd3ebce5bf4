"""Several samples opened together are what each of them is alone."""

from pathlib import Path

import pytest
import torch

from lading import toy
from lading.encode import Encoder
from lading.errors import ExactnessError
from lading.loader import Samples
from lading.records import Dropped, Encoded
from lading.sources import open_corpus


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """A toy corpus in which one of the pictures is cut off: its size is known, its pixels are not."""
    folder: Path = tmp_path_factory.mktemp("corpus")
    meta = toy.write_corpus(folder)
    broken = min(folder.rglob("*.png"))
    broken.write_bytes(broken.read_bytes()[: broken.stat().st_size * 2 // 3])
    return Samples(corpus=open_corpus(meta), encoder=Encoder.of("toy:qwen2_5_vl"))


def same(one: Encoded | Dropped, other: Encoded | Dropped) -> bool:
    if isinstance(one, Dropped) or isinstance(other, Dropped):
        return one == other
    equal = [torch.equal(one.tensors[name], other.tensors[name]) for name in one.tensors]
    return one.document == other.document and one.tensors.keys() == other.tensors.keys() and all(equal)


def test_together_as_alone(samples: Samples) -> None:
    numbers = list(range(len(samples)))
    together = samples.encode_all(numbers)
    alone = [samples.encode(number) for number in numbers]
    assert [same(*pair) for pair in zip(together, alone, strict=True)] == [True] * len(numbers)
    dropped = [own for own in together if isinstance(own, Dropped)]
    assert dropped
    assert {own.reason for own in dropped} == {"corrupt_media"}
    assert len(dropped) < len(numbers) // 2, "and takes none of the others with it"


def test_a_length_other_than_the_counted_is_an_error(samples: Samples) -> None:
    counted = [len(own.ids) for own in samples.tokenised([1, 2]) if not isinstance(own, Dropped)]
    assert len(samples.encode_all([1, 2], counted=counted)) == 2
    with pytest.raises(ExactnessError, match=f"{counted[1]} tokens of"):
        samples.encode_all([1, 2], counted=[counted[0], counted[1] + 1])


def test_none_are_asked_for(samples: Samples) -> None:
    assert samples.encode_all([]) == []
