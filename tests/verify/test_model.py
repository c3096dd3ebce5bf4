"""A model is loaded by the class that its checkpoint names, whatever it takes besides pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from lading import toy
from lading.loader import read_processor
from lading.verify import verify
from lading.verify.model import load_model


def whole_omni(thinker: Any) -> Any:
    """The model around the toy, as it is published; one that does not speak, to keep it small."""
    from transformers import Qwen3OmniMoeConfig, Qwen3OmniMoeForConditionalGeneration

    config = Qwen3OmniMoeConfig(thinker_config=thinker.config.to_dict(), enable_audio_output=False)
    model = Qwen3OmniMoeForConditionalGeneration(config)
    model.thinker.load_state_dict(thinker.state_dict())
    return model


CHECKPOINTS = {
    "qwen2_5_vl": ("qwen2_5_vl", lambda model: model),
    "phi4_mm": ("phi4_mm", lambda model: model),
    "qwen3_omni, the thinker": ("qwen3_omni", lambda model: model),
    "qwen3_omni, the whole": ("qwen3_omni", whole_omni),
}


@pytest.mark.parametrize(("name", "around"), CHECKPOINTS.values(), ids=list(CHECKPOINTS))
def test_a_checkpoint_of_every_kind_is_loaded_and_fed(name: str, around: Any, tmp_path: Path) -> None:
    made = toy.model(name)
    around(made).save_pretrained(tmp_path / "model")
    loaded = load_model(str(tmp_path / "model"), read_processor(toy.processor(name)))
    assert type(loaded) is type(made)
    kept = made.state_dict()
    assert all(torch.equal(value.cpu(), kept[key]) for key, value in loaded.state_dict().items())
    meta = toy.write_corpus(tmp_path / "corpus", samples=10)
    found = verify(meta, f"toy:{name}", pack_size=1024, limit=4, model=str(tmp_path / "model"))
    assert found.holds, found.differences
    assert found.losses == found.documents >= 3
