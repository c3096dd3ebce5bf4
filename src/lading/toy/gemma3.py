"""Toy Gemma 3: pictures of 56 pixels, four tokens each; one sliding layer and one full."""

from __future__ import annotations

from typing import Any

from lading.toy.shapes import decoder, encoder
from lading.toy.templates import chat_template
from lading.toy.tokenizer import train_tokenizer

SPECIAL_TOKENS = (
    "<pad>",
    "<eos>",
    "<bos>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<start_of_image>",
    "<end_of_image>",
    "<image_soft_token>",
)
CHAT_TEMPLATE = chat_template(
    first="<bos>",
    opening="<start_of_turn>{role}\n",
    closing="<end_of_turn>\n",
    marks={"image": "<start_of_image>"},
    names={"assistant": "model"},
    merged_system=True,
)
SIDE = 56
WINDOW = 32


def make_processor() -> Any:
    """transformers' `Gemma3Processor` over a small tokenizer."""
    from transformers import Gemma3Processor
    from transformers.models.gemma3.image_processing_gemma3 import Gemma3ImageProcessor

    tokenizer = train_tokenizer(
        SPECIAL_TOKENS,
        pad="<pad>",
        end="<eos>",
        first="<bos>",
        image_token="<image_soft_token>",
        boi_token="<start_of_image>",
        eoi_token="<end_of_image>",
    )
    return Gemma3Processor(
        image_processor=Gemma3ImageProcessor(size={"height": SIDE, "width": SIDE}),
        tokenizer=tokenizer,
        image_seq_length=4,
        chat_template=CHAT_TEMPLATE,
    )


def make_model(processor: Any) -> Any:
    """transformers' `Gemma3ForConditionalGeneration` with two layers each for text and vision."""
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration

    tokenizer = processor.tokenizer
    token = tokenizer.convert_tokens_to_ids
    side = processor.image_processor.size["height"]
    config = Gemma3Config(
        text_config=decoder(
            tokenizer,
            sliding_window=WINDOW,
            layer_types=["sliding_attention", "full_attention"],
            query_pre_attn_scalar=16,
        ),
        vision_config=encoder(model_type="siglip_vision_model", image_size=side, patch_size=14, vision_use_head=False),
        mm_tokens_per_image=processor.image_seq_length,
        boi_token_index=token("<start_of_image>"),
        eoi_token_index=token("<end_of_image>"),
        image_token_index=token("<image_soft_token>"),
        tie_word_embeddings=False,
    )
    return Gemma3ForConditionalGeneration(config)
