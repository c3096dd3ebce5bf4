"""The cursor: how far an epoch has come, what the plan it counts in was made of, and what failed on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from lading import plain
from lading.errors import ConfigError
from lading.loader.config import LoaderConfig
from lading.loader.planning import Planning
from lading.plan.carry_on import EpochSegment
from lading.plan.costs import pack_costs, vision_costs
from lading.plan.fingerprint import costs_fingerprint, lengths_fingerprint, plan_fingerprint
from lading.records import Dropped, PackPlan

VERSION = 3
UNSEALED = 2
"""The version before: its states are read, too, and have no digest of themselves."""

DIGESTS: Mapping[str, str] = {
    "lengths": "lengths of samples: other data or media, another processor or setting of it, or another too_long",
    "costs": "costs of packs: another model, or work declared anew",
}
"""What a digest stands for, and why it may differ: by itself it says nothing to anybody."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cursor:
    """Law: together with the corpus and the configuration, this says which batch comes next, for any number of ranks.

    The steps of a segment are steps of the plan, not batches, so that a run may carry on with another batch size.
    """

    epoch: int
    segments: tuple[EpochSegment, ...]
    """The steps trained so far: with how many ranks, how many of them; the last segment is the one that goes on."""
    plan: str
    """Fingerprint of the packs."""
    made_of: Mapping[str, int | str]
    """What the plan was made of, to say what differs where the fingerprints do."""
    over: bool = False
    """Whether the epoch has no steps left, whatever became of its last packs."""
    dropped: tuple[Dropped, ...] = ()
    """What failed on the way here: the ledger of the run that carries on must know it."""

    @classmethod
    def of(cls, plan: PackPlan, corpus: Mapping[str, str]) -> Cursor:
        """The cursor to the beginning of a plan; `corpus` has a fingerprint of every source."""
        made = {**made_of(plan), **{f"source {name}": digest for name, digest in corpus.items()}}
        return cls(epoch=plan.epoch, segments=(), plan=plan_fingerprint(plan), made_of=made)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for a checkpoint, with a digest of them: damage must not pass for another step."""
        state = {
            "version": VERSION,
            "epoch": self.epoch,
            # The key of saved states since the first version.
            "stretches": [asdict(segment) for segment in self.segments],
            "plan": self.plan,
            "made_of": dict(self.made_of),
            "over": self.over,
            "dropped": [entry.to_dict() for entry in self.dropped],
        }
        return {**state, "digest": plain.digest(state)}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Cursor:
        """From a checkpoint, or from those of several ranks: then what failed on any of them is known."""
        if not isinstance(state, Mapping):
            _refuse_no_states(state)
            return _joined([cls.from_dict(one) for one in state])
        version = plain.whole(state.get("version"), "the version of a state")
        if version not in (VERSION, UNSEALED):
            raise plain.refused(version, "the version of a state", f"{VERSION}, as state_dict() gives it")
        names = ("version", "epoch", "stretches", "plan", "made_of", "over", "dropped")
        known = plain.named(state, "a state", names if version == UNSEALED else (*names, "digest"))
        made_of = plain.named(known["made_of"], "made_of")
        cursor = cls(
            epoch=plain.whole(known["epoch"], "epoch"),
            segments=_segments(known["stretches"]),
            plan=plain.text(known["plan"], "plan"),
            made_of={name: _fact(value, f"made_of: {name}") for name, value in made_of.items()},
            over=plain.flag(known["over"], "over"),
            dropped=tuple(
                Dropped.from_dict(entry, f"dropped sample {number}")
                for number, entry in enumerate(plain.listed(known["dropped"], "dropped"))
            ),
        )
        if version != UNSEALED and cursor.to_dict()["digest"] != plain.text(known["digest"], "digest"):
            raise ConfigError(
                found="a state that is not what state_dict() gave",
                wanted=f"one with the digest {known['digest']!r}",
                consequence="it was damaged or changed, and may point to another step; nothing was loaded",
                where="load_state_dict",
            )
        return cursor

    def beyond(self, steps: int) -> ConfigError:
        """What is wrong with a cursor that points behind its plan's last step."""
        return ConfigError(
            found=f"a cursor to step {self.segments[-1].steps}",
            wanted=f"one of the {steps} that its plan has",
            consequence="nothing was loaded",
            where="load_state_dict",
        )

    def not_over(self, left: int) -> ConfigError:
        """What is wrong with a cursor that calls an epoch over which has more left than a last step short of packs."""
        return ConfigError(
            found=f"a cursor that calls its epoch over, with {left} packs left",
            wanted=f"fewer than {self.segments[-1].world_size}, which make no step of its ranks",
            consequence="they would never be trained on; nothing was loaded",
            where="load_state_dict",
        )

    def check(self, here: Cursor) -> None:
        """Refuse a cursor into another plan or corpus than that of the cursor here, and say what differs."""
        if (self.plan, self.made_of) == (here.plan, here.made_of):
            for entry in self.dropped:
                plain.whole(entry.key.index, "the number of a dropped sample", most=int(here.made_of["samples"]) - 1)
            return
        raise ConfigError(
            found="a cursor of another plan: "
            + (differences(self.made_of, here.made_of) or "the same lengths, packed by other rules"),
            wanted="one of this corpus and this configuration",
            consequence="samples would be skipped or repeated; nothing was loaded",
            where="load_state_dict",
        )


def _segments(value: Any) -> tuple[EpochSegment, ...]:
    listed = plain.listed(value, "stretches")
    if not listed:
        # It would point to the beginning, whatever was trained on.
        raise plain.refused(value, "stretches", "one or more: the one that goes on is always among them")
    return tuple(EpochSegment.from_dict(segment, f"segment {number}") for number, segment in enumerate(listed))


def _fact(value: Any, place: str) -> int | str:
    return value if isinstance(value, str) else plain.whole(value, place)


def _refuse_no_states(states: object) -> None:
    if isinstance(states, (list, tuple)) and states:
        return
    raise ConfigError(
        found="no state in an empty list" if isinstance(states, (list, tuple)) else f"a {type(states).__name__}",
        wanted="what state_dict() gave, or a list of what it gave on every rank",
        consequence="nothing was loaded; was the checkpoint found?",
        where="load_state_dict",
    )


def differences(found: Mapping[str, int | str], here: Mapping[str, int | str]) -> str:
    """What is not as it is here, by name.

    >>> differences({"seed": 1, "pack_size": 8}, {"seed": 2, "pack_size": 8})
    'seed 1 where it is 2 here'
    """
    other = [name for name, value in here.items() if found.get(name) != value]
    return "; ".join(
        f"other {DIGESTS[name]}" if name in DIGESTS else f"{name} {found.get(name)!r} where it is {here[name]!r} here"
        for name in other
    )


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
    if other or not same_costs(plan, planning):
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


def same_costs(plan: PackPlan, planning: Planning) -> bool:
    """Whether a plan's packs cost what they cost here, by the first of them: places are chosen by that."""
    if not len(plan):
        return True
    first = np.asarray(plan.pack(0), dtype=np.int64)
    tokens = planning.lengths.tokens[first].astype(np.int64)
    vision = vision_costs(planning.lengths, first, planning.work)
    own = pack_costs(tokens, vision, np.array([0, len(first)]), planning.work)
    return bool(np.allclose(own[0], plan.costs[0], rtol=1e-5))


def made_of(plan: PackPlan) -> dict[str, int | str]:
    """Everything that decides who shares a pack, by name."""
    return {
        "samples": plan.samples,
        "lengths": plan.lengths,
        "pack_size": plan.pack_size,
        "seed": plan.seed,
        "algorithm": plan.algorithm,
        "placing": plan.placing,
        "costs": costs_fingerprint(plan),
    }


def _joined(cursors: Sequence[Cursor]) -> Cursor:
    if not cursors or any(
        (cursor.plan, cursor.segments) != (cursors[0].plan, cursors[0].segments) for cursor in cursors
    ):
        raise ConfigError(
            found=f"{len(cursors)} states that are not of one moment", wanted="those of all ranks after the same step"
        )
    return replace(cursors[0], dropped=_once(entry for cursor in cursors for entry in cursor.dropped))


def _once(entries: Iterable[Dropped]) -> tuple[Dropped, ...]:
    """Ranks that carried on together know the same of the past."""
    return tuple({entry.key.index: entry for entry in entries}.values())
