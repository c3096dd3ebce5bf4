"""What the toys are made of: a tokenizer, a chat template, and the small numbers of their models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lading.toy.corpus import sample_text

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


_TEMPLATE = """\
{{{{ {first} }}}}
{{%- set names = {names} -%}}
{{%- set marks = {marks} -%}}
{default_system}
{{%- set said = namespace(first='') -%}}
{{%- for message in messages -%}}
{{%- if {merged} and message.role == 'system' -%}}
{{%- set said.first = (message.content if message.content is string else message.content[0].text) + '\n\n' -%}}
{{%- else -%}}
{{%- set role = names.get(message.role, message.role) -%}}
{{{{ {opening} + said.first }}}}
{{%- set said.first = '' -%}}
{{%- if message.content is string -%}}
{{{{ message.content }}}}
{{%- else -%}}
{{%- for part in message.content -%}}
{{{{ part.text if part.type == 'text' else marks[part.type] }}}}
{{%- endfor -%}}
{{%- endif -%}}
{{{{ {closing} }}}}
{{%- endif -%}}
{{%- endfor -%}}
{{%- if add_generation_prompt -%}}
{{%- set role = names.get('assistant', 'assistant') -%}}
{{{{ {opening} }}}}
{{%- endif -%}}
"""

_DEFAULT_SYSTEM = """\
{{%- if messages[0].role != 'system' -%}}
{{%- set role = 'system' -%}}
{{{{ {opening} + 'You are a helpful assistant.' + {closing} }}}}
{{%- endif -%}}"""


def chat_template(
    *,
    opening: str = "<|im_start|>{role}\n",
    closing: str = "<|im_end|>\n",
    marks: Mapping[str, str],
    names: Mapping[str, str] | None = None,
    first: str = "",
    default_system: bool = False,
    merged_system: bool = False,
) -> str:
    r"""A template that frames turns with `opening` and `closing` and writes `marks` where media stand.

    With `merged_system`, what a system message says goes into the next turn.

    >>> from jinja2 import Template
    >>> text = chat_template(marks={"image": "<i>"})
    >>> Template(text).render(messages=[{"role": "user", "content": [{"type": "image"}]}])
    '<|im_start|>user\n<i><|im_end|>\n'
    """
    pieces = {"opening": _spelled(opening), "closing": repr(closing)}
    return _TEMPLATE.format(
        **pieces,
        first=repr(first),
        names=repr(dict(names or {})),
        marks=repr(dict(marks)),
        default_system=_DEFAULT_SYSTEM.format(**pieces) if default_system else "",
        merged="true" if merged_system else "false",
    )


def _spelled(opening: str) -> str:
    """A Jinja expression that puts the role in its place."""
    return " + role + ".join(repr(piece) for piece in opening.split("{role}"))


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
