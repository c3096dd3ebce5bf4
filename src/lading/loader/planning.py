"""From counted lengths to a plan, as the configuration says: the loader and `lading plan` go the same way."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from lading.loader.cautions import cautions
from lading.loader.config import LoaderConfig
from lading.media import placeholder as placeholder_media
from lading.plan import make_plan
from lading.plan.capacity import sample_capacity
from lading.records import Encoded, LengthTable, PackPlan, Work
from lading.samples.samples import Samples
from lading.samples.truncation import fit

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
