"""How evenly ranks are loaded: the default plan, the reference's order, and the best sort by one number.

    python benchmarks/balance.py [--lengths FOLDER] [--ranks 8 64] [--out FILE.json]

The lengths are those published with the OmniBal paper (visual tiles and tokens of 70,706 samples of four training
sets), and half as many documents of text, log-normal around 400 tokens, so that a third of all have no picture. Without
a folder of them, lengths of the same spread are made up. What is computed is an InternVL of eight billion parameters.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lading.families.internvl import FAMILY
from lading.plan import make_plan, plan_stats
from lading.plan.stats import neighbours_met_again
from lading.records import LengthTable

PACK_SIZE = 8192
SEED = 0
WAYS = {
    "lading (balanced, balanced)": ("balanced", "balanced"),
    "best fit, strips": ("best_fit", "balanced"),
    "best fit, sorted by all work": ("best_fit", "cost_sorted"),
    "best fit, sorted by vision": ("best_fit", "vt_sorted"),
    "first fit, shuffled (the reference's order)": ("first_fit", "shuffled"),
}


def main() -> None:
    """Print, and write, every way for every number of ranks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=Path, help="folder of JSON lists of {vit_num, token_num}")
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    tokens, tiles = published(options.lengths) if options.lengths else made_up()
    random = np.random.default_rng(SEED)
    text = random.lognormal(np.log(400), 1.0, len(tokens) // 2).astype(int).clip(16, PACK_SIZE)
    table = LengthTable.of(
        tokens=np.concatenate([tokens, text]), patches=np.concatenate([tiles, np.zeros(len(text), dtype=int)])
    )
    print(f"{len(table):,} documents, a third of them text (log-normal, seed {SEED}), packs of {PACK_SIZE:,}")
    results = [measure(table, name, ranks) for ranks in options.ranks for name in WAYS]
    if options.out:
        options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def measure(table: LengthTable, name: str, ranks: int) -> dict[str, object]:
    """Plan two epochs in one way and say how good the first is."""
    algorithm, placing = WAYS[name]
    started = time.perf_counter()
    plans = [
        make_plan(
            table,
            pack_size=PACK_SIZE,
            world_size=ranks,
            epoch=epoch,
            algorithm=algorithm,
            placing=placing,
            work=FAMILY.work,
        )
        for epoch in (0, 1)
    ]
    seconds = (time.perf_counter() - started) / 2
    stats = plan_stats(plans[0], table)
    again = neighbours_met_again(*plans)
    print(
        f"{ranks:3} ranks  {name:44} all work {stats.straggler:.4f}  vision {stats.straggler_vision:.4f}"
        f"  attention {stats.straggler_attention:.4f}  fill {stats.fill:.4f} ({stats.packs:,} packs, bound"
        f" {stats.lower_bound:,})  steps and work {stats.order_correlation:+.2f}"
        f"  neighbours again {again:.3f}  {seconds:.2f} s"
    )
    return {
        "ranks": ranks,
        "way": name,
        "work": stats.straggler,
        "vision": stats.straggler_vision,
        "attention": stats.straggler_attention,
        "fill": stats.fill,
        "packs": stats.packs,
        "lower_bound": stats.lower_bound,
        "order_correlation": stats.order_correlation,
        "vision_spread": stats.vision_spread,
        "neighbours_met_again": again,
        "seconds": seconds,
    }


def published(folder: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens and tiles of every sample of the folder."""
    rows = [row for path in sorted(folder.glob("*.json")) for row in json.loads(path.read_text(encoding="utf-8"))]
    return np.array([row["token_num"] for row in rows]), np.array([row["vit_num"] for row in rows])


def made_up() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens and tiles of samples that nobody saw, spread alike."""
    random = np.random.default_rng(SEED + 1)
    tiles = random.choice([1, 3, 5], 70_000, p=[0.1, 0.34, 0.56])
    return 256 * tiles + random.lognormal(np.log(90), 0.7, len(tiles)).astype(int).clip(33, 1258), tiles


if __name__ == "__main__":
    main()
