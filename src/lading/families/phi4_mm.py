"""Phi-4-multimodal: a view of the whole picture and crops of it; sounds as mel frames."""

from __future__ import annotations

from typing import Any

from lading.family import Family, Medium, Tower, TurnStyle, work
from lading.fields import Field
from lading.media.audio import samples_at
from lading.media.geometry.pictures import crop_grid, seen_in_crops
from lading.media.pixels import processor_tensors
from lading.media.probe import Answer, Probe
from lading.records import AudioSize, ImageSize, Size

WHOLE_TOKENS = 16 * 16 + 16
"""Tokens of the view of the whole, as the image processor has them: it does not reckon these from its sizes."""

IMAGE, AUDIO = "<|image|>", "<|audio|>"


def _pictures(processor: Any) -> Probe:
    """A view of the whole and crops; tokens of both, a token behind each row and one between them."""
    numbers = processor.image_processor

    def ask(sizes: tuple[Size, ...]) -> Answer:
        side, patch = numbers.size["height"], numbers.patch_size
        texts, rows = [], []
        for size in sizes:
            assert isinstance(size, ImageSize)
            grid = crop_grid(size.height, size.width, side=side, most=numbers.dynamic_hd)
            high, wide = seen_in_crops(size.height, size.width, grid, side=side, patch=patch)
            texts.append(IMAGE * (WHOLE_TOKENS + 1 + high * wide + high))
            rows.append(1 + grid[0] * grid[1])
        return texts, rows

    return Probe(kind="image", pad=IMAGE, ask=ask)


def _sounds(processor: Any) -> Probe:
    listener = processor.audio_processor

    def ask(sizes: tuple[Size, ...]) -> Answer:
        import numpy as np

        texts, rows = [], []
        for size in sizes:
            assert isinstance(size, AudioSize)
            silence = np.zeros(samples_at(size, listener.sampling_rate), dtype=np.float32)
            made = listener([silence], sampling_rate=listener.sampling_rate)
            texts.append(AUDIO * int(made["audio_embed_sizes"][0]))
            rows.append(int(made["audio_input_features"].shape[1]))
        return texts, rows

    return Probe(kind="audio", pad=AUDIO, ask=ask)


def _tensors(processor: Any, *sample: Any) -> dict[str, Any]:
    """A lone sound comes without a mask; beside a longer one in a pack it needs one."""
    import torch

    made = processor_tensors(processor, *sample, nested=False)
    features = made.get("audio_input_features")
    if features is not None:
        made.setdefault("audio_attention_mask", torch.ones(features.shape[:2], dtype=torch.bool))
    return made


FAMILY = Family(
    name="phi4_mm",
    title="Phi-4-multimodal",
    processors=("Phi4MultimodalProcessor",),
    models=("Phi4MultimodalForCausalLM",),
    turns=TurnStyle(opening="<|{role}|>", closing="<|end|>"),
    media={
        "image": Medium(mark=IMAGE, pad=IMAGE, geometry=_pictures),
        "audio": Medium(mark=AUDIO, pad=AUDIO, geometry=_sounds),
    },
    fields={
        "image_pixel_values": Field(axis="image", stretch=1),
        "image_sizes": Field(axis="image"),
        "image_attention_mask": Field(axis="image", stretch=1, pad=1),
        "audio_input_features": Field(axis="audio", stretch=1),
        "audio_embed_sizes": Field(axis="audio"),
        "audio_attention_mask": Field(axis="audio", stretch=1),
    },
    tensors=_tensors,
    # It asks whether there are pictures, and which position is the last, once for the whole batch.
    changed_by={"audio": "image"},
    short_context=4096,
    # 5.6B.
    work=work(
        Tower(hidden=3072, layers=32, feed_forward=8192, keys=1024, vocabulary=200064),
        Tower(hidden=1152, layers=27, feed_forward=4304, gated=False, tile=1024),
    ),
)
