"""The table that is printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.result import Line, RowResult, Spread

HEAD = ("what", "ours", "theirs", "ratio", "goal", "")
VERDICTS = {True: "reached", False: "falls short", None: ""}


def table(results: Sequence[RowResult], *, judge: bool) -> str:
    """Every row with its lines; below it what was not run, and what bounds a figure that falls short."""
    return "\n".join(line for result in results for line in _block(result, judge))


def _block(result: RowResult, judge: bool) -> Iterator[str]:
    lines = result.lines(judge=judge)
    yield f"\n{result.row.title}: {result.row.what}"
    if lines:
        yield from _aligned([HEAD, *map(_cells, lines)])
    for name, why in result.missing.items():
        yield f"  not run, {name}: {why}"
    if result.row.bound and any(line.met is False for line in lines):
        yield f"  what bounds it: {result.row.bound}"


def _cells(line: Line) -> tuple[str, ...]:
    figure = line.figure
    name = figure.what if line.rival is None else f"{figure.what} | {line.rival}"
    theirs = shown(line.theirs, figure.unit) if line.theirs else "–"
    ratio = f"{line.ratio:.3g}x" if line.ratio is not None else "–"
    return (name, shown(line.ours, figure.unit), theirs, ratio, str(line.goal or ""), VERDICTS[line.met])


def shown(spread: Spread, unit: str) -> str:
    """A median with its spread, in a unit that suits it.

    >>> shown(Spread(median=0.0021, least=0.002, most=0.0030, runs=3), "s")
    '2.1 ms (2 to 3)'
    >>> shown(Spread(median=0, least=0, most=0, runs=1), "")
    '0'
    """
    times, unit = (1000.0, "ms") if unit == "s" and spread.median < 1 else (1.0, unit)
    middle = f"{_number(spread.median * times)} {unit}".strip()
    if spread.runs == 1 or spread.least == spread.most:
        return middle
    return f"{middle} ({_number(spread.least * times)} to {_number(spread.most * times)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    for row in rows:
        first, *rest = row
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        yield "  " + "  ".join(cells).rstrip()
