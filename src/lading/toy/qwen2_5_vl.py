"""Toy Qwen2.5-VL: the real processor and model classes, the real special tokens, small numbers."""

from __future__ import annotations

from typing import Any

from lading.toy.shapes import decoder
from lading.toy.templates import chat_template
from lading.toy.tokenizer import train_tokenizer

SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)

CHAT_TEMPLATE = chat_template(
    marks={kind: f"<|vision_start|><|{kind}_pad|><|vision_end|>" for kind in ("image", "video")}, default_system=True
)

PIXELS = {"shortest_edge": 4 * 28 * 28, "longest_edge": 32 * 28 * 28}


def make_processor() -> Any:
    """transformers' `Qwen2_5_VLProcessor` over a small tokenizer; pictures are at most 32 tokens."""
    from transformers import Qwen2_5_VLProcessor
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
    from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor

    return Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(size=dict(PIXELS)),
        tokenizer=train_tokenizer(SPECIAL_TOKENS, pad="<|endoftext|>", end="<|im_end|>"),
        video_processor=Qwen2VLVideoProcessor(size=dict(PIXELS), max_frames=8, cap_pixels_per_frame=False),
        chat_template=CHAT_TEMPLATE,
    )


def make_model(processor: Any) -> Any:
    """transformers' `Qwen2_5_VLForConditionalGeneration` with two layers each for text and vision."""
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    tokenizer = processor.tokenizer
    token = tokenizer.convert_tokens_to_ids
    config = Qwen2_5_VLConfig(
        text_config=decoder(
            tokenizer,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]},
        ),
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": 64,
            "fullatt_block_indexes": [1],
            "window_size": 56,
            "tokens_per_second": 2,
        },
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
        tie_word_embeddings=False,
    )
    return Qwen2_5_VLForConditionalGeneration(config)
