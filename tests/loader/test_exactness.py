"""What a processor makes is compared with what was counted: one that changed its mind behind our back is found out."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lading import toy
from lading.encode import Encoder
from lading.errors import ExactnessError
from lading.loader import read_processor
from lading.records import Conversation, MediaPart, Message, SampleKey, TextPart

PICTURE = MediaPart(kind="image", reference=Image.new("RGB", (300, 200), "red"))
SOUND = MediaPart(kind="audio", reference=(np.zeros(16_000, dtype=np.float32), 16_000))


def settled(family: str, medium: MediaPart) -> tuple[Encoder, Any, Conversation]:
    """An encoder whose processor was read, the processor, and something to say."""
    processor = copy.deepcopy(toy.processor(family))
    # Without the byte path, the processor itself is asked for pixels.
    facts = replace(read_processor(processor), raw=None)
    talk = Conversation(
        key=SampleKey(index=0, source="s", where="w"),
        messages=(
            Message(role="user", parts=(medium, TextPart(text="What?"))),
            Message(role="assistant", parts=(TextPart(text="That."),)),
        ),
    )
    encoder = Encoder(facts=facts)
    encoder.encode(talk)
    return encoder, processor, talk


def test_another_grid() -> None:
    encoder, processor, talk = settled("qwen2_5_vl", PICTURE)
    processor.image_processor.size = {"shortest_edge": 4 * 28 * 28, "longest_edge": 6 * 28 * 28}
    with pytest.raises(ExactnessError, match=r"image grids \[\[.* from the processor; wanted \[\[.* as counted"):
        encoder.encode(talk)


def test_other_tokens() -> None:
    encoder, processor, talk = settled("internvl", PICTURE)
    processor.image_processor.max_patches = 1
    with pytest.raises(ExactnessError, match=r"\d+ tokens from the processor; wanted the same \d+ as counted"):
        encoder.encode(talk)


def test_another_length_of_sound() -> None:
    encoder, processor, talk = settled("qwen3_omni", SOUND)
    processor.feature_extractor.hop_length *= 2
    with pytest.raises(ExactnessError, match=r"\[\d+\] rows of audio from the processor; wanted \[\d+\], as counted"):
        encoder.encode(talk)
