"""Toy Qwen3-Omni (the thinker): the real processor and model classes, the real special tokens, small numbers."""

from __future__ import annotations

from typing import Any

from lading.toy.qwen2_5_vl import SPECIAL_TOKENS as VISION_TOKENS
from lading.toy.shapes import decoder
from lading.toy.templates import chat_template
from lading.toy.tokenizer import train_tokenizer

SPECIAL_TOKENS = (*VISION_TOKENS, "<|audio_start|>", "<|audio_end|>", "<|audio_pad|>")
CHAT_TEMPLATE = chat_template(
    marks={
        "image": "<|vision_start|><|image_pad|><|vision_end|>",
        "video": "<|vision_start|><|video_pad|><|vision_end|>",
        "audio": "<|audio_start|><|audio_pad|><|audio_end|>",
    }
)


def make_processor() -> Any:
    """transformers' `Qwen3OmniMoeProcessor` over a small tokenizer."""
    from transformers import Qwen3OmniMoeProcessor, WhisperFeatureExtractor
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
    from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor

    tokenizer = train_tokenizer(
        SPECIAL_TOKENS,
        pad="<|endoftext|>",
        end="<|im_end|>",
        image_token="<|image_pad|>",
        video_token="<|video_pad|>",
        audio_token="<|audio_pad|>",
        vision_bos_token="<|vision_start|>",
        vision_eos_token="<|vision_end|>",
        audio_bos_token="<|audio_start|>",
        audio_eos_token="<|audio_end|>",
    )
    return Qwen3OmniMoeProcessor(
        image_processor=Qwen2VLImageProcessor(
            size={"shortest_edge": 4 * 32 * 32, "longest_edge": 24 * 32 * 32}, patch_size=16
        ),
        video_processor=Qwen2VLVideoProcessor(patch_size=16, max_frames=4, cap_pixels_per_frame=False),
        feature_extractor=WhisperFeatureExtractor(feature_size=16),
        tokenizer=tokenizer,
        chat_template=CHAT_TEMPLATE,
    )


def make_model(processor: Any) -> Any:
    """transformers' `Qwen3OmniMoeThinkerForConditionalGeneration` with two layers each for text, vision and sound."""
    from transformers import Qwen3OmniMoeThinkerConfig, Qwen3OmniMoeThinkerForConditionalGeneration

    tokenizer = processor.tokenizer
    token = tokenizer.convert_tokens_to_ids
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    config = Qwen3OmniMoeThinkerConfig(
        text_config=decoder(
            tokenizer, rope_parameters=rope, moe_intermediate_size=32, num_experts=4, num_experts_per_tok=2
        ),
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": 64,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0, 1],
        },
        audio_config={
            "num_mel_bins": processor.feature_extractor.feature_size,
            "encoder_layers": 2,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 64,
            "d_model": 32,
            "output_dim": 64,
            "downsample_hidden_size": 16,
        },
        position_id_per_seconds=13,
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        audio_token_id=token("<|audio_pad|>"),
        audio_start_token_id=token("<|audio_start|>"),
        vision_start_token_id=token("<|vision_start|>"),
    )
    return Qwen3OmniMoeThinkerForConditionalGeneration(config)
