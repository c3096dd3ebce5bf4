"""The benchmark runs, small: what is measured here says nothing about speed."""

import doctest
import importlib
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import reference, result, row, rows, table
from tests.support.shared import ROOT

QUICK = ("row_01_samples_lost",)
REFERENCE = ROOT / "build" / "bench-reference"


def bench(out: Path, names: tuple[str, ...], folder: Path) -> tuple[str, dict[str, dict[str, object]]]:
    """Run it with the reference in `folder`, if it is there: nothing is installed."""
    chosen = [word for name in names for word in ("--row", name)]
    places = ["--reference", str(folder), "--work", str(out / "work"), "--out", str(out)]
    options = ["--small", "--no-install", *places, *chosen]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.run", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (written,) = out.glob("*.json")
    (drawn,) = out.glob("*.svg")
    ElementTree.parse(drawn)
    return done.stdout, {entry["name"]: entry for entry in json.loads(written.read_text())["rows"]}


def check_row(name: str, entry: dict[str, object], printed: str, folder: Path) -> None:
    """Ours gave every figure; each rival did so too, or it is said by name why it did not."""
    own = importlib.import_module(f"benchmarks.rows.{name}").ROW
    runs, missing = entry["runs"], entry["missing"]
    assert isinstance(runs, dict)
    assert isinstance(missing, dict)
    wanted = {figure.name for figure in own.figures}
    assert wanted <= set(runs["ours"][0]) <= {figure.name for figure in own.figures}
    for rival in own.rivals:
        assert (rival.name in missing) == (reference.Reference(folder).version(rival.package) is None)
        assert len(runs[rival.name]) == (rival.name not in missing)
        if rival.name in missing:
            assert f"not run, {rival.name}: {missing[rival.name]}" in printed


def test_quick_rows_run_without_the_reference(tmp_path: Path) -> None:
    printed, entries = bench(tmp_path, QUICK, tmp_path / "nowhere")
    for name in QUICK:
        check_row(name, entries[name], printed, tmp_path / "nowhere")
    assert "nemo-automodel 0.7.0 is not installed" in printed
    lost = entries["row_01_samples_lost"]["runs"]["ours"][0]  # type: ignore[index]
    assert (lost["lost_2048"], lost["lost_4096"]) == (0, 0)


@pytest.mark.slow
def test_every_row_runs(tmp_path: Path) -> None:
    printed, entries = bench(tmp_path, (), REFERENCE)
    assert list(entries) == rows.names()
    for name, entry in entries.items():
        check_row(name, entry, printed, REFERENCE)


@pytest.mark.parametrize("name", rows.names())
def test_a_row_is_whole(name: str) -> None:
    module = importlib.import_module(f"benchmarks.rows.{name}")
    functions = {"prepare", "ours", *(rival.call for rival in module.ROW.rivals)}
    assert [function for function in functions if not callable(vars(module).get(function))] == []
    assert module.ROW.what.endswith(".")
    names = [figure.name for figure in module.ROW.figures]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("module", [result, row, table], ids=lambda module: module.__name__)
def test_examples_in_the_harness(module: object) -> None:
    done = doctest.testmod(module)  # type: ignore[arg-type]
    assert done.attempted
    assert not done.failed


def figure_of(**options: object) -> row.Figure:
    return row.Figure(name="time", what="time", unit="s", **options)  # type: ignore[arg-type]


def lines_of(own: row.Figure, ours: list[float], theirs: list[float]) -> list[result.Line]:
    rival = row.Rival(name="theirs", package="nemo-automodel", call="theirs")
    made = row.Row(title="t", what="w.", figures=(own,), rivals=(rival,))
    runs = {"theirs": [{"time": number} for number in theirs]}
    return result.RowResult(
        name="n", row=made, ours=[{"time": number} for number in ours], theirs=runs, missing={}
    ).lines(judge=True)


def test_goals_are_judged_by_medians() -> None:
    goal = row.Goal(times=10)
    (good,) = lines_of(figure_of(goal=goal), [1.0, 9.0, 1.0], [12.0, 12.0, 1.0])
    (short,) = lines_of(figure_of(goal=goal), [2.0, 2.0, 0.1], [12.0, 12.0, 99.0])
    (alone,) = lines_of(figure_of(goal=goal), [2.0], [])
    (more,) = lines_of(figure_of(goal=row.Goal(times=3), better="more"), [30.0], [10.0])
    assert [(line.ratio, line.met) for line in (good, short, alone, more)] == [
        (12.0, True),
        (6.0, False),
        (None, None),
        (3.0, True),
    ]
