"""The figures on the page of benchmarks, and in the README, are those of the runs that are kept."""

import json
import re
from typing import Any

import pytest

from tests.support.shared import ROOT

RESULTS = ROOT / "benchmarks" / "results"
TEXT = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
RUN: dict[str, Any] = json.loads((RESULTS / "2026-11-17.json").read_text(encoding="utf-8"))
FIGURES = {(line["figure"]["name"], line["row"], line["rival"]): line for row in RUN["rows"] for line in row["lines"]}
RIVAL = "NeMo Automodel"
COMPARED = {
    "open a million conversations, first time": ("first", "row_02_open_file", RIVAL),
    "open them again": ("again", "row_02_open_file", RIVAL),
    "plan packs for them": ("seconds", "row_03_plan_packs", f"{RIVAL}, its planning"),
    "the same, against its knapsack alone": ("seconds", "row_03_plan_packs", f"{RIVAL}, its knapsack alone"),
    "count the tokens of 100,000, western text, exactly": (
        "seconds",
        "row_04_count_tokens",
        f"{RIVAL}, its script's way",
    ),
    "count the tokens of 20,000 in Chinese, exactly": (
        "seconds_chinese",
        "row_04_count_tokens",
        f"{RIVAL}, its script's way",
    ),
    "labels of 32k tokens": ("seconds", "row_05_find_labels", RIVAL),
    "build a pack of 32k tokens with pictures, as bytes": ("seconds_uint8", "row_06_build_pack", RIVAL),
    "the same, as floats": ("seconds", "row_06_build_pack", RIVAL),
    "a sample with a JPEG of 1024×768, as bytes, with the rest of its pack": (
        "seconds_uint8",
        "row_08_picture_sample",
        RIVAL,
    ),
    "the same, each sample dropped before the next": ("seconds_uint8_dropped", "row_08_picture_sample", RIVAL),
    "the whole loader over JPEGs, as bytes": ("rate_uint8", "row_09_whole_loader", f"{RIVAL}, flash attention"),
    "the whole loader over JPEGs, as floats": ("rate", "row_09_whole_loader", f"{RIVAL}, flash attention"),
}
"""Lines of the page with a ratio, and where it is kept."""
UNITS = {"s": 1.0, "ms": 0.001, "tokens/s": 1.0, "MB": 1.0}


def cells(label: str, text: str = TEXT) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {label} |")]
    return [cell.strip().replace("*", "") for cell in line.strip("|").split("|")][1:]


def amount(cell: str) -> float:
    """The first figure of a cell, in the unit of the kept ones."""
    found = re.match(r"([\d.,]+) (tokens/s|ms|s|MB)\b", cell)
    assert found, cell
    return float(found[1].replace(",", "")) * UNITS[found[2]]


@pytest.mark.parametrize("label", COMPARED)
def test_a_speed_is_the_one_that_was_measured(label: str) -> None:
    ours, theirs, ratio, *_ = cells(label)
    kept = FIGURES[COMPARED[label]]
    assert amount(ours) == pytest.approx(kept["ours"]["median"], rel=0.03)
    assert amount(theirs) == pytest.approx(kept["theirs"]["median"], rel=0.03)
    assert float(ratio.split()[0].replace(",", "")) == pytest.approx(kept["ratio"], rel=0.03)


def test_every_line_with_a_ratio_is_compared() -> None:
    table = TEXT.split("## Speed", 1)[1].split("## ", 1)[0]
    labels = [line.split("|")[1].strip() for line in table.splitlines() if re.search(r"\| [\d.,]+ (times|and)", line)]
    assert labels == list(COMPARED)


def test_samples_lost_are_those_that_were_counted() -> None:
    for rival in ("no counts", "no counts, 10 % headroom", "its own counts", "its own counts, 10 % headroom"):
        lost, fill = cells(f"NeMo Automodel 0.7.0, {rival}")
        kept = [FIGURES[name, "row_01_samples_lost", f"{RIVAL}, {rival}"] for name in ("lost_2048", "fill_2048")]
        assert int(lost) == kept[0]["theirs"]["median"]
        assert float(fill.split()[0]) == pytest.approx(kept[1]["theirs"]["median"], abs=0.05)
        ours = cells("lading", TEXT.split("## Speed")[0])
        assert int(ours[0]) == kept[0]["ours"]["median"]
        assert float(ours[1].split()[0]) == pytest.approx(kept[1]["ours"]["median"], abs=0.05)


def test_balance_is_the_one_that_was_computed() -> None:
    kept = json.loads((RESULTS / "2026-11-16-balance.json").read_text(encoding="utf-8"))
    ways = {own["way"].split(" (")[0]: own for own in kept if own["ranks"] == 64}
    text = TEXT.split("## Balance among ranks", 1)[1]
    lines = {"lading": "lading", "best fit, sorted by all work": "best fit, sorted by all work"}
    for label, name in {**lines, "shuffled packs": "first fit, shuffled"}.items():
        shown = [float(cell) for cell in cells(label, text)]
        wanted = [round(ways[name][cost], 3) for cost in ("work", "vision", "attention")]
        assert shown == wanted, label


def test_the_readme_repeats_figures_of_the_page() -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## Benchmarks\n", 1)[1].split("\n## ", 1)[0]
    figures = re.findall(r"\d[\d.,]*\d|\d+ of|\b\d+ times", section)
    assert len(figures) >= 4
    page = TEXT.replace("*", "")
    for figure in figures:
        number = figure.split()[0]
        assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d.,]*\d)", page), figure
