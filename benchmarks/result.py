"""What the runs gave: medians and spread, line by line."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.row import Figure, Goal, Rival, Row

Runs = Sequence[Mapping[str, float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """The median of several runs, the least and the most."""

    median: float
    least: float
    most: float
    runs: int

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Spread:
        """The spread of these numbers.

        >>> Spread.of([3.0, 1.0, 2.0])
        Spread(median=2.0, least=1.0, most=3.0, runs=3)
        """
        return cls(median=statistics.median(numbers), least=min(numbers), most=max(numbers), runs=len(numbers))


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One figure of ours against one rival, or alone."""

    row: str
    title: str
    figure: Figure
    ours: Spread
    rival: str | None
    theirs: Spread | None
    ratio: float | None
    goal: Goal | None
    """What is wanted, where this rival is one to be measured by."""
    met: bool | None
    """Whether the goal is reached; `None` where there is none, or nothing to judge it by."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowResult:
    """Everything about one row: what was run, and what was not and why."""

    name: str
    row: Row
    ours: Runs
    theirs: Mapping[str, Runs]
    """By the rival's name."""
    missing: Mapping[str, str]
    """Why a side was not run, by its name."""

    def lines(self, *, judge: bool) -> list[Line]:
        """The lines of the table; goals are judged at full size only."""
        if not self.ours:
            return []
        return [line for figure in self.row.figures for line in self._lines_of(figure, judge)]

    def _lines_of(self, figure: Figure, judge: bool) -> list[Line]:
        rivals = [rival for rival in self.row.rivals if any(figure.name in run for run in self.theirs[rival.name])]
        return [self._line(figure, rival, judge) for rival in rivals] or [self._line(figure, None, judge)]

    def _line(self, figure: Figure, rival: Rival | None, judge: bool) -> Line:
        ours = Spread.of([run[figure.name] for run in self.ours])
        theirs = Spread.of([run[figure.name] for run in self.theirs[rival.name]]) if rival else None
        ratio = figure.ratio(ours.median, theirs.median) if theirs else None
        goal = figure.goal if rival is None or rival.judged else None
        return Line(
            row=self.name,
            title=self.row.title,
            figure=figure,
            ours=ours,
            rival=rival.name if rival else None,
            theirs=theirs,
            ratio=ratio,
            goal=goal,
            met=goal.met(ours=ours.median, ratio=ratio) if goal and judge else None,
        )
