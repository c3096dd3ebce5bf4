"""Time and memory of planning, from ten thousand samples to a hundred million.

    python benchmarks/planning.py [--most 100000000] [--out benchmarks/results/planning.json] [--plot docs/planning.svg]

Each size is planned in a process of its own, so that its peak memory is its own: packs of 8192 for 64 ranks, of lengths
that are log-normal around 400 tokens, six in ten of them with pictures.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

CHILD = """
import json, resource, sys, time
import numpy as np
from lading.plan import make_plan
from lading.plan.file import save_plan
from lading.records import LengthTable
samples = int(sys.argv[1])
random = np.random.default_rng(0)
tokens = np.empty(samples, dtype=np.int32)
patches = np.empty(samples, dtype=np.int32)
for start in range(0, samples, 1 << 20):
    own = random.lognormal(6, 1, min(1 << 20, samples - start)).astype(np.int32).clip(16, 8192)
    tokens[start : start + len(own)] = own
    patches[start : start + len(own)] = 3 * own * (random.random(len(own)) < 0.6)
table = LengthTable.of(tokens=tokens, patches=patches)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
started = time.perf_counter()
plan = make_plan(table, pack_size=8192, world_size=64)
seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
fill = int(plan.tokens.sum()) / len(plan) / plan.pack_size
print(json.dumps({"samples": samples, "seconds": seconds, "peak_bytes": peak, "input_bytes": before,
                  "packs": len(plan), "fill": fill}))
"""

STYLE = (
    "<style>text{fill:#3d4752}circle{fill:#3566b8}polyline{stroke:#3566b8}"
    "@media(prefers-color-scheme:dark){text{fill:#d5dbe2}circle{fill:#6d9bdc}polyline{stroke:#6d9bdc}}</style>"
)


def main() -> None:
    """Plan every size up to the most, and draw the time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=100_000_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    sizes = [10**exponent for exponent in range(4, round(math.log10(options.most)) + 1)]
    results = []
    for size in sizes:
        done = subprocess.run([sys.executable, "-c", CHILD, str(size)], capture_output=True, text=True, check=True)
        result = json.loads(done.stdout)
        results.append(result)
        print(
            f"{size:12,} samples  {result['seconds']:8.2f} s  peak {result['peak_bytes'] / 2**30:6.2f} GiB"
            f" ({result['input_bytes'] / 2**30:.2f} before planning)  {result['packs']:,} packs"
            f"  fill {result['fill']:.4f}",
            flush=True,
        )
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if options.plot:
        options.plot.write_text(picture(results), encoding="utf-8")


def picture(results: list[dict[str, float]]) -> str:
    """Both axes logarithmic: a straight line is a cost that grows with the number of samples and no faster."""
    width, height, left, bottom = 640, 360, 70, 50
    sizes = [math.log10(result["samples"]) for result in results]
    times = [math.log10(max(result["seconds"], 1e-3)) for result in results]
    low, high = math.floor(min(times)), math.ceil(max(times))

    def x(value: float) -> float:
        return left + (value - sizes[0]) / max(1e-9, sizes[-1] - sizes[0]) * (width - left - 90)

    def y(value: float) -> float:
        return height - bottom - (value - low) / (high - low) * (height - bottom - 30)

    lines = [
        f'<line x1="{left}" x2="{width - 90}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#8a93a0" opacity=".35"/>'
        f'<text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{10.0**tick:g} s</text>'
        for tick in range(low, high + 1)
    ]
    lines += [
        f'<text x="{x(size):.1f}" y="{height - bottom + 22}" text-anchor="middle">10{superscript(round(size))}</text>'
        for size in sizes
    ]
    points = " ".join(f"{x(size):.1f},{y(time):.1f}" for size, time in zip(sizes, times, strict=True))
    lines.append(f'<polyline points="{points}" fill="none" stroke-width="2"/>')
    lines += [
        f'<circle cx="{x(size):.1f}" cy="{y(time):.1f}" r="4"/>'
        f'<text x="{x(size) + 8:.1f}" y="{y(time) + 14:.1f}" font-size="11">{short(result["seconds"])} s,'
        f" {result['peak_bytes'] / 2**30:.1f} GiB</text>"
        for size, time, result in zip(sizes, times, results, strict=True)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif"'
        f' font-size="12"><title>Time to plan, by number of samples</title>{STYLE}{"".join(lines)}'
        f'<text x="{(left + width - 90) / 2}" y="{height - 8}" text-anchor="middle">samples</text></svg>\n'
    )


def short(seconds: float) -> str:
    """Two digits of a time.

    >>> short(0.0312), short(256.2)
    ('0.031', '256')
    """
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.2g}"


def superscript(number: int) -> str:
    """A number as an exponent."""
    return "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(number))


if __name__ == "__main__":
    main()
