"""The small numbers that toy models share."""

from __future__ import annotations

from typing import Any


def decoder(tokenizer: Any, **changes: Any) -> dict[str, Any]:
    """A language model of two layers."""
    return {
        # A pruned vocabulary may keep the real, high ids of its special tokens.
        "vocab_size": max(tokenizer.get_vocab().values()) + 1,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 32768,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        **changes,
    }


def encoder(**changes: Any) -> dict[str, Any]:
    """A vision tower of two layers."""
    return {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        **changes,
    }
