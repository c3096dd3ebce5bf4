"""What the toy world talks about: shapes, colours, sums and small stories. All of it is made from word lists."""

from __future__ import annotations

import random

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


def describe(colour: str, shape: str) -> str:
    """One sentence about a drawn shape.

    >>> describe("orange", "square")
    'It is an orange square.'
    """
    return f"It is {'an' if colour[0] in 'aeiou' else 'a'} {colour} {shape}."


def sum_talk(dice: random.Random) -> tuple[str, str]:
    """A question and its answer."""
    first, second = dice.randint(1, 40), dice.randint(1, 40)
    return f"What is {first} plus {second}?", f"{first} plus {second} is {first + second}."


def story(dice: random.Random, sentences: int) -> str:
    """A short story about goods and places."""
    lines = []
    for _ in range(sentences):
        name, place, other = dice.choice(NAMES), dice.choice(PLACES), dice.choice(PLACES)
        lines.append(f"{name} carried {dice.randint(2, 90)} {dice.choice(GOODS)} from the {place} to the {other}.")
    return " ".join(lines)


def sample_text(lines: int = 400) -> list[str]:
    """Text of this world, enough to train a small tokenizer on."""
    dice = random.Random(7)
    talk = [story(dice, 3) for _ in range(lines)]
    for _ in range(lines):
        talk += sum_talk(dice)
    shapes = [describe(colour, shape) for colour in COLOURS for shape in SHAPES]
    questions = ["What do you see?", "Which shape is this?", "Tell me a story.", "And the second picture?"]
    return [*talk, *shapes, *questions, "You are a helpful assistant.", "system user assistant"]
