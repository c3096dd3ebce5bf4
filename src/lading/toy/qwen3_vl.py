"""Toy Qwen3-VL: the real processor and model classes, the real special tokens, small numbers."""

from __future__ import annotations

from typing import Any

from lading.toy.qwen2_5_vl import SPECIAL_TOKENS
from lading.toy.shapes import decoder
from lading.toy.templates import chat_template
from lading.toy.tokenizer import train_tokenizer

CHAT_TEMPLATE = chat_template(
    marks={kind: f"<|vision_start|><|{kind}_pad|><|vision_end|>" for kind in ("image", "video")}
)
PIXELS = {"shortest_edge": 4 * 32 * 32, "longest_edge": 24 * 32 * 32}


def make_processor() -> Any:
    """transformers' `Qwen3VLProcessor` over a small tokenizer."""
    from transformers import Qwen3VLProcessor
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
    from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

    return Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(size=dict(PIXELS), patch_size=16),
        tokenizer=train_tokenizer(SPECIAL_TOKENS, pad="<|endoftext|>", end="<|im_end|>"),
        video_processor=Qwen3VLVideoProcessor(
            size={"shortest_edge": 4096, "longest_edge": 8 * 16 * 32 * 32}, max_frames=8, cap_pixels_per_frame=False
        ),
        chat_template=CHAT_TEMPLATE,
    )


def make_model(processor: Any) -> Any:
    """transformers' `Qwen3VLForConditionalGeneration` with two layers each for text and vision."""
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    tokenizer = processor.tokenizer
    token = tokenizer.convert_tokens_to_ids
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    config = Qwen3VLConfig(
        text_config=decoder(tokenizer, rope_parameters=rope),
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": 64,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0, 1],
        },
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
    )
    return Qwen3VLForConditionalGeneration(config)
