"""LLaMA-Factory's loader for supervised fine-tuning, put together as its own `run_sft` does.

Its arguments, its `get_dataset` (reading, templates, tokens, packing), its collator, and the data loader of the Trainer
that its own is made from. Only weights are left out: of the model it needs the configuration and the function for
positions. It borrows newer libraries than it asks for, so its check of versions is switched off, in its own way.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

ROWS = 7
"""Padded rows in a batch: about as many tokens as a pack of 8192 holds."""
DATA_SET = "talks"


def write_dataset_info(folder: Path) -> None:
    """What it wants to know of a file of rows in OpenAI's form."""
    tags = {"role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant"}
    columns = {"messages": "messages", "images": "images"}
    entry = {"file_name": f"{DATA_SET}.jsonl", "formatting": "sharegpt", "columns": columns, "tags": tags}
    (folder / "dataset_info.json").write_text(json.dumps({DATA_SET: entry}), encoding="utf-8")


class TrainingLoader:
    """Made once before time is taken: its imports, the processor, a model of one layer. `open` is timed."""

    def __init__(
        self, data: Path, processor: Path, scratch: Path, *, pack_size: int, workers: int, packed: bool
    ) -> None:
        os.environ["DISABLE_VERSION_CHECK"] = "1"
        _without_torchaudio()
        from llamafactory.data import get_template_and_fix_tokenizer
        from llamafactory.hparams import DataArguments, ModelArguments, TrainingArguments
        from transformers import AutoProcessor

        # Its pictures would be made smaller first; the processor's own bounds leave them as large as ours.
        bounds = {"image_max_pixels": 16384 * 28 * 28, "image_min_pixels": 4 * 28 * 28}
        self.model_arguments = ModelArguments(model_name_or_path=str(processor), **bounds)
        self.data_arguments = DataArguments(
            template="qwen2_vl",
            dataset=DATA_SET,
            dataset_dir=str(data),
            media_dir=str(data / "media"),
            cutoff_len=pack_size,
            neat_packing=packed,
            preprocessing_num_workers=workers,
        )
        self.training_arguments = TrainingArguments(
            output_dir=str(scratch / "out"),
            per_device_train_batch_size=1 if packed else ROWS,
            dataloader_num_workers=workers,
            remove_unused_columns=False,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
        )
        loaded = AutoProcessor.from_pretrained(processor)
        loaded.tokenizer.padding_side = "right"
        _patch(loaded, self.model_arguments)
        self.tokenizer_module = {"tokenizer": loaded.tokenizer, "processor": loaded}
        self.template = get_template_and_fix_tokenizer(loaded.tokenizer, self.data_arguments)
        self.model = _model(loaded.tokenizer)

    def open(self) -> Any:
        """Its data set, read and tokenised, behind the Trainer's data loader."""
        from llamafactory.data import SFTDataCollatorWith4DAttentionMask, get_dataset
        from transformers import Trainer

        data = get_dataset(
            self.template,
            self.model_arguments,
            self.data_arguments,
            self.training_arguments,
            stage="sft",
            **self.tokenizer_module,
        )
        collator = SFTDataCollatorWith4DAttentionMask(
            template=self.template,
            model=self.model,
            pad_to_multiple_of=8,
            neat_packing=self.data_arguments.neat_packing,
            # Its fastest: no dense mask, and the padding of a pack is cut off again.
            attn_implementation="flash_attention_2",
            **self.tokenizer_module,
        )
        trainer = Trainer(model=self.model, args=self.training_arguments, data_collator=collator, **data)
        return trainer.get_train_dataloader()


def document_lengths(batch: Any) -> list[int]:
    """Tokens of the documents of a batch: of padded rows by their mask, of a pack by positions that begin again."""
    mask = batch["attention_mask"]
    if mask is not None:
        return mask.sum(-1).tolist()
    starts = (batch["position_ids"][0, 0] == 0).nonzero().ravel().tolist()
    return [stop - start for start, stop in zip(starts, [*starts[1:], batch["input_ids"].shape[1]], strict=True)]


def _patch(processor: Any, arguments: Any) -> None:
    """What its `patch_processor` does, whose module wants an older trl than another row."""
    for name in (
        "image_max_pixels",
        "image_min_pixels",
        "image_do_pan_and_scan",
        "crop_to_patches",
        "video_max_pixels",
        "video_min_pixels",
        "video_fps",
        "video_maxlen",
        "use_audio_in_video",
        "audio_sampling_rate",
    ):
        setattr(processor, name, getattr(arguments, name))


def _model(tokenizer: Any) -> Any:
    """A Qwen2.5-VL model of the least size."""
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    token = tokenizer.convert_tokens_to_ids
    config = Qwen2_5_VLConfig(
        text_config={
            "num_hidden_layers": 1,
            "hidden_size": 32,
            "intermediate_size": 32,
            "num_attention_heads": 1,
            "num_key_value_heads": 1,
            "vocab_size": 8,
            "rope_parameters": {"rope_type": "default", "mrope_section": [4, 6, 6]},
        },
        vision_config={"depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 1, "out_hidden_size": 32},
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
    )
    return Qwen2_5_VLForConditionalGeneration(config)


def _without_torchaudio() -> None:
    """It imports torchaudio for sounds, which are not asked of it here; its wheels want another CUDA than torch's."""
    import transformers.processing_utils  # noqa: F401 - finds out before that there is none

    empty = ModuleType("torchaudio")
    empty.__spec__ = ModuleSpec("torchaudio", None)
    sys.modules.setdefault("torchaudio", empty)
