"""What packed and padded batches share: rows of one length, media one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from lading.errors import ConfigError
from lading.fields import Field
from lading.records import Pack
from lading.tensors import join, pad, stack


def row_width(packs: Sequence[Pack], length: int | None) -> int:
    """The common length of the rows: the one asked for, or the longest pack's."""
    if not packs:
        raise ConfigError(found="no samples", wanted="at least one", where="collate")
    longest = max(pack.length for pack in packs)
    if length is not None and longest > length:
        raise ConfigError(found=f"a row of {longest} tokens", wanted=f"at most {length}", where="collate")
    return longest if length is None else length


def stack_tokens(
    packs: Sequence[Pack], *, fields: Mapping[str, Field], width: int, pad_token: int
) -> dict[str, Tensor]:
    """Every token field as [B, S] (three-way positions as [4, B, S])."""
    values = {"input_ids": pad_token}
    return {
        name: _stacked([pad(pack.tensors[name], width, field, values.get(name)) for pack in packs])
        for name, field in fields.items()
        if field.axis == "token" and name in packs[0].tensors
    }


def _stacked(rows: Sequence[Tensor]) -> Tensor:
    """A pack is made for one batch, so a row alone is handed on as it is, not copied."""
    return stack(rows) if len(rows) > 1 else rows[0].unsqueeze(-2)


def join_media(packs: Sequence[Pack], *, fields: Mapping[str, Field]) -> dict[str, Tensor]:
    """Every media field, the rows of all packs in order."""
    parts = [{name: tensor for name, tensor in pack.tensors.items() if fields[name].axis != "token"} for pack in packs]
    return join(parts, fields)
