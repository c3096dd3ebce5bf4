"""Toy Kimi K2.5: small pictures as flat patches, a mixture-of-experts language model of two layers."""

from __future__ import annotations

from typing import Any

from lading.toy.shapes import decoder, encoder
from lading.toy.templates import chat_template
from lading.toy.tokenizer import train_tokenizer

SPECIAL_TOKENS = (
    "[PAD]",
    "[EOS]",
    "[BOS]",
    "<|im_system|>",
    "<|im_user|>",
    "<|im_assistant|>",
    "<|im_middle|>",
    "<|im_end|>",
    "<|media_begin|>",
    "<|media_content|>",
    "<|media_pad|>",
    "<|media_end|>",
    "<|kimi_k25_video_placeholder|>",
    "<think>",
    "</think>",
)
CHAT_TEMPLATE = chat_template(
    opening="<|im_{role}|>{role}<|im_middle|>",
    closing="<|im_end|>",
    marks={
        "image": "<|media_begin|>image<|media_content|><|media_pad|><|media_end|>\n",
        "video": "<|kimi_k25_video_placeholder|>\n",
    },
)


def make_processor() -> Any:
    """transformers' `Kimi_K25Processor` over a small tokenizer."""
    from transformers import Kimi_K25Processor
    from transformers.models.kimi_k25.image_processing_kimi_k25 import Kimi_K25ImageProcessor
    from transformers.models.kimi_k25.video_processing_kimi_k25 import Kimi_K25VideoProcessor

    return Kimi_K25Processor(
        image_processor=Kimi_K25ImageProcessor(max_patches=128),
        tokenizer=train_tokenizer(SPECIAL_TOKENS, pad="[PAD]", end="[EOS]", first="[BOS]"),
        video_processor=Kimi_K25VideoProcessor(max_patches=64),
        chat_template=CHAT_TEMPLATE,
    )


def make_model(processor: Any) -> Any:
    """transformers' `Kimi_K25ForConditionalGeneration` with two layers each for text and vision."""
    from transformers import Kimi_K25Config, Kimi_K25ForConditionalGeneration

    tokenizer = processor.tokenizer
    token = tokenizer.convert_tokens_to_ids
    config = Kimi_K25Config(
        text_config=decoder(
            tokenizer,
            model_type="deepseek_v3",
            head_dim=8,
            num_key_value_heads=4,
            moe_intermediate_size=32,
            n_routed_experts=4,
            n_group=1,
            topk_group=1,
            num_experts_per_tok=2,
            first_k_dense_replace=1,
            kv_lora_rank=16,
            q_lora_rank=16,
            qk_rope_head_dim=8,
            qk_nope_head_dim=8,
            v_head_dim=16,
        ),
        vision_config=encoder(pos_emb_height=16, pos_emb_width=16),
        projection_hidden_size=32,
        image_token_id=token("<|media_pad|>"),
        video_token_id=token("<|kimi_k25_video_placeholder|>"),
        vision_start_token_id=token("<|media_begin|>"),
        vision_end_token_id=token("<|media_end|>"),
        tie_word_embeddings=False,
    )
    return Kimi_K25ForConditionalGeneration(config)
