"""Where the time of one picture goes: decoding, resizing, cutting patches, scaling; and a whole sample, each way.

    python benchmarks/pixels.py --processor toy:qwen2_5_vl --width 1024 --height 768

One thread, as in a worker. For every stage the median and the least of many runs, in milliseconds of this process's own
time, so that a busy machine matters less.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from lading import PixelNormaliser
from lading.encode import Encoder
from lading.loader import ProcessorFacts, Samples, load_processor, read_processor
from lading.media import image, measure
from lading.media.raw import RawPatches
from lading.records import MediaPart
from lading.sources import open_corpus


def photograph(width: int, height: int) -> bytes:
    """A JPEG as large as one of a camera: smooth shapes and a little grain."""
    random = np.random.default_rng(0)
    shapes = Image.fromarray(random.integers(0, 256, (height // 16, width // 16, 3), np.uint8))
    smooth = np.asarray(shapes.resize((width, height), Image.Resampling.BICUBIC), dtype=np.int16)
    grain = random.integers(-8, 8, (height, width, 3), np.int16)
    file = io.BytesIO()
    Image.fromarray(np.clip(smooth + grain, 0, 255).astype(np.uint8)).save(file, "JPEG", quality=90)
    return file.getvalue()


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(line + "\n")


def timed(name: str, work: Callable[[], object], runs: int) -> float:
    """Say the median and the least time of some work; give the median."""
    work()
    taken = []
    for _ in range(runs):
        start = time.process_time()
        work()
        taken.append((time.process_time() - start) * 1e3)
    median = float(np.median(taken))
    say(f"  {name:<44} {median:7.2f} {min(taken):7.2f}")
    return median


def stages(facts: ProcessorFacts, jpeg: bytes, runs: int) -> None:
    """Each stage by itself."""
    raw = facts.raw
    if not isinstance(raw, RawPatches):
        raise SystemExit("this processor's pixels are made by its own class alone")
    part = MediaPart(kind="image", reference=jpeg)
    footprint = facts.geometries["image"].footprints([measure(part)])[0]
    picture = image.decode(part)
    frames = image.pixels(part)[None]
    resized = raw.pictures._resized(frames, footprint.grid)
    patches = raw.pictures.cut([frames], [footprint.grid])
    normalise = PixelNormaliser(raw.scales)
    timed("decode (Pillow)", lambda: image.decode(part), runs)
    decode = timed("decode", lambda: image.pixels(part), runs)
    rest = timed("resize", lambda: raw.pictures._resized(frames, footprint.grid), runs)
    rest += timed("patches", lambda: raw.pictures._write(resized, footprint.grid, patches.numpy()), runs)
    say(f"  {'all but decoding, over decoding':<44} {rest / decode:7.2f}")
    timed("normalise, float32", lambda: normalise({"pixel_values": patches}), runs)
    timed("normalise, bfloat16", lambda: normalise({"pixel_values": patches}, dtype=torch.bfloat16), runs)
    side = raw.pictures.patch
    wanted = footprint.grid[1] * side, footprint.grid[2] * side
    timed("decode (draft)", lambda: image.decode(part, at_least=wanted), runs)
    timed("the processor, from the decoded picture", lambda: facts.processor.image_processor(picture), runs)


def samples(facts: ProcessorFacts, jpeg: bytes, runs: int) -> None:
    """A whole sample: read, rendered, tokenised, decoded, cut."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "picture.jpg").write_bytes(jpeg)
        messages = [{"role": "user", "content": "<image>What is it?"}, {"role": "assistant", "content": "Noise."}]
        row = {"messages": messages, "images": ["picture.jpg"]}
        (folder / "corpus.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
        encoder = Encoder(facts=facts)
        numbers = Samples(corpus=open_corpus(folder / "corpus.jsonl"), encoder=encoder)
        ways = {
            "sample by the processor's own class": replace(numbers, encoder=Encoder(facts=replace(facts, raw=None))),
            "sample, pixels='model'": numbers,
            "sample, pixels='uint8'": replace(numbers, encoder=replace(encoder, pixels="uint8")),
            "sample, pixels='uint8', draft": replace(numbers, encoder=replace(encoder, pixels="uint8", draft=True)),
        }
        for way, own in ways.items():
            timed(way, lambda own=own: own.encode(0), runs)  # type: ignore[misc]  # mypy cannot infer a lambda's default


def main() -> None:
    """Say all of it."""
    parser = argparse.ArgumentParser(description="Where the time of one picture goes.")
    parser.add_argument("--processor", default="toy:qwen2_5_vl", help="a folder, a hub id or toy:NAME")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--height", type=int, default=768)
    parser.add_argument("--runs", type=int, default=50)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    jpeg = photograph(asked.width, asked.height)
    facts = read_processor(load_processor(asked.processor))
    say(f"{facts.family.title}, a JPEG of {asked.width}x{asked.height}, {len(jpeg) // 1000} kB")
    say(f"  {'milliseconds':<44} {'median':>7} {'least':>7}")
    stages(facts, jpeg, asked.runs)
    samples(facts, jpeg, asked.runs)


if __name__ == "__main__":
    main()
