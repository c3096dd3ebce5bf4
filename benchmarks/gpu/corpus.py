"""A corpus made on the spot: pictures of as many tiles as in real question-and-answer sets, and plain talk.

Two in three documents show pictures: one of 1, 3, 4 or 5 tiles, as pictures of charts, diagrams and pages are cut, or
an album of two or three pages; with a question and an answer beside them. The rest are talk of log-normal length.
With tiles of 256 tokens a document has some 60 to 4000 tokens.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
from PIL import Image

from lading.toy.corpus import story

TILES = {(1,): 15, (3,): 35, (4,): 5, (5,): 30, (5, 5): 10, (5, 5, 5): 5}
"""The pictures of a document, in tiles, and how often it has such."""
PATCH = 28
TOKENS_A_SENTENCE = 15
LONGEST = 240
"""Sentences."""


def write_corpus(folder: Path, *, documents: int, tile_tokens: int, seed: int = 0) -> Path:
    """Write the corpus, once, and return its file."""
    path = folder / "corpus.jsonl"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        dice = random.Random(seed)
        scale = tile_tokens / 256
        rows = [
            _talk(dice, scale) if number % 3 == 2 else _shown(dice, folder, number, tile_tokens)
            for number in range(documents)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _shown(dice: random.Random, folder: Path, number: int, tile_tokens: int) -> dict[str, object]:
    tiles = dice.choices(list(TILES), weights=list(TILES.values()))[0]
    names = [f"{number}-{place}.jpg" for place in range(len(tiles))]
    for name, count in zip(names, tiles, strict=True):
        _draw(folder / name, count * tile_tokens, dice)
    question = "<image>" * len(tiles) + "What is written here?"
    return _row(question, story(dice, _sentences(dice, 110 * tile_tokens / 256, 0.7)), images=names)


def _talk(dice: random.Random, scale: float) -> dict[str, object]:
    return _row("Tell me a story.", story(dice, _sentences(dice, 350 * scale, 0.9)))


def _sentences(dice: random.Random, median_tokens: float, spread: float) -> int:
    return max(1, min(LONGEST, round(median_tokens * dice.lognormvariate(0.0, spread) / TOKENS_A_SENTENCE)))


def _row(question: str, answer: str, **more: object) -> dict[str, object]:
    return {"conversations": [{"from": "human", "value": question}, {"from": "gpt", "value": answer}], **more}


def _draw(path: Path, tokens: int, dice: random.Random) -> None:
    """A cloudy picture of about so many visual tokens, taller or wider than long."""
    ratio = dice.uniform(0.6, 1.6)
    height = max(2, round((tokens / ratio) ** 0.5)) * PATCH
    width = max(2, round((tokens * ratio) ** 0.5)) * PATCH
    noise = np.random.default_rng(dice.getrandbits(32)).integers(0, 256, (height // 14, width // 14, 3), dtype=np.uint8)
    Image.fromarray(noise).resize((width, height), Image.Resampling.BILINEAR).save(path, quality=85)
