"""From counted lengths to a plan, as the configuration says: the loader and `lading plan` go the same way.

And what to warn of: what a document would notice of others in its batch, however documents are kept apart, because the
model asks it of the whole batch at once. A family declares it; the lengths say whether this corpus has it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lading.errors import ConfigError
from lading.family import Family
from lading.fields import MediaKind
from lading.loader.config import LoaderConfig
from lading.media import placeholder as placeholder_media
from lading.plan import make_plan
from lading.plan.costs import pack_costs, vision_costs
from lading.plan.fingerprint import differences, lengths_fingerprint, made_of
from lading.plan.make import sample_capacity
from lading.records import Encoded, LengthTable, PackPlan, Work
from lading.samples.samples import Samples, fit

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Planning:
    """Samples that fit, their lengths, and everything else that a plan is made of."""

    samples: Samples
    lengths: LengthTable
    capacity: int
    """Tokens of a pack that samples may take: the pack size, less what a placeholder may need."""
    placeholder: Encoded | None
    """The placeholder, where there may be one."""
    work: Work

    @classmethod
    def of(cls, samples: Samples, counted: LengthTable, config: LoaderConfig, work: Work | None = None) -> Planning:
        """Leave space for a placeholder, and cut what is too long, where that is asked for."""
        # In bytes, as packs are: in a batch of microbatches it stands beside pictures that are not scaled yet.
        encoder = samples.encoder.in_bytes()
        placeholder = encoder.encode(placeholder_media.conversation()) if config.placeholder_media else None
        capacity = sample_capacity(
            counted,
            pack_size=config.pack_size,
            placeholder=placeholder.document.tokens if placeholder else 0,
            truncating=config.too_long == "truncate",
        )
        fitting, lengths = fit(samples, counted, limit=capacity, too_long=config.too_long)
        if config.rank == 0:
            for caution in cautions(
                samples.facts.family, lengths, capacity=capacity, placeholder=placeholder is not None
            ):
                logger.warning("%s", caution)
        return cls(
            samples=fitting,
            lengths=lengths,
            capacity=capacity,
            placeholder=placeholder,
            work=work or samples.facts.family.work,
        )

    def plan(self, config: LoaderConfig, epoch: int) -> PackPlan:
        """The plan of an epoch."""
        return make_plan(
            self.lengths,
            pack_size=self.capacity,
            world_size=config.world_size,
            seed=config.seed,
            epoch=epoch,
            algorithm=config.algorithm,
            placing=config.placing,
            work=self.work,
        )


SEE = "their losses differ from those alone (docs/exactness.md)"


def cautions(family: Family, lengths: LengthTable, *, capacity: int, placeholder: bool = False) -> list[str]:
    """What to say of a corpus for a family, of samples that fit into the `capacity` of a pack; mostly nothing.

    A `placeholder` is a picture that batches without any may get.
    """
    fits = (lengths.tokens > 0) & (lengths.tokens <= capacity)
    return [*_changed_media(family, lengths, fits, placeholder), *_long_documents(family, lengths, fits)]


def _changed_media(family: Family, lengths: LengthTable, fits: NDArray[np.bool_], placeholder: bool) -> list[str]:
    shown: Mapping[MediaKind, NDArray[np.bool_]] = {
        "image": fits & (lengths.images > 0),
        "video": fits & (lengths.videos > 0),
        "audio": fits & (lengths.audios > 0),
    }
    said = []
    for kind, other in family.changed_by.items():
        alone, others = int(np.count_nonzero(shown[kind] & ~shown[other])), int(np.count_nonzero(shown[other]))
        if alone and (others or (placeholder and other == "image")):
            beside = f"{other} in {others}" if others else f"the placeholder {other}"
            said.append(
                f"{family.title}: found {kind} without {other} in {alone} of {np.count_nonzero(fits)} samples, and"
                f" {beside}; wanted runs of their own: where they share a batch, the model projects {kind} otherwise,"
                f" and {SEE}"
            )
    return said


def _long_documents(family: Family, lengths: LengthTable, fits: NDArray[np.bool_]) -> list[str]:
    if family.short_context is None:
        return []
    long = fits & (lengths.tokens > family.short_context)
    count, samples = int(np.count_nonzero(long)), int(np.count_nonzero(fits))
    if count in (0, samples):
        return []
    return [
        f"{family.title}: found more than {family.short_context} tokens in {count} of {samples} samples; wanted a"
        f" pack_size of at most that: where they share a batch, all get the model's long rotary factors, and {SEE}"
    ]


def check_plan(plan: PackPlan, config: LoaderConfig, planning: Planning) -> PackPlan:
    """The plan, if it is one of these lengths and this configuration; else what differs."""
    here: dict[str, int | str] = {
        "samples": len(planning.lengths),
        "lengths": lengths_fingerprint(planning.lengths),
        "pack_size": planning.capacity,
        "seed": config.seed,
        "algorithm": config.algorithm,
        "placing": config.placing,
    }
    found = made_of(plan)
    other = differences({name: found[name] for name in here}, here)
    if other or not _same_costs(plan, planning):
        raise ConfigError(
            found=f"a plan of something else: {other or 'another model (work)'}",
            wanted="one of this corpus and this configuration",
            consequence="make it again with `lading plan --out`",
            where="plan",
        )
    if not _same_tokens(plan, planning):
        raise ConfigError(
            found="a plan whose packs hold other tokens than their samples have",
            wanted="one that was made of these lengths",
            consequence="packs would be too long, or samples left out; make it again with `lading plan --out`",
            where="plan",
        )
    return plan


def _same_tokens(plan: PackPlan, planning: Planning) -> bool:
    """Whether every pack's tokens are those of its samples: the lengths may be the right ones, and the packs not."""
    tokens = planning.lengths.tokens
    own = tokens[plan.members].astype(np.int64)
    sums = np.add.reduceat(own, plan.starts[:-1].astype(np.int64)) if len(plan) else own
    return bool(
        (own > 0).all() and np.array_equal(sums, plan.tokens) and (tokens[plan.too_long] > planning.capacity).all()
    )


def _same_costs(plan: PackPlan, planning: Planning) -> bool:
    """Whether a plan's packs cost what they cost here, by the first of them: places are chosen by that."""
    if not len(plan):
        return True
    first = np.asarray(plan.pack(0), dtype=np.int64)
    tokens = planning.lengths.tokens[first].astype(np.int64)
    vision = vision_costs(planning.lengths, first, planning.work)
    own = pack_costs(tokens, vision, np.array([0, len(first)]), planning.work)
    return bool(np.allclose(own[0], plan.costs[0], rtol=1e-5))
