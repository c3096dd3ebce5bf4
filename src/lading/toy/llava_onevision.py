"""Toy LLaVA-OneVision: tiles of 28 pixels, four tokens each."""

from __future__ import annotations

from typing import Any

from lading.toy.parts import chat_template, decoder, encoder, train_tokenizer

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<image>", "<video>")
CHAT_TEMPLATE = chat_template(marks={"image": "<image>\n", "video": "<video>\n"})
TILE = 28
GRIDS = [[TILE * rows, TILE * columns] for rows in (1, 2, 3) for columns in (1, 2, 3)]


def llava_onevision_processor() -> Any:
    from transformers import LlavaOnevisionProcessor
    from transformers.models.llava_onevision.image_processing_llava_onevision import LlavaOnevisionImageProcessor
    from transformers.models.llava_onevision.video_processing_llava_onevision import LlavaOnevisionVideoProcessor

    side = {"height": TILE, "width": TILE}
    return LlavaOnevisionProcessor(
        image_processor=LlavaOnevisionImageProcessor(size=side, image_grid_pinpoints=GRIDS),
        tokenizer=train_tokenizer(SPECIAL_TOKENS, pad="<|endoftext|>", end="<|im_end|>"),
        video_processor=LlavaOnevisionVideoProcessor(size=side),
        num_image_tokens=4,
        vision_feature_select_strategy="full",
        chat_template=CHAT_TEMPLATE,
    )


def llava_onevision_model(processor: Any) -> Any:
    from transformers import LlavaOnevisionConfig, LlavaOnevisionForConditionalGeneration

    tokenizer = processor.tokenizer
    token = tokenizer.convert_tokens_to_ids
    tile = processor.image_processor.size["height"]
    config = LlavaOnevisionConfig(
        text_config=decoder(tokenizer, model_type="qwen2"),
        vision_config=encoder(model_type="siglip_vision_model", image_size=tile, patch_size=14, vision_use_head=False),
        image_token_index=token("<image>"),
        video_token_index=token("<video>"),
        image_grid_pinpoints=processor.image_processor.image_grid_pinpoints,
    )
    return LlavaOnevisionForConditionalGeneration(config)
