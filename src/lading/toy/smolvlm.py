"""Toy SmolVLM (Idefics 3): tiles of 56 pixels, four tokens each."""

from __future__ import annotations

import math
from typing import Any

from lading.toy.parts import chat_template, decoder, encoder, train_tokenizer

ROWS = range(1, 7)
SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<end_of_utterance>",
    "<image>",
    "<fake_token_around_image>",
    "<global-img>",
    *(f"<row_{row}_col_{column}>" for row in ROWS for column in ROWS),
)
CHAT_TEMPLATE = chat_template(
    first="<|im_start|>",
    opening="{role}:",
    closing="<end_of_utterance>\n",
    marks={"image": "<image>"},
    names={"system": "System", "user": "User", "assistant": "Assistant"},
)
TILE = 56


def smolvlm_processor() -> Any:
    from transformers import Idefics3Processor
    from transformers.models.idefics3.image_processing_idefics3 import Idefics3ImageProcessor

    tokenizer = train_tokenizer(
        SPECIAL_TOKENS,
        pad="<|endoftext|>",
        end="<end_of_utterance>",
        first="<|im_start|>",
        image_token="<image>",
        fake_image_token="<fake_token_around_image>",
        global_image_token="<global-img>",
    )
    return Idefics3Processor(
        image_processor=Idefics3ImageProcessor(size={"longest_edge": 2 * TILE}, max_image_size={"longest_edge": TILE}),
        tokenizer=tokenizer,
        image_seq_len=4,
        chat_template=CHAT_TEMPLATE,
    )


def smolvlm_model(processor: Any) -> Any:
    from transformers import Idefics3Config, Idefics3ForConditionalGeneration

    tokenizer = processor.tokenizer
    tile = processor.image_processor.max_image_size["longest_edge"]
    # A tile is this many tokens high and wide, each of them two patches by two, however large that makes a patch.
    tokens = math.isqrt(processor.image_seq_len)
    config = Idefics3Config(
        text_config=decoder(tokenizer, model_type="llama"),
        vision_config=encoder(image_size=tile, patch_size=tile // tokens // 2),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
    )
    return Idefics3ForConditionalGeneration(config)
