"""Toy Kimi-VL: its real classes are remote code, so Kimi K2.5's stand in for them under their names."""

from __future__ import annotations

from typing import Any

from lading.toy import kimi_k25
from lading.toy.templates import chat_template

CHAT_TEMPLATE = chat_template(
    opening="<|im_{role}|>{role}<|im_middle|>",
    closing="<|im_end|>",
    marks={"image": "<|media_begin|>image<|media_content|><|media_pad|><|media_end|>"},
    default_system=True,
)


def make_processor() -> Any:
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

    own = kimi_k25.make_processor()
    return KimiVLProcessor(
        image_processor=KimiVLImageProcessor(max_patches=128),
        tokenizer=own.tokenizer,
        video_processor=own.video_processor,
        chat_template=CHAT_TEMPLATE,
    )


def make_model(processor: Any) -> Any:
    """Kimi K2.5's model, small, that takes grids without a depth."""
    from transformers import Kimi_K25ForConditionalGeneration

    class KimiVLForConditionalGeneration(Kimi_K25ForConditionalGeneration):  # type: ignore[misc]  # as above
        def forward(self, *values: Any, image_grid_hws: Any = None, **inputs: Any) -> Any:
            if image_grid_hws is not None:
                depth = image_grid_hws.new_ones(len(image_grid_hws), 1)
                inputs["image_grid_thw"] = image_grid_hws.new_tensor([[1, 0, 0]]) * depth
                inputs["image_grid_thw"][:, 1:] = image_grid_hws
            return super().forward(*values, **inputs)

    return KimiVLForConditionalGeneration(kimi_k25.make_model(processor).config)
