"""Figures are what their scripts draw, and legible by day and by night."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import planning
from docs.figures import balance, resume, sight
from lading.plan.costs import straggler_factor
from tests.support.shared import ROOT

FIGURES = ROOT / "docs" / "figures"


@pytest.mark.parametrize(
    ("name", "draw"), [("balance", balance.picture), ("resume", resume.picture), ("sight", sight.picture)]
)
def test_a_figure_is_what_its_script_draws(name: str, draw: Callable[[], str]) -> None:
    assert (FIGURES / f"{name}.svg").read_text(encoding="utf-8") == draw(), f"python -m docs.figures.{name}"


def test_the_planning_figure_is_drawn_from_its_results() -> None:
    results = sorted((ROOT / "benchmarks" / "results").glob("*-planning.json"))[-1]
    drawn = planning.picture(json.loads(results.read_text(encoding="utf-8")))
    assert (ROOT / "docs" / "planning.svg").read_text(encoding="utf-8") == drawn


def test_the_balance_figure_shows_what_the_page_says() -> None:
    ways = [balance.costs_of(plan) for plan in balance.plans(balance.lengths()).values()]
    shuffled, by_work, ours = [{name: straggler_factor(own) for name, own in way.items()} for way in ways]
    assert all(ours[name] < shuffled[name] for name in ours)
    assert by_work["all work"] < 1.01 < by_work["vision"] < by_work["attention"]
    assert ours["attention"] < by_work["attention"]
    assert ours["vision"] < by_work["vision"]


def test_the_resume_figure_trains_every_pack_once() -> None:
    steps = resume.columns()
    trained = [pack for _, packs, repeats in steps for pack in packs[: len(packs) - repeats]]
    assert sorted(trained) == list(range(resume.PACKS))
    assert sum(repeats for _, _, repeats in steps) == 2


@pytest.mark.parametrize("path", [*FIGURES.glob("*.svg"), ROOT / "docs" / "planning.svg"], ids=lambda path: path.stem)
def test_a_figure_is_legible_by_day_and_by_night(path: Path) -> None:
    """Every text has a contrast of at least 4.5 with the page behind it, as the accessibility guidelines want."""
    drawn = path.read_text(encoding="utf-8")
    if "<text" not in drawn:
        return
    night = drawn[drawn.index("prefers-color-scheme") :]
    by_day = re.findall(r"(?:text|\.faint) ?\{ ?fill: ?(#\w{6})", drawn.replace(night, ""))
    by_night = re.findall(r"(?:text|\.faint) ?\{ ?fill: ?(#\w{6})", night)
    assert by_day
    assert by_night
    assert min(contrast(colour, "#ffffff") for colour in by_day) >= 4.5
    # The page of the theme's dark scheme.
    assert min(contrast(colour, "#1e2129") for colour in by_night) >= 4.5


def contrast(one: str, other: str) -> float:
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
