"""Toy Kimi K2.5: flat patches, and a mixture of experts; and Kimi-VL.

The real classes of Kimi-VL are remote code: Kimi K2.5's stand in for them under their names.
"""

from __future__ import annotations

from typing import Any

from lading.toy.parts import chat_template, decoder, encoder, train_tokenizer

KIMI_K25_TOKENS = (
    *("[PAD]", "[EOS]", "[BOS]", "<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>", "<|im_end|>"),
    *(
        "<|media_begin|>",
        "<|media_content|>",
        "<|media_pad|>",
        "<|media_end|>",
        "<|kimi_k25_video_placeholder|>",
        "<think>",
        "</think>",
    ),
)
KIMI_K25_TEMPLATE = chat_template(
    opening="<|im_{role}|>{role}<|im_middle|>",
    closing="<|im_end|>",
    marks={
        "image": "<|media_begin|>image<|media_content|><|media_pad|><|media_end|>\n",
        "video": "<|kimi_k25_video_placeholder|>\n",
    },
)


def kimi_k25_processor() -> Any:
    from transformers import Kimi_K25Processor
    from transformers.models.kimi_k25.image_processing_kimi_k25 import Kimi_K25ImageProcessor
    from transformers.models.kimi_k25.video_processing_kimi_k25 import Kimi_K25VideoProcessor

    return Kimi_K25Processor(
        image_processor=Kimi_K25ImageProcessor(max_patches=128),
        tokenizer=train_tokenizer(KIMI_K25_TOKENS, pad="[PAD]", end="[EOS]", first="[BOS]"),
        video_processor=Kimi_K25VideoProcessor(max_patches=64),
        chat_template=KIMI_K25_TEMPLATE,
    )


def kimi_k25_model(processor: Any) -> Any:
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


KIMI_VL_TEMPLATE = chat_template(
    opening="<|im_{role}|>{role}<|im_middle|>",
    closing="<|im_end|>",
    marks={"image": "<|media_begin|>image<|media_content|><|media_pad|><|media_end|>"},
    default_system=True,
)


def kimi_vl_processor() -> Any:
    """A processor of the real one's name that gives grids as it does: height and width alone."""
    from transformers import Kimi_K25Processor
    from transformers.models.kimi_k25.image_processing_kimi_k25 import Kimi_K25ImageProcessor

    class KimiVLImageProcessor(Kimi_K25ImageProcessor):  # type: ignore[misc]  # transformers is not followed for types
        def __call__(self, images: Any, **options: Any) -> Any:
            made = super().__call__(images, **options)
            made["image_grid_hws"] = made.pop("image_grid_thw")[:, 1:]
            return made

    class KimiVLProcessor(Kimi_K25Processor):  # type: ignore[misc]  # transformers is not followed for types
        def replace_image_token(self, image_inputs: Any, image_idx: int, **options: Any) -> str:
            grid = image_inputs["image_grid_hws"][image_idx]
            return str(self.image_token * (int(grid.prod()) // self.image_processor.merge_size**2))

    own = kimi_k25_processor()
    return KimiVLProcessor(
        image_processor=KimiVLImageProcessor(max_patches=128),
        tokenizer=own.tokenizer,
        video_processor=own.video_processor,
        chat_template=KIMI_VL_TEMPLATE,
    )


def kimi_vl_model(processor: Any) -> Any:
    from transformers import Kimi_K25ForConditionalGeneration

    class KimiVLForConditionalGeneration(Kimi_K25ForConditionalGeneration):  # type: ignore[misc]  # as above
        def forward(self, *values: Any, image_grid_hws: Any = None, **inputs: Any) -> Any:
            if image_grid_hws is not None:
                depth = image_grid_hws.new_ones(len(image_grid_hws), 1)
                inputs["image_grid_thw"] = image_grid_hws.new_tensor([[1, 0, 0]]) * depth
                inputs["image_grid_thw"][:, 1:] = image_grid_hws
            return super().forward(*values, **inputs)

    return KimiVLForConditionalGeneration(kimi_k25_model(processor).config)
