import pytest
import torch

from lading.errors import ConfigError
from lading.fields import IGNORE_INDEX
from lading.loader import Samples
from lading.packing import append_untrained, build_pack
from lading.records import Encoded


def test_a_pack_needs_a_document(toy_samples: Samples) -> None:
    with pytest.raises(ConfigError, match="without documents"):
        build_pack([], fields=toy_samples.facts.family.table)


def test_an_untrained_document_stands_behind_and_teaches_nothing(toy_samples: Samples) -> None:
    facts = toy_samples.facts
    first, second = toy_samples.encode(50), toy_samples.encode(0)
    assert isinstance(first, Encoded)
    assert isinstance(second, Encoded)
    pack = build_pack([first], fields=facts.family.table, three_way=facts.three_way)
    longer = append_untrained(pack, second, fields=facts.family.table, three_way=facts.three_way)
    tokens = first.document.tokens
    assert longer.length == tokens + second.document.tokens
    assert torch.equal(longer.tensors["labels"][:tokens], pack.tensors["labels"])
    assert (longer.tensors["labels"][tokens:] == IGNORE_INDEX).all()
    assert longer.tensors["document_ids"][tokens:].unique().tolist() == [2]
    assert "pixel_values" in longer.tensors
