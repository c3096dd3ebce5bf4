"""What every sample of a data set costs, counted from text and the headers of media, wherever the data set can tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lading.encode import TokenisedSample
from lading.encode.tokeniser import Sized
from lading.errors import ConfigError
from lading.ledger import too_long
from lading.records import Dropped, SampleKey
from lading.samples import Samples, SkipPolicy
from lading.vlm.replacement import Named
from lading.vlm.tokenising import Tokenising, tokenising

CHUNK = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What a sample takes: all its tokens, those of its media, and how many are left after the shift."""

    tokens: int
    media: int
    shifted: int
    exact: bool = True


def exact_costs(dataset: Any) -> list[Cost | Dropped] | None:
    """The cost of each sample, or why it cannot be used; `None` where the data set cannot tell without pixels."""
    tokenise: Callable[[Sequence[int]], list[TokenisedSample | Dropped]]
    if isinstance(dataset, Samples):
        tokenise, most = dataset.tokenised, None
    elif (own := tokenising(dataset)) is not None:
        tokenise, most = partial(_tokenised, own), own.max_length
    else:
        return None
    places = range(len(dataset))
    chunks = (tokenise(places[start : start + CHUNK]) for start in range(0, len(places), CHUNK))
    return [_cost(tokenised, most) for chunk in chunks for tokenised in chunk]


def _tokenised(dataset: Tokenising, places: Sequence[int]) -> list[TokenisedSample | Dropped]:
    """The tokens of some samples of a data set; what cannot be used says why."""

    def sized(key: SampleKey) -> Sized:
        return dataset.encoder.sized(dataset.conversation(key.index))

    return SkipPolicy().attempt_each([name_of(dataset, place) for place in places], sized, dataset.encoder.tokenise)


def _cost(tokenised: TokenisedSample | Dropped, most: int | None) -> Cost | Dropped:
    if isinstance(tokenised, Dropped):
        return tokenised
    tokens = len(tokenised.ids)
    if most is not None and tokens > most:
        return too_long(tokenised.conversation.key, tokens, most)
    # The shift drops the last token, unless a medium would lose it.
    whole = bool(tokenised.media) and tokenised.media[-1].stop == tokens
    media = sum(sum(span.footprint.runs) for span in tokenised.media)
    return Cost(tokens=tokens, media=media, shifted=tokens if whole else tokens - 1)


def quick_costs(
    examples: Sequence[Mapping[str, Any]],
    estimate: Callable[[dict[str, Any]], Any],
    shift: Callable[[dict[str, Any]], Mapping[str, Any]],
) -> list[Cost]:
    """Estimates, (tokens, media tokens); of examples that are tokenised already, their lengths after `shift`."""
    costs = []
    for place in range(len(examples)):
        example = examples[place]
        if "input_ids" in example:
            shifted = len(shift(dict(example))["input_ids"])
            costs.append(Cost(tokens=len(example["input_ids"]), media=0, shifted=shifted))
        else:
            tokens, media = estimate(dict(example))
            # The token that the shift drops is left in: an estimate is too low rather than too high.
            costs.append(Cost(tokens=tokens, media=media, shifted=max(1, tokens), exact=False))
    return costs


def refuse_long(costs: Sequence[Cost | Dropped], pack_size: int) -> None:
    """Refuse samples that are known to fit into no pack: nobody said that they may be left out."""
    counted = [cost.shifted if isinstance(cost, Cost) and cost.exact else 0 for cost in costs]
    long = [f"{place} ({tokens})" for place, tokens in enumerate(counted) if tokens > pack_size]
    if long:
        raise ConfigError(
            found=f"{len(long)} samples longer than a pack: {', '.join(long[:10])}",
            wanted=f"at most {pack_size} tokens (pack_size)",
            consequence="drop_long_samples=True leaves them out by name",
        )


def name_of(dataset: Any, place: int) -> SampleKey:
    """What a sample is called in logs and ledgers: its data set's own name for it, under its place.

    >>> str(name_of(["a", "b"], 1))
    'list#1 (list[1])'
    """
    named = tokenising(dataset) or dataset
    if isinstance(named, Named):
        return replace(named.key(place), index=place)
    source = type(dataset).__name__
    return SampleKey(index=place, source=source, where=f"{source}[{place}]")


def described(dropped: Sequence[Dropped], samples: int) -> list[str]:
    """Lines for a log: how many samples are left out, and each by name.

    >>> described([too_long(name_of(["a"], 0), 12, 8)], samples=3)
    ['left out 1 of 3 samples:', 'list#0 (list[0]): found 12 tokens; wanted at most the pack size, 8']
    """
    names = [f"{entry.key}: {entry.detail}" for entry in dropped]
    return [f"left out {len(dropped)} of {samples} samples:", *names] if dropped else []
