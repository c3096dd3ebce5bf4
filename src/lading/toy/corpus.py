"""A small mixed corpus on disk: drawn pictures, encoded clips, text, several turns, several pictures a turn."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lading.toy.drawing import draw_clip, draw_picture
from lading.toy.texts import COLOURS, SHAPES, describe, story, sum_talk

Row = dict[str, Any]


def write_corpus(folder: str | Path, *, samples: int = 120, faults: bool = False, seed: int = 0) -> Path:
    """Write the corpus and return its meta file. With `faults`, one picture is missing and one line is broken.

    The mix: two in five samples show one picture, one in five several over several turns, one in ten a clip, and the
    rest are text alone. The same arguments write the same corpus.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    dice = random.Random(seed)
    writers: dict[str, tuple[Callable[[Path, random.Random, int], Row], int]] = {
        "shapes": (_one_picture, samples * 4 // 10),
        "albums": (_several_pictures, samples * 2 // 10),
        "clips": (_clip, max(1, samples // 10)),
        "talks": (_text, samples - samples * 4 // 10 - samples * 2 // 10 - max(1, samples // 10)),
    }
    for name, (write, count) in writers.items():
        rows = [write(folder, dice, number) for number in range(count)]
        _write_jsonl(folder / f"{name}.jsonl", rows)
    if faults:
        _add_faults(folder)
    meta = {name: {"file_name": f"{name}.jsonl", "media_dir": "media"} for name in writers}
    path = folder / "meta.json"
    path.write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")
    return path


def _one_picture(folder: Path, dice: random.Random, number: int) -> Row:
    picture, answer = _picture(folder, dice, f"shape-{number}")
    return {
        "conversations": [_turn("human", "<image>What do you see?"), _turn("gpt", answer)],
        "images": [picture],
    }


def _several_pictures(folder: Path, dice: random.Random, number: int) -> Row:
    drawn = [_picture(folder, dice, f"album-{number}-{place}") for place in range(dice.randint(2, 4))]
    conversations = [
        _turn("human", "<image><image>Which shapes are these?"),
        _turn("gpt", f"{drawn[0][1]} {drawn[1][1]}"),
    ]
    for _, answer in drawn[2:]:
        conversations += [_turn("human", "And the next one?\n<image>"), _turn("gpt", answer)]
    return {"conversations": conversations, "images": [picture for picture, _ in drawn]}


def _clip(folder: Path, dice: random.Random, number: int) -> Row:
    colour, shape = dice.choice(list(COLOURS)), dice.choice(SHAPES)
    name = f"clip-{number}.mp4"
    draw_clip(folder / "media" / name, colour, shape, frames=dice.randint(16, 40))
    return {
        "messages": [
            {"role": "user", "content": "<video>What moves here?"},
            {"role": "assistant", "content": describe(colour, shape).replace("It is", "There moves")},
        ],
        "videos": [name],
    }


def _text(folder: Path, dice: random.Random, number: int) -> Row:
    del folder
    if number % 2:
        return {"conversations": [_turn("human", "Tell me a story."), _turn("gpt", story(dice, dice.randint(1, 12)))]}
    conversations = [_turn("system", "You are good at sums.")]
    for _ in range(dice.randint(1, 4)):
        question, answer = sum_talk(dice)
        conversations += [_turn("human", question), _turn("gpt", answer)]
    return {"conversations": conversations}


def _picture(folder: Path, dice: random.Random, stem: str) -> tuple[str, str]:
    colour, shape = dice.choice(list(COLOURS)), dice.choice(SHAPES)
    name = f"{stem}.png"
    draw_picture(folder / "media" / name, colour, shape, width=dice.randint(40, 260), height=dice.randint(40, 200))
    return name, describe(colour, shape)


def _turn(who: str, says: str) -> dict[str, str]:
    return {"from": who, "value": says}


def _write_jsonl(path: Path, rows: list[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _add_faults(folder: Path) -> None:
    missing = {
        "conversations": [_turn("human", "<image>Who is this?"), _turn("gpt", "Nobody.")],
        "images": ["no-such-picture.png"],
    }
    with (folder / "shapes.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(missing) + "\n")
    with (folder / "talks.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"conversations": [{"from": "human", "value": "cut o\n')
