"""Options that other libraries have, and what they are here: for whoever asks the `Loader` for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LOADER_ONLY: Final = (
    *("corpus", "processor", "format", "media_dir", "media_roots", "family", "model_config", "plan", "work"),
    *("mesh", "group", "data_dims", "progress"),
)
"""What the `Loader` itself takes besides the options of `LoaderConfig`."""

_MEANT: Final[Mapping[str, tuple[str, ...]]] = {
    "your trainer's own option: a pass over a loader is an epoch, of `len(loader)` batches": (
        *("max_steps", "num_steps", "total_steps", "steps", "learning_rate", "lr", "warmup_steps", "weight_decay"),
        *("eval_steps", "save_steps", "logging_steps"),
    ),
    "`loader.steps(epochs=…, accumulate=…)`, or your trainer's own option": (
        *("epochs", "num_epochs", "max_epochs", "num_train_epochs", "gradient_accumulation_steps", "accumulate"),
        *("accumulation_steps", "global_batch_size", "gbs"),
    ),
    "packing, which is always on: `pack_size` is the length of a pack, `attention` keeps its samples apart": (
        *("packing", "pack", "packed", "neat_packing", "pack_samples", "sample_packing", "use_packing"),
        *("packing_strategy", "padding_free"),
    ),
    "`pack_size`, the most tokens in a row": (
        *("max_length", "max_seq_length", "max_seq_len", "seq_len", "seq_length", "sequence_length", "cutoff_len"),
        *("model_max_length", "block_size", "pack_length", "packed_sequence_size", "max_tokens"),
    ),
    "`batch_size`, which counts packs: rows of up to `pack_size` tokens": (
        *("per_device_train_batch_size", "per_device_batch_size", "train_batch_size", "micro_batch_size"),
        *("local_batch_size", "mbs", "bs"),
    ),
    "an option of the processor: set it where the processor is loaded, and hand that over": (
        *("max_pixels", "min_pixels", "image_max_pixels", "video_max_pixels", "image_size", "patch_size", "resolution"),
        *("fps", "video_fps", "nframes", "num_frames", "max_frames", "chat_template", "template"),
    ),
    "`processor`: a tokenizer alone is not enough": ("processing_class", "image_processor"),
    "`corpus`, the first argument": ("dataset", "train_dataset", "data", "data_path", "dataset_path", "meta", "path"),
    "`open_corpus(meta, dataset_names=[…])`, whose corpus the loader takes": ("dataset_names", "datasets"),
    "`seed`: every epoch is shuffled, as (seed, epoch) say": (
        *("shuffle", "random_seed", "data_seed", "shuffle_seed", "generator", "shuffle_buffer_size"),
    ),
    '`last_step="drop"`': ("drop_last", "dataloader_drop_last"),
    "the plan, which decides it: `algorithm`, `placing`, `world_size` and `rank` are its options": (
        *("sampler", "batch_sampler", "group_by_length", "length_column_name", "curriculum", "balance"),
    ),
    "nothing to pass: batches are collated by the family (`lading.vlm` has the collate functions by themselves)": (
        *("collate_fn", "data_collator", "collator", "collater"),
    ),
    "`fixed_length=True` for rows of `pack_size` each; shorter rows are padded to the longest of their batch": (
        *("padding", "pad", "pad_to_max_length", "pad_to_multiple_of", "padding_side"),
    ),
    "`num_workers`, each of which makes two batches ahead; `count_workers` count": (
        *("workers", "num_proc", "nproc", "dataloader_num_workers", "preprocessing_num_workers", "prefetch_factor"),
        "persistent_workers",
    ),
    "a batch's own `pin_memory()` and `to(device)`": ("pin_memory", "device"),
    "`decode_seconds`, for each sample": ("timeout",),
    "`world_size`": ("world", "num_replicas", "dp_size", "dp_world_size", "num_shards"),
    "`rank`": ("dp_rank", "local_rank", "process_index", "shard_id"),
    '`too_long="truncate"`': ("truncation", "truncate", "truncation_side"),
    "`media_dir`": ("image_dir", "image_folder", "images_dir", "media_folder", "media_path", "data_dir"),
    "`cache`, a folder or whether there is one": ("cache_dir", "cache_path", "overwrite_cache"),
    '`attention`: `"varlen"` for flash attention; how the model attends is the model\'s own option': (
        *("attn_implementation", "attention_implementation", "flash_attn", "use_flash_attention"),
    ),
    "`train_on`: every answer, or the last one; what users say never has labels": (
        *("mask_history", "train_on_prompt", "train_on_inputs", "assistant_only_loss", "completion_only_loss"),
        *("train_on_responses_only", "mask_prompt", "roles_to_train", "train_on_eos"),
    ),
    "`template_options`": ("chat_template_kwargs", "template_kwargs", "enable_thinking", "preserve_thinking"),
    "`reasoning`": ("reasoning_key", "reasoning_effort", "add_non_thinking_prefix"),
    "`num_samples` or `sample_ratio` of a source in the meta file": ("max_samples", "num_samples", "sample_ratio"),
    "`loader.state_dict()` and `load_state_dict()`": ("resume", "resume_from_checkpoint", "skip_batches", "state"),
    "nothing there is: rows are read by number, and are not streamed": ("streaming", "stream"),
    "`progress`": ("verbose", "quiet", "disable_tqdm", "tqdm", "show_progress"),
}
_ELSEWHERE: Final = {name: meant for meant, names in _MEANT.items() for name in names}


def hint_for(name: str) -> str:
    """What somebody who gives the loader this option may be looking for; nothing where nobody knows.

    >>> hint_for("drop_last"), hint_for("colour")
    ('you may be looking for `last_step="drop"`', '')
    """
    if name in LOADER_ONLY:
        return "it is an argument of the `Loader` itself"
    return f"you may be looking for {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
