"""CORD-v2: a receipt, and its contents as JSON, which the model learns to write as tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lading.conversation.layout import Layout
from lading.conversation.one_exchange import exchange, from_json, medium
from lading.errors import Reason, SkipSample
from lading.records import Conversation, Row

COLUMNS = ("image", "ground_truth")
PROMPT = "Describe this image."
SEPARATOR = "<sep/>"
TEXT_ALONE = "text_sequence"
"""An object with this key alone stands for plain text."""


def read(row: Row, layout: Layout | None = None, *, prompt: str = PROMPT, seed: int = 0) -> Conversation:
    """The receipt and the prompt, answered by its ground truth as token text.

    Of several `gt_parses` one is taken: which one is a function of the seed and the sample's number, so that every
    rank, worker and resumed run takes the same.

    >>> from lading.records import SampleKey
    >>> value = {"image": "r.png", "ground_truth": '{"gt_parse": {"total": "3", "menu": ["tea", "pie"]}}'}
    >>> read(Row(key=SampleKey(index=0, source="cord", where="cord row 0"), value=value)).messages[1].parts[0].text
    '<s_total>3</s_total><s_menu>tea<sep/>pie</s_menu>'
    """
    parses = _parses(row)
    number = int(np.random.default_rng([seed, row.key.index]).integers(len(parses)))
    return exchange(row, medium(row, "image", "image", layout), prompt, token_text(parses[number]))


def token_text(value: Any) -> str:
    """JSON as token text: keys in reverse order as `<s_key>…</s_key>`, a list's items with `<sep/>` between.

    >>> token_text({"a": 1, "b": [{"c": "x"}, {"c": "y"}]})
    '<s_b><s_c>x</s_c><sep/><s_c>y</s_c></s_b><s_a>1</s_a>'
    """
    if isinstance(value, Mapping):
        if set(value) == {TEXT_ALONE}:
            return str(value[TEXT_ALONE])
        return "".join(f"<s_{key}>{token_text(value[key])}</s_{key}>" for key in sorted(value, reverse=True))
    if isinstance(value, list):
        return SEPARATOR.join(token_text(item) for item in value)
    return str(value)


def _parses(row: Row) -> list[Any]:
    truth = from_json(row, "ground_truth", wanted='{"gt_parse": …} or {"gt_parses": […]}')
    several = truth.get("gt_parses") if isinstance(truth, dict) else None
    if isinstance(several, list) and several:
        return several
    if isinstance(truth, dict) and "gt_parse" in truth:
        return [truth["gt_parse"]]
    raise SkipSample(
        Reason.BAD_ROW,
        found=f"ground truth with {', '.join(truth) if isinstance(truth, dict) else 'no keys'}",
        wanted="gt_parse, or gt_parses with at least one parse",
        where=row.key.where,
    )
