"""Do all ways give the same? The kernel against a dense mask, and every document's loss, padded and packed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from benchmarks.gpu.feeds import Source
from benchmarks.gpu.measure import choose_attention
from lading.attention import LANGUAGE
from lading.attention.segments import AttentionOptions, attend
from lading.packing import build_pack, collate_packs, collate_samples
from lading.records import Batch, Encoded

SIZES = (700, 64, 1, 1280, 333)
FEWER = (70, 64, 1, 33)
"""Lengths of documents: on a device, and on a CPU."""


def kernel_difference(device: str, dtype: torch.dtype) -> dict[str, float]:
    """The largest difference, forward and in the gradients, from one dense mask, by what is computed.

    Against float32: beside each stands how far a dense mask in the same precision is off.
    """
    found = {}
    for name, heads, keys, size, options in (
        ("language", 16, 2, 128, AttentionOptions()),
        ("window", 16, 2, 128, AttentionOptions(window=100)),
        ("vision", 16, 16, 80, AttentionOptions(causal=False)),
    ):
        tensors = [torch.randn(sum(_sizes(device)), count, size, device=device) for count in (heads, keys, keys)]
        exact = _outcome(tensors, torch.float32, options, dense=True)
        ours = _outcome(tensors, dtype, options, dense=False)
        theirs = _outcome(tensors, dtype, options, dense=True)
        found[name] = _furthest(ours, exact)
        found[f"{name}, dense"] = _furthest(theirs, exact)
    return found


def _sizes(device: str) -> tuple[int, ...]:
    return SIZES if device == "cuda" else FEWER


def _furthest(some: list[Tensor], exact: list[Tensor]) -> float:
    return max(float((one.float() - other).abs().max()) for one, other in zip(some, exact, strict=True))


def _outcome(tensors: list[Tensor], dtype: torch.dtype, options: AttentionOptions, *, dense: bool) -> list[Tensor]:
    """What is seen, and the gradients."""
    query, key, value = leaves = [tensor.to(dtype, copy=True).requires_grad_() for tensor in tensors]
    sizes = _sizes(query.device.type)
    boundaries = torch.tensor([0, *sizes], device=query.device).cumsum(0).to(torch.int32)
    if dense:
        laid = [tensor.transpose(0, 1)[None] for tensor in (query, key, value)]
        mask = _dense_mask(boundaries, options)
        seen = scaled_dot_product_attention(*laid, attn_mask=mask, enable_gqa=True)[0].transpose(0, 1)
    else:
        seen = attend(query, key, value, boundaries=boundaries, longest=max(sizes), options=options)
    seen.float().square().sum().backward()
    return [seen.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None)]


def _dense_mask(boundaries: Tensor, options: AttentionOptions) -> Tensor:
    places = torch.arange(int(boundaries[-1]), device=boundaries.device)
    document = torch.bucketize(places, boundaries[1:], right=True)
    back = places[:, None] - places[None, :]
    mask = document[:, None] == document[None, :]
    if options.causal:
        mask &= back >= 0
    return mask if options.window is None else mask & (back < options.window)


def loss_difference(model: Any, source: Source, *, documents: int) -> dict[str, float]:
    """Every document's loss: the largest and the mean difference of each way from padded rows under sdpa.

    The last is a planted fault: boundaries between rows alone, so that documents of a pack see each other.
    """
    chosen = _fitting(source, documents)
    batches = _ways(source, chosen)
    model.eval()
    padded = torch.tensor(_losses(model, batches["padded"], "sdpa"))
    found = {}
    for way, language in {"packed, mask": "sdpa", "packed, varlen": LANGUAGE, "planted fault": LANGUAGE}.items():
        difference = (torch.tensor(_losses(model, batches[way], language)) - padded).abs()
        found[f"{way}, largest"], found[f"{way}, mean"] = float(difference.max()), float(difference.mean())
    found["mean loss"], found["documents"] = float(padded.mean()), len(chosen)
    model.train()
    return found


def _fitting(source: Source, documents: int) -> list[Encoded]:
    """The first documents, as many as fit one pack."""
    chosen: list[Encoded] = []
    for index in range(len(source.lengths)):
        sample = source.samples.encode(index)
        room = source.loader.config.pack_size - sum(own.document.tokens for own in chosen)
        if isinstance(sample, Encoded) and sample.document.tokens <= room and len(chosen) < documents:
            chosen.append(sample)
    return chosen


def _ways(source: Source, chosen: list[Encoded]) -> dict[str, Batch]:
    facts = source.samples.facts
    fields, pad_token = facts.family.table, facts.pad_token
    singles = [build_pack([sample], fields=fields, three_way=facts.three_way) for sample in chosen]
    pack = build_pack(chosen, fields=fields, three_way=facts.three_way)
    varlen = collate_packs([pack], fields=fields, pad_token=pad_token, attention="varlen")
    rows, length = varlen.tensor("input_ids").shape
    wide = torch.arange(0, (rows + 1) * length, length, dtype=torch.int32)
    fault = {"cu_seq_lens_q": wide, "cu_seq_lens_k": wide, "max_length_q": length, "max_length_k": length}
    return {
        "padded": collate_samples(singles, fields=fields, pad_token=pad_token),
        "packed, mask": collate_packs([pack], fields=fields, pad_token=pad_token),
        "packed, varlen": varlen,
        "planted fault": replace(varlen, inputs={**varlen.inputs, **fault}),
    }


@torch.no_grad()
def _losses(model: Any, batch: Batch, language: str) -> list[float]:
    choose_attention(model, language)
    moved = batch.to(next(model.parameters()).device)
    logits, labels = model(**moved).logits, moved.tensor("shift_labels")
    losses = []
    for row, documents in enumerate(batch.rows):
        start = 0
        for document in documents:
            own = slice(start, start + document.tokens)
            losses.append(float(cross_entropy(logits[row, own].float(), labels[row, own], ignore_index=-100)))
            start += document.tokens
    return losses
