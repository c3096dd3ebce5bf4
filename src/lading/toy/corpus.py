"""A small mixed corpus on disk: drawn pictures, encoded clips, text, several turns, several pictures a turn.

Its texts are shapes, colours, sums and small stories, made from word lists; the same seed makes the same corpus.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from PIL import Image

Row = dict[str, Any]

CLIP_SIZE = (128, 96)
"""Width and height of a clip in pixels."""
CLIP_RATE = 8
"""Its frames a second."""
COLOURS = {
    "red": (214, 48, 49),
    "green": (39, 174, 96),
    "blue": (41, 98, 255),
    "yellow": (241, 196, 15),
    "purple": (142, 68, 173),
    "orange": (230, 126, 34),
}
SHAPES = ("circle", "square", "triangle")
PLACES = ("harbour", "station", "market", "library", "garden", "workshop")
GOODS = ("barrels", "crates", "letters", "lanterns", "sacks of grain", "bolts of cloth")
NAMES = ("Ada", "Bo", "Chi", "Dara", "Eli", "Fen")


def write_corpus(folder: str | Path, *, samples: int = 120, faults: bool = False, seed: int = 0) -> Path:
    """Write the corpus and return its meta file. With `faults`, one picture is missing and one line is broken.

    The mix: two in five samples show one picture, one in five several over several turns, one in ten a clip, and the
    rest are text alone. The same arguments write the same corpus.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    generator = random.Random(seed)
    writers: dict[str, tuple[Callable[[Path, random.Random, int], Row], int]] = {
        "shapes": (_one_picture, samples * 4 // 10),
        "albums": (_several_pictures, samples * 2 // 10),
        "clips": (_clip, max(1, samples // 10)),
        "talks": (_text, samples - samples * 4 // 10 - samples * 2 // 10 - max(1, samples // 10)),
    }
    for name, (write, count) in writers.items():
        rows = [write(folder, generator, number) for number in range(count)]
        _write_jsonl(folder / f"{name}.jsonl", rows)
    if faults:
        _add_faults(folder)
    meta = {name: {"file_name": f"{name}.jsonl", "media_dir": "media"} for name in writers}
    path = folder / "meta.json"
    path.write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")
    return path


def _one_picture(folder: Path, generator: random.Random, number: int) -> Row:
    picture, answer = _picture(folder, generator, f"shape-{number}")
    return {
        "conversations": [_turn("human", "<image>What do you see?"), _turn("gpt", answer)],
        "images": [picture],
    }


def _several_pictures(folder: Path, generator: random.Random, number: int) -> Row:
    drawn = [_picture(folder, generator, f"album-{number}-{place}") for place in range(generator.randint(2, 4))]
    conversations = [
        _turn("human", "<image><image>Which shapes are these?"),
        _turn("gpt", f"{drawn[0][1]} {drawn[1][1]}"),
    ]
    for _, answer in drawn[2:]:
        conversations += [_turn("human", "And the next one?\n<image>"), _turn("gpt", answer)]
    return {"conversations": conversations, "images": [picture for picture, _ in drawn]}


def _clip(folder: Path, generator: random.Random, number: int) -> Row:
    colour, shape = generator.choice(list(COLOURS)), generator.choice(SHAPES)
    name = f"clip-{number}.mp4"
    draw_clip(folder / "media" / name, colour, shape, frames=generator.randint(16, 40))
    return {
        "messages": [
            {"role": "user", "content": "<video>What moves here?"},
            {"role": "assistant", "content": describe(colour, shape).replace("It is", "There moves")},
        ],
        "videos": [name],
    }


def _text(folder: Path, generator: random.Random, number: int) -> Row:
    del folder
    if number % 2:
        return {
            "conversations": [
                _turn("human", "Tell me a story."),
                _turn("gpt", story(generator, generator.randint(1, 12))),
            ]
        }
    conversations = [_turn("system", "You are good at sums.")]
    for _ in range(generator.randint(1, 4)):
        question, answer = sum_question(generator)
        conversations += [_turn("human", question), _turn("gpt", answer)]
    return {"conversations": conversations}


def _picture(folder: Path, generator: random.Random, stem: str) -> tuple[str, str]:
    colour, shape = generator.choice(list(COLOURS)), generator.choice(SHAPES)
    name = f"{stem}.png"
    draw_picture(
        folder / "media" / name, colour, shape, width=generator.randint(40, 260), height=generator.randint(40, 200)
    )
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


def draw_picture(path: Path, colour: str, shape: str, *, width: int, height: int) -> None:
    """Draw one shape and save it; the ending of the name decides the format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _shape(colour, shape, width, height, 0.5).save(path)


def draw_clip(path: Path, colour: str, shape: str, *, frames: int) -> None:
    """Encode a clip in which the shape moves from left to right."""
    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=CLIP_RATE)
        stream.width, stream.height = CLIP_SIZE
        stream.pix_fmt = "yuv420p"
        for number in range(frames):
            picture = _shape(colour, shape, *CLIP_SIZE, 0.2 + 0.6 * number / frames)
            frame = av.VideoFrame.from_ndarray(np.asarray(picture), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def _shape(colour: str, shape: str, width: int, height: int, across: float) -> Image.Image:
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (width, height), (245, 245, 240))
    pen = ImageDraw.Draw(picture)
    reach = min(width, height) // 3
    x, y = int(width * across), height // 2
    box = (x - reach, y - reach, x + reach, y + reach)
    if shape == "circle":
        pen.ellipse(box, fill=COLOURS[colour])
    elif shape == "square":
        pen.rectangle(box, fill=COLOURS[colour])
    else:
        pen.polygon([(x, y - reach), (x + reach, y + reach), (x - reach, y + reach)], fill=COLOURS[colour])
    return picture


def describe(colour: str, shape: str) -> str:
    """One sentence about a drawn shape.

    >>> describe("orange", "square")
    'It is an orange square.'
    """
    return f"It is {'an' if colour[0] in 'aeiou' else 'a'} {colour} {shape}."


def sum_question(generator: random.Random) -> tuple[str, str]:
    first, second = generator.randint(1, 40), generator.randint(1, 40)
    return f"What is {first} plus {second}?", f"{first} plus {second} is {first + second}."


def story(generator: random.Random, sentences: int) -> str:
    lines = []
    for _ in range(sentences):
        name, place, other = generator.choice(NAMES), generator.choice(PLACES), generator.choice(PLACES)
        lines.append(
            f"{name} carried {generator.randint(2, 90)} {generator.choice(GOODS)} from the {place} to the {other}."
        )
    return " ".join(lines)


def sample_text(lines: int = 400) -> list[str]:
    """Text of this world, enough to train a small tokenizer on."""
    generator = random.Random(7)
    texts = [story(generator, 3) for _ in range(lines)]
    for _ in range(lines):
        texts += sum_question(generator)
    shapes = [describe(colour, shape) for colour in COLOURS for shape in SHAPES]
    questions = ["What do you see?", "Which shape is this?", "Tell me a story.", "And the second picture?"]
    return [*texts, *shapes, *questions, "You are a helpful assistant.", "system user assistant"]
