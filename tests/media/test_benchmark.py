"""The benchmark of pixels runs, and says what it promises to."""

import subprocess
import sys

from tests.support.shared import ROOT

STAGES = ("decode (Pillow)", "resize", "patches", "normalise, float32", "sample, pixels='uint8'")


def test_it_says_where_the_time_goes() -> None:
    command = [
        sys.executable,
        str(ROOT / "benchmarks" / "pixels.py"),
        "--runs",
        "2",
        "--width",
        "320",
        "--height",
        "240",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    for stage in STAGES:
        line = next(line for line in done.stdout.splitlines() if line.strip().startswith(stage))
        assert float(line.split()[-1]) >= 0
