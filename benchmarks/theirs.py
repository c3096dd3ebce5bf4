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


def loader(meta: Path, folder: Path, *, pack_size: int, workers: int, attention: str, three_way: bool) -> Any:
    """Its whole pipeline, put together by its own configuration classes."""
    from nemo_automodel.components.datasets.vlm.datasets import MetaDatasetConfig, PreTokenizedDatasetWrapperConfig
    from nemo_automodel.components.datasets.vlm.loader import VlmDataloaderConfig
    from nemo_automodel.components.datasets.vlm.neat_packing_vlm import NeatPackConfig

    config = VlmDataloaderConfig(
        dataset_config=MetaDatasetConfig(path_or_dataset=str(meta)),
        pretokenization=PreTokenizedDatasetWrapperConfig(inject_fake_images=False),
        packing=NeatPackConfig(pack_size=pack_size),
        num_workers=workers,
    )
    built = config.build(
        pretrained_model_name_or_path=str(folder),
        dp_rank=0,
        dp_world_size=1,
        batch_size=1,
        get_rope_index=rope_index(load_processor(folder)) if three_way else None,
        packing_attn_implementation=attention,
    )
    return built.dataloader
