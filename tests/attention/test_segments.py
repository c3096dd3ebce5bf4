"""Attention over pieces, against one dense mask; and what boundaries are found in a mask."""

from __future__ import annotations

import inspect
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from lading.attention import segments
from lading.attention.segments import AttentionOptions, attend, kernel_call
from lading.attention.varlen import boundaries_or_mask, find_boundaries, varlen_attention
from lading.errors import ConfigError

SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=5)


def borders_of(sizes: list[int]) -> torch.Tensor:
    return torch.tensor([0, *sizes]).cumsum(0).to(torch.int32)


@given(sizes=SIZES, window=st.none() | st.integers(1, 7), causal=st.booleans(), groups=st.sampled_from([1, 2]))
def test_pieces_are_as_one_dense_mask_has_them(sizes: list[int], window: int | None, causal: bool, groups: int) -> None:
    random = torch.Generator().manual_seed(sum(sizes))
    total = sum(sizes)
    query = torch.randn(total, 4, 8, generator=random)
    key, value = (torch.randn(total, 4 // groups, width, generator=random) for width in (8, 6))
    options = AttentionOptions(causal=causal, window=window, scale=0.3)
    seen = attend(query, key, value, boundaries=borders_of(sizes), longest=max(sizes), options=options)
    piece = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    back = torch.arange(total)[:, None] - torch.arange(total)[None, :]
    mask = piece[:, None] == piece[None, :]
    mask &= back >= 0 if causal else torch.ones_like(mask)
    mask &= back.abs() < (window or total + 1)
    laid = (tensor.transpose(0, 1)[None] for tensor in (query, key, value))
    dense = scaled_dot_product_attention(*laid, attn_mask=mask, scale=0.3, enable_gqa=True)
    assert torch.allclose(seen, dense[0].transpose(0, 1), atol=1e-6)


@given(rows=st.lists(SIZES, min_size=1, max_size=3), padding=st.integers(0, 3))
def test_borders_are_found_from_neighbours(rows: list[list[int]], padding: int) -> None:
    length = max(map(sum, rows)) + padding
    documents = torch.tensor(
        [
            [n for n, size in enumerate(sizes, start=1) for _ in range(size)] + [0] * (length - sum(sizes))
            for sizes in rows
        ]
    )

    def sees(row: torch.Tensor, head: torch.Tensor, place: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        return (seen <= place) & (documents[row, place] == documents[row, seen])

    boundaries = find_boundaries(sees, None, rows=len(rows), length=length)
    assert boundaries is not None
    expected = [size for sizes in rows for size in [*sizes, length - sum(sizes)] if size]
    assert [after - before for before, after in pairwise(boundaries.tolist())] == expected


class TestWhatTransformersAsksFor:
    def asked(self, length: int = 4, **rest: object) -> torch.Tensor | None:
        return boundaries_or_mask(batch_size=1, q_length=length, kv_length=4, **rest)

    def test_plain_rows_need_nothing(self) -> None:
        assert self.asked() is None

    @pytest.mark.parametrize("there", [[1, 1, 1, 0], [0, 1, 1, 1]])
    def test_padding_on_either_side(self, there: list[int]) -> None:
        found = self.asked(attention_mask=torch.tensor([there]).bool())
        assert found is not None
        assert found.tolist() == [0, there.index(0) or 1, 4]

    def test_a_hole_in_a_row_goes_the_dense_way(self) -> None:
        found = self.asked(attention_mask=torch.tensor([[1, 0, 1, 1]]).bool())
        assert found is not None
        assert found[0, 0].int().tolist() == [[1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]]

    def test_sight_both_ways_goes_the_dense_way(self) -> None:
        found = self.asked(
            mask_function=lambda row, head, place, seen: (seen <= place) | ((place >= 1) & (seen == 2)),
            allow_is_causal_skip=False,
        )
        assert found is not None
        assert found[0, 0].int().tolist() == [[1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 1]]

    def test_a_cache_goes_the_dense_way(self) -> None:
        found = self.asked(length=2, q_offset=2, allow_is_causal_skip=False)
        assert found is not None
        assert found[0, 0].int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]


class Layer(torch.nn.Module):
    is_causal = True


def test_a_window_holds_where_nothing_else_is_said() -> None:
    row = torch.randn(2, 1, 5, 8)
    seen, _ = varlen_attention(Layer(), row, row, row, None, sliding_window=2)
    options = AttentionOptions(window=2)
    alone = attend(*[row[1].transpose(0, 1)] * 3, boundaries=torch.tensor([0, 5]), longest=5, options=options)
    assert torch.allclose(seen[1], alone)


@pytest.mark.parametrize("asked", [{"softcap": 30.0}, {"s_aux": torch.ones(1)}])
def test_what_cannot_be_computed_is_refused(asked: dict[str, object]) -> None:
    row = torch.randn(1, 1, 4, 8)
    with pytest.raises(ConfigError, match=f"Layer, which asks its attention for {next(iter(asked))}"):
        varlen_attention(Layer(), row, row, row, torch.tensor([0, 4]), **asked)
    with pytest.raises(ConfigError, match="1 tokens to look at 4, as with a cache"):
        varlen_attention(Layer(), row[:, :, :1], row, row, None, cu_seq_lens_q=torch.tensor([0, 1]))


def test_the_kernel_is_asked_only_for_what_it_takes() -> None:
    kernel = segments._kernel()
    if kernel is None:
        pytest.skip("this torch has no varlen_attn")
    known = inspect.signature(kernel).parameters
    query, key = torch.randn(3, 4, 16), torch.randn(3, 2, 16)
    (queries, keys, values), options = kernel_call(query, key, key[..., :8], AttentionOptions(window=5, scale=0.5))
    assert set(options) <= set(known)
    assert options.get("window_size") == (4, 0)
    assert kernel_call(query, key, key, AttentionOptions())[1].get("window_size") == (-1, 0)
    assert kernel_call(query, key, key, AttentionOptions(causal=False))[1].get("window_size") == (-1, -1)
    assert options.get("scale") == 0.5
    assert values.shape == (3, keys.shape[1], 16)
    assert torch.equal(queries, query)
    assert options.get("enable_gqa", False) or keys.shape == query.shape


def test_an_older_kernel_gets_the_same_by_other_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch 2.10 took `is_causal` alone: the scale goes into the queries, and the heads are written out."""
    monkeypatch.setattr(segments, "_kernel_arguments", lambda: frozenset({"is_causal"}))
    query, key = torch.randn(3, 4, 16), torch.randn(3, 2, 16)
    (queries, keys, values), options = kernel_call(query, key, key, AttentionOptions(scale=0.5))
    assert options == {"is_causal": True}
    assert torch.allclose(queries, query * 2.0)
    assert torch.equal(keys[:, 1], key[:, 0])
    assert torch.equal(values[:, 3], key[:, 1])
