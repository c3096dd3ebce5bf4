"""Inputs made from seeds: the same on every machine, and the same files for both sides."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.row import Job

SYLLABLES = ("ba", "co", "den", "el", "fir", "gra", "hu", "in", "jo", "kel", "lan", "mor", "ne", "or", "pra", "qui")
REAL_PROCESSOR = "qwen2_5_vl"
DATA_SET = "talks"


def processor_folder(job: Job) -> Path:
    """The real Qwen2.5-VL processor where it is present and the size is full, else the toy one, saved once."""
    if not job.small and job.shared is not None:
        return job.shared / "processors" / REAL_PROCESSOR
    folder = job.common / "toy-processor"
    if not folder.exists():
        from lading import toy

        toy.processor(REAL_PROCESSOR).save_pretrained(folder)
    return folder


def write_talks(folder: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Rows as JSONL, and a meta file that both sides understand; what is there already is kept."""
    meta = folder / "meta.json"
    if not meta.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{DATA_SET}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        entry = {"file_name": f"{DATA_SET}.jsonl", "media_dir": str(folder / "media")}
        meta.write_text(json.dumps({DATA_SET: entry}), encoding="utf-8")
    return meta


def talk(question: str, answer: str, **more: Any) -> dict[str, Any]:
    """One row of one question and one answer."""
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return {"messages": messages, **more}


def text_talks(lines: int, *, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Conversations of text, 700 bytes a line on average, with a long tail."""
    dice = random.Random(seed)
    sentences = [sentence(dice) for _ in range(5_000)]
    for _ in range(lines):
        count = 1 + int(dice.lognormvariate(1.53, 0.6))
        yield talk(dice.choice(sentences), " ".join(dice.choices(sentences, k=count)))


def chinese_talks(lines: int, *, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Conversations in Chinese characters, drawn at random; no sentence comes again."""
    dice = random.Random(seed)
    characters = [chr(number) for number in range(0x4E00, 0x4E00 + 3_000)]

    def said(sentences: int) -> str:
        return "".join("".join(dice.choices(characters, k=dice.randint(8, 30))) + "。" for _ in range(sentences))

    for _ in range(lines):
        yield talk(said(1), said(1 + int(dice.lognormvariate(1.53, 0.6))))


def sentence(dice: random.Random) -> str:
    """A sentence of made-up words."""
    words = ["".join(dice.choices(SYLLABLES, k=dice.randint(1, 4))) for _ in range(dice.randint(6, 18))]
    return " ".join(words).capitalize() + "."


def text_of(dice: random.Random, sentences: int) -> str:
    """Several sentences."""
    return " ".join(sentence(dice) for _ in range(sentences))


def write_picture(path: Path, *, width: int, height: int, seed: int) -> None:
    """A JPEG with soft colours, edges and some grain, so that it takes as long to decode as a photograph."""
    import numpy as np
    from PIL import Image

    random_numbers = np.random.default_rng(seed)
    coarse = random_numbers.integers(0, 256, (height // 64 + 2, width // 64 + 2, 3), dtype=np.uint8)
    soft = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
    grain = random_numbers.normal(0.0, 8.0, (height, width, 1))
    blocks = random_numbers.integers(-24, 25, (height // 24 + 1, width // 24 + 1, 1))
    edges = np.kron(blocks, np.ones((24, 24, 1)))[:height, :width]
    picture = np.clip(np.asarray(soft, dtype=np.float64) + grain + edges, 0, 255).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path, quality=90)


def picture_talks(folder: Path, count: int, *, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Conversations about JPEGs of about 1024×768, upright and lying, made on the way."""
    dice = random.Random(seed)
    for number in range(count):
        sides = [dice.randrange(640, 1153, 32), dice.randrange(480, 865, 32)]
        dice.shuffle(sides)
        name = f"picture-{number}.jpg"
        write_picture(folder / "media" / name, width=sides[0], height=sides[1], seed=seed + number)
        yield talk("<image>" + sentence(dice), text_of(dice, dice.randint(1, 10)), images=[name])
