"""What a row of the benchmark is made of: a job for each side, the figures they give, and the goal for each figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

Choice = TypeVar("Choice")


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """Where a row finds its inputs, and how large they are to be."""

    inputs: Path
    """The row's own folder; `prepare` fills it, both sides read it."""
    common: Path
    """Inputs that several rows share."""
    scratch: Path
    """Empty at the start of every run."""
    small: bool
    shared: Path | None
    """Real processors and data, where they are present."""

    def pick(self, full: Choice, small: Choice) -> Choice:
        """One of two, by size."""
        return small if self.small else full


Side = Callable[[Job], Mapping[str, float]]
"""Does the stated work and gives the figures, by name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """What a figure of ours should reach: so many times better than theirs, or a bound of its own.

    >>> Goal(times=10).met(ours=2.0, ratio=12.5), Goal(at_most=0).met(ours=1.0, ratio=None)
    (True, False)
    """

    times: float | None = None
    at_most: float | None = None
    at_least: float | None = None

    def met(self, *, ours: float, ratio: float | None) -> bool | None:
        """Whether it is reached; `None` where there is nothing to compare with."""
        if self.times is not None:
            return None if ratio is None else ratio >= self.times
        return (self.at_most is None or ours <= self.at_most) and (self.at_least is None or ours >= self.at_least)

    def __str__(self) -> str:
        if self.times is not None:
            return f"{self.times:g}x"
        return f"≤ {self.at_most:g}" if self.at_most is not None else f"≥ {self.at_least:g}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One number that both sides give."""

    name: str
    what: str
    unit: str = ""
    better: Literal["less", "more"] = "less"
    goal: Goal | None = None
    compared: bool = True
    """Whether "so many times better" says anything about it."""

    def ratio(self, ours: float, theirs: float) -> float | None:
        """How many times better ours is."""
        if not self.compared:
            return None
        over, under = (theirs, ours) if self.better == "less" else (ours, theirs)
        return over / under if under else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rival:
    """Another way to do the same job, in the reference's environment."""

    name: str
    package: str
    """The distribution it comes from."""
    call: str
    """The name of the row's function that does it."""
    judged: bool = True
    """Whether a goal of "so many times better" is meant against this one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One row. Its module has `prepare`, `ours`, and a function for each rival."""

    title: str
    what: str
    """One sentence: what is measured, and what is left out."""
    figures: tuple[Figure, ...]
    rivals: tuple[Rival, ...] = ()
    repeats: int = 5
    needs_shared: bool = False
    bound: str = ""
    """What keeps a figure from its goal, where it falls short."""
