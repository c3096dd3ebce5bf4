import json
from pathlib import Path

import pytest

from lading import families, toy
from lading.errors import UnknownName


def test_every_family_of_our_own_has_a_toy() -> None:
    assert toy.recipes() == families.BUILT_IN


@pytest.mark.parametrize("name", toy.recipes())
def test_a_toy_is_of_the_familys_own_classes(name: str) -> None:
    family = families.find(name)
    assert type(toy.processor(name)).__name__ in family.processors
    assert type(toy.model(name)).__name__ in family.models


@pytest.mark.parametrize("name", [name for name in toy.recipes() if name != "kimi_vl"])  # its class is made on the spot
def test_a_toy_processor_survives_the_disk(name: str, tmp_path: Path) -> None:
    from transformers import AutoProcessor

    processor = toy.processor(name)
    processor.save_pretrained(tmp_path)
    loaded = AutoProcessor.from_pretrained(tmp_path)
    text = "<|im_start|>user\nAda saw 3 sacks of grain ⚓<|im_end|>"
    assert type(loaded) is type(processor)
    assert loaded.tokenizer(text)["input_ids"] == processor.tokenizer(text)["input_ids"]
    assert processor.tokenizer.decode(processor.tokenizer(text)["input_ids"]) == text


def test_the_same_arguments_write_the_same_corpus(tmp_path: Path) -> None:
    toy.write_corpus(tmp_path / "a", samples=20)
    toy.write_corpus(tmp_path / "b", samples=20)
    for path in sorted((tmp_path / "a").rglob("*")):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()
    assert set(json.loads((tmp_path / "a" / "meta.json").read_text())) == {"shapes", "albums", "clips", "talks"}


def test_models_are_drawn_from_their_seed() -> None:
    one, same, other = (toy.model("qwen2_5_vl", seed=seed).lm_head.weight.sum().item() for seed in (0, 0, 1))
    assert one == same != other


def test_an_unknown_toy_is_named() -> None:
    with pytest.raises(UnknownName, match=r"toy 'qwen2_5_v'; .*did you mean"):
        toy.processor("qwen2_5_v")
