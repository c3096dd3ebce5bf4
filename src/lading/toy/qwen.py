"""Toy Qwen2.5-VL, Qwen3-VL and Qwen3-Omni (the thinker), with the real special tokens.

Pictures are at most 32 tokens, those of Qwen3 at most 24.
"""

from __future__ import annotations

from typing import Any

from lading.toy.parts import chat_template, decoder, train_tokenizer

VISION_TOKENS = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
)
MARKS = {kind: f"<|vision_start|><|{kind}_pad|><|vision_end|>" for kind in ("image", "video")}
QWEN2_5_SIZE = {"shortest_edge": 4 * 28 * 28, "longest_edge": 32 * 28 * 28}
QWEN3_SIZE = {"shortest_edge": 4 * 32 * 32, "longest_edge": 24 * 32 * 32}

VISION = {"depth": 2, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "out_hidden_size": 64}
QWEN3_VISION = {**VISION, "num_position_embeddings": 64, "deepstack_visual_indexes": [0, 1]}
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
QWEN3_ROPE = {**ROPE, "mrope_section": [4, 2, 2], "mrope_interleaved": True}


def qwen2_5_vl_processor() -> Any:
    from transformers import Qwen2_5_VLProcessor
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
    from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor

    return Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(size=dict(QWEN2_5_SIZE)),
        tokenizer=train_tokenizer(VISION_TOKENS, pad="<|endoftext|>", end="<|im_end|>"),
        video_processor=Qwen2VLVideoProcessor(size=dict(QWEN2_5_SIZE), max_frames=8, cap_pixels_per_frame=False),
        chat_template=chat_template(marks=MARKS, default_system=True),
    )


def qwen2_5_vl_model(processor: Any) -> Any:
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    config = Qwen2_5_VLConfig(
        text_config=decoder(processor.tokenizer, rope_parameters={**ROPE, "mrope_section": [2, 3, 3]}),
        vision_config={**VISION, "fullatt_block_indexes": [1], "window_size": 56, "tokens_per_second": 2},
        **_token_ids(processor),
        tie_word_embeddings=False,
    )
    return Qwen2_5_VLForConditionalGeneration(config)


def _token_ids(processor: Any) -> dict[str, int]:
    token = processor.tokenizer.convert_tokens_to_ids
    return {
        "image_token_id": token("<|image_pad|>"),
        "video_token_id": token("<|video_pad|>"),
        "vision_start_token_id": token("<|vision_start|>"),
        "vision_end_token_id": token("<|vision_end|>"),
    }


def qwen3_vl_processor() -> Any:
    from transformers import Qwen3VLProcessor
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
    from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

    return Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(size=dict(QWEN3_SIZE), patch_size=16),
        tokenizer=train_tokenizer(VISION_TOKENS, pad="<|endoftext|>", end="<|im_end|>"),
        video_processor=Qwen3VLVideoProcessor(
            size={"shortest_edge": 4096, "longest_edge": 8 * 16 * 32 * 32}, max_frames=8, cap_pixels_per_frame=False
        ),
        chat_template=chat_template(marks=MARKS),
    )


def qwen3_vl_model(processor: Any) -> Any:
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    config = Qwen3VLConfig(
        text_config=decoder(processor.tokenizer, rope_parameters=dict(QWEN3_ROPE)),
        vision_config=dict(QWEN3_VISION),
        **_token_ids(processor),
    )
    return Qwen3VLForConditionalGeneration(config)


def qwen3_omni_processor() -> Any:
    from transformers import Qwen3OmniMoeProcessor, WhisperFeatureExtractor
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
    from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor

    tokenizer = train_tokenizer(
        (*VISION_TOKENS, "<|audio_start|>", "<|audio_end|>", "<|audio_pad|>"),
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
        image_processor=Qwen2VLImageProcessor(size=dict(QWEN3_SIZE), patch_size=16),
        video_processor=Qwen2VLVideoProcessor(patch_size=16, max_frames=4, cap_pixels_per_frame=False),
        feature_extractor=WhisperFeatureExtractor(feature_size=16),
        tokenizer=tokenizer,
        chat_template=chat_template(marks={**MARKS, "audio": "<|audio_start|><|audio_pad|><|audio_end|>"}),
    )


def qwen3_omni_model(processor: Any) -> Any:
    from transformers import Qwen3OmniMoeThinkerConfig, Qwen3OmniMoeThinkerForConditionalGeneration

    token = processor.tokenizer.convert_tokens_to_ids
    ids = {name: number for name, number in _token_ids(processor).items() if name != "vision_end_token_id"}
    config = Qwen3OmniMoeThinkerConfig(
        text_config=decoder(
            processor.tokenizer,
            rope_parameters=dict(QWEN3_ROPE),
            moe_intermediate_size=32,
            num_experts=4,
            num_experts_per_tok=2,
        ),
        vision_config=dict(QWEN3_VISION),
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
        **ids,
        audio_token_id=token("<|audio_pad|>"),
        audio_start_token_id=token("<|audio_start|>"),
    )
    return Qwen3OmniMoeThinkerForConditionalGeneration(config)
