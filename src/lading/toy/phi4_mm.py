"""Toy Phi-4-multimodal: the real processor and model classes, the real special tokens, small towers."""

from __future__ import annotations

from typing import Any

from lading.toy.parts import chat_template, decoder, encoder, train_tokenizer

SPECIAL_TOKENS = ("<|endoftext|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|image|>", "<|audio|>")
CHAT_TEMPLATE = chat_template(
    opening="<|{role}|>", closing="<|end|>", marks={"image": "<|image|>", "audio": "<|audio|>"}
)


def phi4_mm_processor() -> Any:
    """transformers' `Phi4MultimodalProcessor` over a small tokenizer. Its pictures have one size only."""
    from transformers import Phi4MultimodalProcessor
    from transformers.models.phi4_multimodal.feature_extraction_phi4_multimodal import Phi4MultimodalFeatureExtractor
    from transformers.models.phi4_multimodal.image_processing_phi4_multimodal import Phi4MultimodalImageProcessor

    tokenizer = train_tokenizer(
        SPECIAL_TOKENS, pad="<|endoftext|>", end="<|endoftext|>", image_token="<|image|>", audio_token="<|audio|>"
    )
    return Phi4MultimodalProcessor(
        image_processor=Phi4MultimodalImageProcessor(dynamic_hd=2),
        audio_processor=Phi4MultimodalFeatureExtractor(),
        tokenizer=tokenizer,
        chat_template=CHAT_TEMPLATE,
    )


def phi4_mm_model(processor: Any) -> Any:
    from transformers import Phi4MultimodalConfig, Phi4MultimodalForCausalLM

    tokenizer = processor.tokenizer
    token = tokenizer.convert_tokens_to_ids
    shape = decoder(tokenizer)
    del shape["head_dim"]
    config = Phi4MultimodalConfig(
        **shape,
        original_max_position_embeddings=32768,
        vision_config=encoder(num_hidden_layers=3, image_token_id=token("<|image|>")),
        audio_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_blocks": 2,
            "num_attention_heads": 2,
            "ext_pw_out_channel": 32,
            "depthwise_separable_out_channel": 32,
            "nemo_conv_channels": 32,
            "audio_token_id": token("<|audio|>"),
        },
    )
    return Phi4MultimodalForCausalLM(config)
