"""Toy Step-3.7: a view of 56 pixels and crops of 28; one sliding layer and one full."""

from __future__ import annotations

from typing import Any

from lading.toy.parts import chat_template, decoder, encoder, train_tokenizer

SPECIAL_TOKENS = (
    *("<pad>", "<bos>", "<|im_start|>", "<|im_end|>"),
    *("<im_patch>", "<im_start>", "<im_end>", "<patch_start>", "<patch_end>", "<patch_newline>"),
)
CHAT_TEMPLATE = chat_template(first="<bos>", marks={"image": "<im_patch>"})


def step3p7_processor() -> Any:
    from transformers import Step3p7Processor
    from transformers.models.step3p7.image_processing_step3p7 import Step3p7ImageProcessor

    return Step3p7Processor(
        image_processor=Step3p7ImageProcessor(),
        tokenizer=train_tokenizer(SPECIAL_TOKENS, pad="<pad>", end="<|im_end|>", first="<bos>"),
        chat_template=CHAT_TEMPLATE,
    )


def step3p7_model(processor: Any) -> Any:
    from transformers import Step3p7Config, Step3p7ForConditionalGeneration

    tokenizer = processor.tokenizer
    config = Step3p7Config(
        text_config=decoder(
            tokenizer,
            num_local_experts=4,
            n_routed_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=32,
            share_expert_dim=32,
            sliding_window=32,
            layer_types=["sliding_attention", "full_attention"],
            mlp_layer_types=["dense", "sparse"],
        ),
        vision_config=encoder(),
        image_token_id=tokenizer.convert_tokens_to_ids("<im_patch>"),
    )
    return Step3p7ForConditionalGeneration(config)
