"""How the reference is used, where several rows use it in the same way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def load_processor(folder: Path) -> Any:
    """The same processor that ours reads."""
    from transformers import AutoProcessor

    return AutoProcessor.from_pretrained(folder)


def rope_index(processor: Any) -> Callable[..., Any]:
    """`get_rope_index` of a Qwen2.5-VL model, which packing needs for its three-way positions; no weights are made."""
    import torch
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLModel

    token = processor.tokenizer.convert_tokens_to_ids
    config = Qwen2_5_VLConfig(
        text_config={
            "num_hidden_layers": 1,
            "rope_parameters": {"rope_type": "default", "mrope_section": [16, 24, 24]},
        },
        vision_config={"depth": 1},
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
    )
    with torch.device("meta"):
        function: Callable[..., Any] = Qwen2_5_VLModel(config).get_rope_index
    return function


def tokenised(meta: Path, processor: Any) -> Any:
    """A corpus through its tokenising wrapper, without the placeholder images that it adds to text by default."""
    from nemo_automodel.components.datasets.vlm.datasets import PreTokenizedDatasetWrapper, make_meta_dataset

    return PreTokenizedDatasetWrapper(make_meta_dataset(str(meta)), processor, inject_fake_images=False)


def loader_maker(
    meta: Path, folder: Path, *, pack_size: int, workers: int, attention: str, three_way: bool
) -> Callable[[], Any]:
    """Its whole pipeline, put together by its own configuration classes when the result is called.

    What is not timed on either side is done here: its imports, the processor, and the model's function for positions.
    """
    from nemo_automodel.components.datasets.vlm.datasets import MetaDatasetConfig, PreTokenizedDatasetWrapperConfig
    from nemo_automodel.components.datasets.vlm.loader import VlmDataloaderConfig, VlmProcessorConfig
    from nemo_automodel.components.datasets.vlm.neat_packing_vlm import NeatPackConfig

    processor = load_processor(folder)
    positions = rope_index(processor) if three_way else None
    config = VlmDataloaderConfig(
        dataset_config=MetaDatasetConfig(path_or_dataset=str(meta)),
        processor_config=VlmProcessorConfig(factory=lambda: processor),
        pretokenization=PreTokenizedDatasetWrapperConfig(inject_fake_images=False),
        packing=NeatPackConfig(pack_size=pack_size),
        num_workers=workers,
    )
    options: dict[str, Any] = {"dp_rank": 0, "dp_world_size": 1, "batch_size": 1, "get_rope_index": positions}
    options |= {"pretrained_model_name_or_path": str(folder), "packing_attn_implementation": attention}
    return lambda: config.build(**options).dataloader
