"""A byte-level BPE tokenizer, trained on the spot. It is small; everything else about it is real."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lading.toy.texts import sample_text

VOCABULARY = 1024


def train_tokenizer(
    special_tokens: Sequence[str], *, pad: str, end: str, first: str | None = None, **named: str
) -> Any:
    """A fast tokenizer with the family's own special tokens. Any text can be encoded: all bytes are in it.

    `named` tokens become attributes, as some processors want them (`tokenizer.image_token`).
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(special_tokens),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sample_text(), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=pad,
        eos_token=end,
        bos_token=first,
        extra_special_tokens=named,
        clean_up_tokenization_spaces=False,
    )
