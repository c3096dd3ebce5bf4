"""Talks with media, and what transformers makes of one by itself: the truth the contract compares with."""

from __future__ import annotations

import io
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import soundfile
import torch
from PIL import Image

from lading.encode import Encoder
from lading.loader import ProcessorFacts
from lading.records import Conversation, MediaPart, Message, SampleKey, TextPart
from lading.toy.corpus import draw_clip
from lading.verify.alone import own_inputs


def picture(width: int, height: int, colour: str) -> MediaPart:
    return MediaPart(kind="image", reference=Image.new("RGB", (width, height), colour))


def make_talk(index: int, *messages: tuple[str, tuple[object, ...]]) -> Conversation:
    turns = tuple(
        Message(
            role=role,  # type: ignore[arg-type]
            parts=tuple(TextPart(text=part) if isinstance(part, str) else part for part in parts),  # type: ignore[misc]
        )
        for role, parts in messages
    )
    return Conversation(key=SampleKey(index=index, source="contract", where=f"talk {index}"), messages=turns)


@cache
def sound_bytes(seconds: float) -> bytes:
    buffer = io.BytesIO()
    samples = np.sin(np.arange(int(16_000 * seconds)) / 9).astype(np.float32) * 0.3
    soundfile.write(buffer, samples, 16_000, format="WAV")
    return buffer.getvalue()


@cache
def clip_bytes(frames: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.mp4"
        draw_clip(path, "red", "circle", frames=frames)
        return path.read_bytes()


def own_output(facts: ProcessorFacts, talk: Conversation) -> dict[str, torch.Tensor]:
    """What transformers makes of a talk by itself, from the media to the tensors."""
    return own_inputs(facts, talk, Encoder(facts=facts).footprints(talk))
