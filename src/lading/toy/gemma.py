"""Toy Gemma 3 (pictures of 56 pixels, four tokens each) and Gemma 4: one sliding layer and one full."""

from __future__ import annotations

from typing import Any

from lading.toy.parts import chat_template, decoder, encoder, train_tokenizer

GEMMA3_TOKENS = (
    *("<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>"),
    *("<start_of_image>", "<end_of_image>", "<image_soft_token>"),
)
GEMMA3_TEMPLATE = chat_template(
    first="<bos>",
    opening="<start_of_turn>{role}\n",
    closing="<end_of_turn>\n",
    marks={"image": "<start_of_image>"},
    names={"assistant": "model"},
    merged_system=True,
)


def gemma3_processor() -> Any:
    from transformers import Gemma3Processor
    from transformers.models.gemma3.image_processing_gemma3 import Gemma3ImageProcessor

    tokenizer = train_tokenizer(
        GEMMA3_TOKENS,
        pad="<pad>",
        end="<eos>",
        first="<bos>",
        image_token="<image_soft_token>",
        boi_token="<start_of_image>",
        eoi_token="<end_of_image>",
    )
    return Gemma3Processor(
        image_processor=Gemma3ImageProcessor(size={"height": 56, "width": 56}),
        tokenizer=tokenizer,
        image_seq_length=4,
        chat_template=GEMMA3_TEMPLATE,
    )


def gemma3_model(processor: Any) -> Any:
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration

    tokenizer = processor.tokenizer
    token = tokenizer.convert_tokens_to_ids
    side = processor.image_processor.size["height"]
    config = Gemma3Config(
        text_config=decoder(
            tokenizer,
            sliding_window=32,
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


GEMMA4_TOKENS = (
    *("<pad>", "<eos>", "<bos>", "<|turn>", "<turn|>", "<|channel>", "<channel|>"),
    *("<|image>", "<image|>", "<|image|>", "<|audio>", "<audio|>", "<|audio|>", "<|video|>"),
)
GEMMA4_TEMPLATE = chat_template(
    first="<bos>",
    opening="<|turn>{role}\n",
    closing="<turn|>\n",
    marks={kind: f"<|{kind}|>" for kind in ("image", "video", "audio")},
    names={"assistant": "model"},
)


def gemma4_processor() -> Any:
    from transformers import Gemma4Processor
    from transformers.models.gemma4.feature_extraction_gemma4 import Gemma4AudioFeatureExtractor
    from transformers.models.gemma4.image_processing_gemma4 import Gemma4ImageProcessor
    from transformers.models.gemma4.video_processing_gemma4 import Gemma4VideoProcessor

    tokenizer = train_tokenizer(
        GEMMA4_TOKENS,
        pad="<pad>",
        end="<eos>",
        first="<bos>",
        image_token="<|image|>",
        boi_token="<|image>",
        eoi_token="<image|>",
        video_token="<|video|>",
        audio_token="<|audio|>",
        boa_token="<|audio>",
        eoa_token="<audio|>",
    )
    return Gemma4Processor(
        feature_extractor=Gemma4AudioFeatureExtractor(),
        image_processor=Gemma4ImageProcessor(max_soft_tokens=70),
        tokenizer=tokenizer,
        video_processor=Gemma4VideoProcessor(max_soft_tokens=70, num_frames=4),
        image_seq_length=70,
        chat_template=GEMMA4_TEMPLATE,
    )


def gemma4_model(processor: Any) -> Any:
    from transformers import Gemma4Config, Gemma4ForConditionalGeneration

    tokenizer = processor.tokenizer
    token = tokenizer.convert_tokens_to_ids
    config = Gemma4Config(
        text_config=decoder(
            tokenizer,
            sliding_window=96,
            layer_types=["sliding_attention", "full_attention"],
            vocab_size_per_layer_input=len(tokenizer),
            hidden_size_per_layer_input=0,
            use_bidirectional_attention="vision",
        ),
        vision_config=encoder(
            num_key_value_heads=2, head_dim=16, patch_size=16, pooling_kernel_size=3, position_embedding_size=256
        ),
        audio_config=None,
        image_token_id=token("<|image|>"),
        boi_token_id=token("<|image>"),
        eoi_token_id=token("<image|>"),
        video_token_id=token("<|video|>"),
        audio_token_id=token("<|audio|>"),
    )
    return Gemma4ForConditionalGeneration(config)
