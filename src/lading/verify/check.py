"""The whole verification: samples of a corpus, packed and alone."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lading.conversation.keys import Reading
from lading.encode.encoder import Encoder
from lading.encode.processor_facts import load_processor, read_processor
from lading.encode.template import NO_OPTIONS
from lading.errors import ConfigError, CorpusError, ExactnessError, Reason
from lading.family import Attention
from lading.fields import IGNORE_INDEX
from lading.loader.loader import Loader
from lading.progress import Advance, task
from lading.records import Batch, Dropped
from lading.samples import Samples
from lading.sources import Corpus, open_corpus
from lading.verify.alone import Alone, alone
from lading.verify.compare import (
    Place,
    compare_labels,
    compare_pixels,
    compare_positions,
    compare_tails,
    compare_tokens,
    hidden_changes,
    places,
)
from lading.verify.model import SMALL, ForwardPass, Refused, load_model, run, token_losses
from lading.verify.result import Difference, Verification

LIMIT = 64
TOLERANCE = {True: 1e-5, False: 1e-3}
"""By whether the model is small: what float32 rounds differently over two layers, and over dozens."""
LEAK = 1e-3
"""Hidden states move by less than this where another document is changed; a leak moves them by whole numbers."""

Through = Callable[[Iterable[Batch]], Iterable[Batch]]


def verify(
    corpus: str | Path | Corpus,
    processor: Any,
    *,
    pack_size: int,
    limit: int = LIMIT,
    model: str = SMALL,
    attention: Attention = "positions",
    family: str | None = None,
    tolerance: float | None = None,
    through: Through = lambda batches: batches,
    reading: Reading | None = None,
    template_options: Mapping[str, Any] = NO_OPTIONS,
    progress: Advance | None = None,
) -> Verification:
    """Whether the documents of a corpus are in their packs what they are alone.

    `limit` samples, spread over the corpus, are planned, packed and collated by a `Loader`; each is compared with what
    the processor and the model make of it alone. `through` is what a training loop does to batches between the loader
    and the model, if anything: it is verified too.

        verify("corpus/meta.json", "toy:qwen2_5_vl", pack_size=1024).holds
    """
    started = time.monotonic()
    opened = corpus if isinstance(corpus, Corpus) else open_corpus(corpus)
    facts = read_processor(load_processor(processor), family, template_options=template_options)
    chosen = part_of(opened, spread(opened, limit))
    reading = reading or Reading()
    samples = Samples(corpus=chosen, encoder=Encoder(facts=facts), reading=reading)
    loaded = load_model(model, facts)
    comparison = _Comparison(
        model=loaded,
        tolerance=TOLERANCE[model == SMALL] if tolerance is None else tolerance,
        fixed=torch.tensor(sorted(facts.processor.tokenizer.get_added_vocab().values())),
    )
    own = {field.name: getattr(reading, field.name) for field in fields(reading)}
    options: dict[str, Any] = {"pack_size": pack_size, "attention": attention, "family": family, **own}
    options |= {"model_config": loaded.config, "template_options": template_options}
    with task("comparing", len(chosen), progress=progress) as advance:
        for refusal, indices in _by_refusal(samples, loaded, comparison.dropped).items():
            try:
                loader = Loader(part_of(chosen, indices), facts.processor, rank=0, world_size=1, **options)
            except CorpusError:
                # All of these can be counted, so what keeps them out of every pack is their length.
                comparison.dropped[Reason.TOO_LONG.value] += len(indices)
                continue
            comparison.read(loader, refusal, through, advance)
    _refuse_nothing(comparison.dropped, len(chosen))
    return Verification(
        samples=len(chosen),
        documents=comparison.documents,
        packs=comparison.packs,
        differences=tuple(comparison.differences),
        max_abs_loss_diff=comparison.loss,
        max_abs_sight_diff=comparison.sight,
        losses=comparison.losses,
        not_run=dict(comparison.not_run),
        dropped=dict(comparison.dropped),
        tolerance=comparison.tolerance,
        family=facts.family.name,
        model=model,
        attention=attention,
        seconds=time.monotonic() - started,
    )


def _refuse_nothing(dropped: Mapping[str, int], samples: int) -> None:
    if sum(dropped.values()) == samples:
        reasons = ", ".join(f"{reason} {count}" for reason, count in dropped.items())
        raise CorpusError(found=f"nothing to train on among {samples} samples ({reasons})", wanted="at least one")


def spread(corpus: Corpus, limit: int) -> list[int]:
    """The numbers of at most `limit` samples, the first and the last among them."""
    if limit < 1:
        raise ConfigError(found=f"limit {limit}", wanted="at least one sample", where="verify")
    return [int(place) for place in np.linspace(0, len(corpus) - 1, min(limit, len(corpus)))]


def part_of(corpus: Corpus, indices: Sequence[int]) -> Corpus:
    """A corpus of these samples alone, in their order; numbers begin at 0 again, places in files stay."""
    rows: list[list[int]] = [[] for _ in corpus.sources]
    for index in sorted(indices):
        number, row = corpus.locate(index)
        rows[number].append(row)
    return Corpus.of(
        [
            replace(source, chosen=np.array(chosen, dtype=np.int64))
            for source, chosen in zip(corpus.sources, rows, strict=True)
        ]
    )


def _by_refusal(samples: Samples, model: Any, dropped: Counter[str]) -> dict[str, list[int]]:
    """Samples by why the model takes none of them, even alone ("" where it takes them): one sample of every mix of
    media is tried. Samples that cannot be counted are added to `dropped`.
    """
    refusals: dict[frozenset[str], str] = {}
    found: dict[str, list[int]] = {}
    for index, tokenised in enumerate(samples.tokenised(range(len(samples)))):
        if isinstance(tokenised, Dropped):
            dropped[tokenised.reason.value] += 1
            continue
        kinds = frozenset(part.kind for part in tokenised.conversation.media)
        if kinds not in refusals:
            refusals[kinds] = _refusal(samples, index, model)
        found.setdefault(refusals[kinds], []).append(index)
    return found


def _refusal(samples: Samples, index: int, model: Any) -> str:
    try:
        run(model, alone(samples, index).inputs)
    except Refused as refused:
        return refused.found
    return ""


@dataclass(kw_only=True, slots=True)
class _Comparison:
    """What has been found so far."""

    model: Any
    tolerance: float
    fixed: Tensor
    """Tokens that are never changed: marks, pads, turns."""
    documents: int = 0
    packs: int = 0
    losses: int = 0
    loss: float = 0.0
    sight: float = 0.0
    differences: list[Difference] = field(default_factory=list)
    not_run: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    def read(self, loader: Loader, refusal: str, through: Through, advance: Advance) -> None:
        """All batches of a loader."""
        packed = Counter[int]()
        for batch in through(loader):
            found = places(batch)
            packed.update(place.document.key.index for place in found)
            self._batch(loader.samples, batch, found, refusal)
            advance(len(found))
        left_out = {int(str(entry["index"])): str(entry["reason"]) for entry in loader.ledger.entries()}
        self.dropped.update(left_out.values())
        for index in range(len(loader.samples)):
            wanted = 0 if index in left_out else 1
            if packed[index] != wanted:
                where = loader.samples.corpus.key(index).where
                detail = f"in {packed[index]} packs; wanted {wanted}"
                self.differences.append(Difference(where=where, aspect="lost", detail=detail))

    def _batch(self, samples: Samples, batch: Batch, found: list[Place], refusal: str) -> None:
        family = samples.facts.family
        others = {place.document.key.index: alone(samples, place.document.key.index) for place in found}
        self.documents += len(found)
        self.packs += len(batch.rows)
        for place in found:
            other = others[place.document.key.index]
            self.differences += compare_tokens(batch, place, other)
            self.differences += compare_labels(batch, place, other)
            if other.not_compared:
                self.not_run[other.not_compared] += 1
        self.differences += compare_tails(batch, found)
        self.differences += compare_pixels(batch, found, others, family)
        if refusal:
            self.not_run[f"loss, sight: {refusal}"] += len(found)
            self._plain_positions(samples, batch, found)
            return
        losses = self._alone(samples, batch, found, others)
        if losses is not None:
            self._together(samples, batch, found, losses)

    def _plain_positions(self, samples: Samples, batch: Batch, found: list[Place]) -> None:
        """Where the model cannot be asked: plain positions are known without it, three-way ones are not."""
        if samples.facts.three_way is not None:
            self.not_run["positions: the model, which numbers them, refuses the document"] += len(found)
            return
        for place in found:
            self.differences += compare_positions(batch, place, torch.arange(place.document.tokens))

    def _alone(
        self, samples: Samples, batch: Batch, found: list[Place], others: dict[int, Alone]
    ) -> list[float] | None:
        """The mean loss of every document alone, its positions compared on the way; `None` where one is refused."""
        losses = []
        for place in found:
            other = others[place.document.key.index]
            labels = other.labels or _unshifted(batch, place)
            trained = [token for token, label in enumerate(labels) if label != IGNORE_INDEX]
            before, wanted = [token - 1 for token in trained if token], [labels[token] for token in trained if token]
            try:
                own, forward = token_losses(self.model, other.inputs, before, wanted)
            except Refused as refused:
                self.not_run[f"loss, sight: {refused.found}"] += len(found)
                return None
            losses.append(own.mean().item())
            positions = _positions_alone(forward, place.document.tokens, three_way=samples.facts.three_way is not None)
            self.differences += compare_positions(batch, place, positions)
        return losses

    def _together(self, samples: Samples, batch: Batch, found: list[Place], losses: list[float]) -> None:
        if "shift_labels" not in batch:
            self.differences += [place.differs("loss", "no labels to compute it from") for place in found]
            return
        labels = batch.tensor("shift_labels").flatten()
        trained = torch.nonzero(labels != IGNORE_INDEX).flatten()
        width = batch.tensor("input_ids").shape[1]
        try:
            own, forward = token_losses(self.model, batch.inputs, trained.tolist(), labels[trained].tolist())
            changes = hidden_changes(self.model, batch, found, forward.hidden, samples.facts.family.table, self.fixed)
        except (Refused, ExactnessError) as refused:
            self.differences += [place.differs("loss", f"alone accepted, packed: {refused.found}") for place in found]
            return
        for place, change, expected in zip(found, changes, losses, strict=True):
            start = place.row * width + place.start
            inside = (trained >= start) & (trained < start + place.document.tokens)
            self._note_loss(place, own[inside].mean().item(), expected)
            self.sight = max(self.sight, change.by_others)
            if not change.by_others <= LEAK:
                detail = f"hidden states move by up to {change.by_others:g} when only other documents change"
                self.differences.append(place.differs("sight", detail))
            if not all(moved > LEAK for moved in change.by_itself):
                self.not_run["sight: a document in which nothing could be changed"] += 1

    def _note_loss(self, place: Place, found: float, expected: float) -> None:
        apart = abs(found - expected)
        self.losses += 1
        if apart == apart:
            self.loss = max(self.loss, apart)
        if not apart <= self.tolerance:
            self.differences.append(place.differs("loss", f"{found:.6f} here, {expected:.6f} alone"))


def _unshifted(batch: Batch, place: Place) -> list[int]:
    """The batch's own labels, where there are no others to compare them with."""
    labels = batch.tensor("shift_labels" if "shift_labels" in batch else "input_ids")
    return [IGNORE_INDEX, *place.of(labels).tolist()[:-1]]


def _positions_alone(forward: ForwardPass, tokens: int, *, three_way: bool) -> Tensor:
    """The positions, [T] or [3, T], that the model itself gave to a document alone."""
    counted = torch.arange(tokens)
    found = counted[None] if forward.positions is None else forward.positions.cpu()
    if not three_way:
        return found[0]
    return found[-3:, 0] if found.ndim == 3 else found[0].expand(3, -1)
