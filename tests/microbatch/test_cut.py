import pytest
import torch

from lading.errors import ConfigError
from lading.loader import Samples
from lading.packing import build_pack, collate_packs
from lading.records import Batch, Encoded, Pack


@pytest.fixture(scope="module")
def packs(toy_samples: Samples) -> list[Pack]:
    """Four rows with uneven media: an album of several pictures, one picture, none, a clip."""
    facts = toy_samples.facts
    rows = ((25, 26), (0,), (50, 51), (37,))
    made = []
    for number, row in enumerate(rows):
        encoded = [toy_samples.encode(index) for index in row]
        good = [sample for sample in encoded if isinstance(sample, Encoded)]
        made.append(build_pack(good, fields=facts.family.table, three_way=facts.three_way, number=number))
    return made


@pytest.fixture(scope="module")
def batch(toy_samples: Samples, packs: list[Pack]) -> Batch:
    return collate_packs(packs, fields=toy_samples.facts.family.table, pad_token=toy_samples.facts.pad_token)


@pytest.mark.parametrize("pieces", [1, 2, 3, 4])
def test_media_go_with_their_rows(toy_samples: Samples, packs: list[Pack], batch: Batch, pieces: int) -> None:
    from lading.microbatch import cut_batch

    fields = toy_samples.facts.family.table
    cut = cut_batch(batch, pieces, fields=fields)
    assert sum((piece.rows for piece in cut), ()) == batch.rows
    done = 0
    for piece in cut:
        own = packs[done : done + len(piece.rows)]
        width = batch.tensor("input_ids").shape[1]
        expected = collate_packs(own, fields=fields, pad_token=toy_samples.facts.pad_token, length=width)
        assert set(piece.inputs) == set(expected.inputs)
        for name, value in expected.inputs.items():
            found = piece.inputs[name]
            same = torch.equal(found, value) if isinstance(value, torch.Tensor) else found is value  # type: ignore[arg-type]
            assert same, name
        done += len(piece.rows)


@pytest.mark.parametrize("pieces", [0, 5, -1])
def test_impossible_numbers_are_refused(toy_samples: Samples, batch: Batch, pieces: int) -> None:
    from lading.microbatch import cut_batch

    with pytest.raises(ConfigError, match="wanted 1 to 4"):
        cut_batch(batch, pieces, fields=toy_samples.facts.family.table)


def test_masks_by_layer_are_cut_by_rows(toy_samples: Samples, batch: Batch) -> None:
    import dataclasses

    from lading.microbatch import cut_batch

    mask = torch.arange(4 * 9).reshape(4, 1, 3, 3)
    layered = dataclasses.replace(batch, inputs={**batch.inputs, "attention_mask": {"full": mask, "sliding": mask + 1}})
    cut = cut_batch(layered, 2, fields=toy_samples.facts.family.table)
    assert torch.equal(cut[1].inputs["attention_mask"]["sliding"], mask[2:] + 1)  # type: ignore[index,call-overload]
    assert torch.equal(layered.to("cpu")["attention_mask"]["full"], mask)  # type: ignore[index,call-overload]
