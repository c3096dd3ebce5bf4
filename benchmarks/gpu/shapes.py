"""The shapes of model that are trained, with random weights, and the processor that fits them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """The numbers of a Qwen2.5-VL. Law: what is counted in `flops` is built from these and nothing else."""

    hidden: int
    layers: int
    heads: int
    key_heads: int
    head_size: int
    between: int
    vocabulary: int
    vision_hidden: int
    vision_layers: int
    vision_heads: int
    vision_between: int
    full_layers: tuple[int, ...]
    rope_sections: tuple[int, int, int]
    window: int = 112
    patch: int = 14
    merge: int = 2
    frames: int = 2
    tile_tokens: int = 256
    """Visual tokens of the smallest picture of the corpus; others are some times as large."""


SHAPES = {
    "3b": Shape(
        hidden=2048,
        layers=36,
        heads=16,
        key_heads=2,
        head_size=128,
        between=11008,
        vocabulary=151936,
        vision_hidden=1280,
        vision_layers=32,
        vision_heads=16,
        vision_between=3420,
        full_layers=(7, 15, 23, 31),
        rope_sections=(16, 24, 24),
    ),
    "tiny": Shape(
        hidden=64,
        layers=2,
        heads=4,
        key_heads=2,
        head_size=16,
        between=128,
        vocabulary=1024,
        vision_hidden=32,
        vision_layers=2,
        vision_heads=2,
        vision_between=48,
        full_layers=(1,),
        rope_sections=(2, 3, 3),
        tile_tokens=16,
    ),
}


def make_processor() -> Any:
    """The toy's processor and tokenizer with the real one's picture sizes: up to 1280 visual tokens."""
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor

    from lading.toy.qwen import qwen2_5_vl_processor

    processor = qwen2_5_vl_processor()
    processor.image_processor = Qwen2VLImageProcessor(size={"shortest_edge": 56 * 56, "longest_edge": 1280 * 28 * 28})
    return processor


def make_model(shape: Shape, tokenizer: Any, device: str, dtype: torch.dtype) -> Any:
    """transformers' own class with random weights, made where it is used."""
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    token = tokenizer.convert_tokens_to_ids
    config = Qwen2_5_VLConfig(
        text_config={
            "hidden_size": shape.hidden,
            "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads,
            "num_key_value_heads": shape.key_heads,
            "intermediate_size": shape.between,
            "vocab_size": shape.vocabulary,
            "max_position_embeddings": 32768,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e6,
                "mrope_section": list(shape.rope_sections),
            },
            "tie_word_embeddings": True,
            "bos_token_id": None,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
        },
        vision_config={
            "depth": shape.vision_layers,
            "hidden_size": shape.vision_hidden,
            "intermediate_size": shape.vision_between,
            "num_heads": shape.vision_heads,
            "out_hidden_size": shape.hidden,
            "fullatt_block_indexes": list(shape.full_layers),
            "window_size": shape.window,
            "patch_size": shape.patch,
            "spatial_merge_size": shape.merge,
            "temporal_patch_size": shape.frames,
        },
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    with torch.device(device):
        return Qwen2_5_VLForConditionalGeneration._from_config(config, dtype=dtype)
