"""Toy InternVL: tiles of 56 pixels, four tokens each."""

from __future__ import annotations

from typing import Any

from lading.toy.parts import chat_template, decoder, encoder, train_tokenizer

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<img>", "</img>", "<IMG_CONTEXT>", "<video>")
CHAT_TEMPLATE = chat_template(marks={"image": "<IMG_CONTEXT>\n", "video": "<video>\n"})
TILE = 56


def internvl_processor() -> Any:
    from transformers import InternVLProcessor
    from transformers.models.got_ocr2.image_processing_got_ocr2 import GotOcr2ImageProcessor
    from transformers.models.internvl.video_processing_internvl import InternVLVideoProcessor

    tokenizer = train_tokenizer(
        SPECIAL_TOKENS,
        pad="<|endoftext|>",
        end="<|im_end|>",
        start_image_token="<img>",
        end_image_token="</img>",
        context_image_token="<IMG_CONTEXT>",
        video_token="<video>",
    )
    side = {"height": TILE, "width": TILE}
    return InternVLProcessor(
        image_processor=GotOcr2ImageProcessor(size=side, min_patches=1, max_patches=4),
        tokenizer=tokenizer,
        video_processor=InternVLVideoProcessor(size=side),
        image_seq_length=4,
        chat_template=CHAT_TEMPLATE,
    )


def internvl_model(processor: Any) -> Any:
    from transformers import InternVLConfig, InternVLForConditionalGeneration

    tokenizer = processor.tokenizer
    tile = processor.image_processor.size["height"]
    config = InternVLConfig(
        text_config=decoder(tokenizer, model_type="qwen2"),
        vision_config=encoder(image_size=(tile, tile), patch_size=(14, 14)),
        image_token_id=tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=processor.image_seq_length,
        tie_word_embeddings=False,
    )
    return InternVLForConditionalGeneration(config)
