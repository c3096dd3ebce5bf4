"""Toy Gemma 4: at most sixteen tokens a picture; one sliding layer and one full."""

from __future__ import annotations

from typing import Any

from lading.toy.shapes import decoder, encoder
from lading.toy.templates import chat_template
from lading.toy.tokenizer import train_tokenizer

SPECIAL_TOKENS = (
    "<pad>",
    "<eos>",
    "<bos>",
    "<|turn>",
    "<turn|>",
    "<|channel>",
    "<channel|>",
    "<|image>",
    "<image|>",
    "<|image|>",
    "<|audio>",
    "<audio|>",
    "<|audio|>",
    "<|video|>",
)
CHAT_TEMPLATE = chat_template(
    first="<bos>",
    opening="<|turn>{role}\n",
    closing="<turn|>\n",
    marks={kind: f"<|{kind}|>" for kind in ("image", "video", "audio")},
    names={"assistant": "model"},
)


def make_processor() -> Any:
    """transformers' `Gemma4Processor` over a small tokenizer."""
    from transformers import Gemma4Processor
    from transformers.models.gemma4.feature_extraction_gemma4 import Gemma4AudioFeatureExtractor
    from transformers.models.gemma4.image_processing_gemma4 import Gemma4ImageProcessor
    from transformers.models.gemma4.video_processing_gemma4 import Gemma4VideoProcessor

    tokenizer = train_tokenizer(
        SPECIAL_TOKENS,
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
        chat_template=CHAT_TEMPLATE,
    )


def make_model(processor: Any) -> Any:
    """transformers' `Gemma4ForConditionalGeneration` with two layers each for text and vision."""
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
