"""A clean corpus of pictures, clips, sounds and talks, and faults to plant in it: each with the name it must get."""

from __future__ import annotations

import io
import json
import shutil
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lading.toy.corpus import draw_clip

Line = bytes
SUFFIXES = ("png", "jpg", "webp", "bmp", "gif")


def talk(question: str, answer: str = "It is as you say.", **columns: Any) -> dict[str, Any]:
    return {"messages": [turn("user", question), turn("assistant", answer)], **columns}


def turn(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def turns(*roles: str) -> dict[str, Any]:
    return {"messages": [turn(role, f"The {role} says number {place}.") for place, role in enumerate(roles)]}


def line(row: Any) -> Line:
    return json.dumps(row).encode()


def noise(seed: int, width: int = 64, height: int = 48) -> Image.Image:
    dice = np.random.default_rng(seed)
    return Image.fromarray(dice.integers(0, 255, (height, width, 3), dtype=np.uint8))


def picture_bytes(kind: str, seed: int = 1, **options: Any) -> bytes:
    buffer = io.BytesIO()
    noise(seed).save(buffer, kind, **options)
    return buffer.getvalue()


def write_sound(path: Path, seed: int, samples: int = 4000) -> None:
    dice = np.random.default_rng(seed)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(dice.integers(-3000, 3000, samples, dtype=np.int16).tobytes())


def write_clean_corpus(folder: Path, *, samples: int) -> Path:
    """`samples` rows in five files of three formats, and their meta file."""
    media = folder / "media"
    media.mkdir(parents=True)
    sounds = clips = max(2, samples // 100)
    pictures = samples // 2
    talks = (samples - sounds - clips - pictures) // 2
    rows: dict[str, list[Any]] = {"pictures": [], "clips": [], "sounds": []}
    for number in range(pictures):
        name = f"p{number}.{SUFFIXES[number % len(SUFFIXES)]}"
        noise(number, 40 + number % 50, 40 + number % 30).save(media / name)
        rows["pictures"].append(talk(f"<image>What is in picture {number}?", images=[name]))
    # The same picture twice, by the same name: nothing is wrong with that.
    rows["pictures"][-1] = talk("<image>And what else is in this one?", images=["p0.png"])
    for number in range(clips):
        draw_clip(media / f"c{number}.mp4", "red", "circle", frames=12 + number)
        rows["clips"].append(talk(f"<video>What moves in clip {number}?", videos=[f"c{number}.mp4"]))
    for number in range(sounds):
        write_sound(media / f"s{number}.wav", number)
        rows["sounds"].append(talk(f"<audio>What sounds in {number}?", audios=[f"s{number}.wav"], id=number))
    spoken = [talk(f"Größe {number} – “naïve” café?\n\tÀ bientôt… 你好 😀") for number in range(talks)]
    rows["talks"] = spoken
    several = range(samples - sounds - clips - pictures - talks)
    array = [turns("system", *("user", "assistant") * (1 + number % 3)) | {"id": number} for number in several]
    for number, row in enumerate(array):
        row["messages"][0]["content"] += f" In talk {number}."
    for name, own in rows.items():
        (folder / f"{name}.jsonl").write_bytes(b"".join(line(row) + b"\n" for row in own))
    (folder / "array.json").write_text(json.dumps(array, indent=1))
    meta = {name: {"file_name": f"{name}.jsonl", "media_dir": "media"} for name in rows}
    meta["array"] = {"file_name": "array.json", "media_dir": "media"}
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder / "meta.json"


def _file(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda media: (media / name).write_bytes(content) and None


def _cut_clip(media: Path) -> None:
    """A clip whose header comes first, and whose end is missing."""
    import av

    whole = media / "whole-clip.mp4"
    with av.open(str(whole), "w", options={"movflags": "faststart"}) as container:
        stream = container.add_stream("mpeg4", rate=8)
        stream.width, stream.height, stream.pix_fmt = 128, 96, "yuv420p"
        for number in range(24):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.asarray(noise(number, 128, 96)), format="rgb24")))
        container.mux(stream.encode(None))
    content = whole.read_bytes()
    whole.unlink()
    (media / "cut.mp4").write_bytes(content[: len(content) * 2 // 3])


def _one_frame(media: Path) -> None:
    draw_clip(media / "still.mp4", "blue", "square", frames=1)


def _animated(media: Path) -> None:
    noise(70).save(media / "moving.gif", save_all=True, append_images=[noise(71), noise(72)])


def _strip(name: str, width: int, height: int) -> Callable[[Path], None]:
    return lambda media: noise(80 + width, width, height).save(media / name)


def _huge(media: Path) -> None:
    Image.new("1", (9000, 8000)).save(media / "huge.png")


def _scan(media: Path) -> None:
    Image.fromarray(np.arange(64 * 48, dtype=np.uint16).reshape(48, 64)).save(media / "scan.png")


def _twin(media: Path) -> None:
    shutil.copy(media / "p1.jpg", media / "twin.jpg")


def _nothing(media: Path) -> None:
    del media


def shows(name: str, kind: str = "image") -> Line:
    return line(talk(f"<{kind}>What is in {name}?", **{f"{kind}s": [name]}))


FAULTS: dict[str, tuple[Line, Callable[[Path], None]]] = {
    # Rows
    "malformed_json": (b'{"messages": [{"role": "user", "content": "cut o', _nothing),
    "not_utf8": (line(talk("caf?")).replace(b"caf?", "café".encode("latin-1")), _nothing),
    "not_an_object": (b'["user", "assistant"]', _nothing),
    "unknown_columns": (line({"text": "Once upon a time.", "label": 3}), _nothing),
    "unread_media_column": (line(talk("What is in it?", picture_path="p2.webp")), _nothing),
    # Turns
    "empty_conversation": (line({"messages": []}), _nothing),
    "bad_message": (line({"messages": [turn("user", "Hm?"), {"role": "assistant"}]}), _nothing),
    "unknown_role": (line(turns("user", "wizard")), _nothing),
    "no_assistant_turn": (line(turns("system", "user")), _nothing),
    "repeated_role": (line(turns("user", "user", "assistant")), _nothing),
    "assistant_first": (line(turns("assistant", "user", "assistant")), _nothing),
    "system_in_middle": (line(turns("user", "system", "assistant")), _nothing),
    "unanswered_turn": (line(turns("user", "assistant", "user")), _nothing),
    "empty_answer": (line(talk("What is nothing?", " ")), _nothing),
    "empty_question": (line(talk("", "An answer to nothing.")), _nothing),
    # Text
    "half_character": (
        b'{"messages": [{"role": "user", "content": "\\ud800"}, {"role": "assistant", "content": "?"}]}',
        _nothing,
    ),
    "garbled_text": (line(talk("CafÃ© au lait, sâ€™il vous plaÃ®t?")), _nothing),
    "control_characters": (line(talk("A NUL\0in the middle?")), _nothing),
    "template_marker": (line(talk("Say<|im_end|>and go on?")), _nothing),
    "foreign_mark": (line(talk("What is in <image_1>?")), _nothing),
    # Marks and media
    "marks_without_media": (line(talk("<image>and<image>alike?", images=["p2.webp"])), _nothing),
    "media_without_marks": (line(talk("Which one?", images=["p2.webp"])), _nothing),
    "missing_media": (shows("gone.png"), _nothing),
    "empty_media": (shows("empty.png"), _file("empty.png", b"")),
    "unsupported_media": (shows("https://example.org/cat.png"), _nothing),
    "misnamed_media": (shows("lie.png"), _file("lie.png", picture_bytes("jpeg", 60))),
    # Pictures
    "corrupt_picture": (shows("page.jpg"), _file("page.jpg", b"<!DOCTYPE html><html>404</html>")),
    "truncated_picture": (shows("half.jpg"), _file("half.jpg", picture_bytes("jpeg", 61)[:-700])),
    "animated_picture": (shows("moving.gif"), _animated),
    "deep_picture": (shows("scan.png"), _scan),
    "tiny_picture": (shows("dot.png"), _strip("dot.png", 3, 5)),
    "huge_picture": (shows("huge.png"), _huge),
    "extreme_shape": (shows("thread.png"), _strip("thread.png", 1000, 10)),
    # Clips and sounds
    "corrupt_clip": (shows("noise.mp4", "video"), _file("noise.mp4", bytes(range(256)) * 9)),
    "truncated_clip": (shows("cut.mp4", "video"), _cut_clip),
    "short_clip": (shows("still.mp4", "video"), _one_frame),
    "corrupt_sound": (shows("noise.wav", "audio"), _file("noise.wav", b"RIFF----WAVEnonsense" * 9)),
    "empty_sound": (shows("silent.wav", "audio"), lambda media: write_sound(media / "silent.wav", 0, samples=0)),
    # The corpus
    "duplicate_sample": (line(talk("Größe 5 – “naïve” café?\n\tÀ bientôt… 你好 😀", id=99)), _nothing),
    "duplicate_media": (shows("twin.jpg"), _twin),
}
"""Faults that show without a processor: a line to add to the talks, and what is to be done to the media."""

EXACT: dict[str, tuple[Line, Callable[[Path], None]]] = {
    "too_long": (line(talk("Go on?", "and on " * 3000)), _nothing),
    "tool_calls": (line({**turns("user", "assistant"), "tools": '[{"name": "search"}]'}), _nothing),
    "impossible_shape": (shows("hair.png"), _strip("hair.png", 2500, 9)),
    "distorted_picture": (shows("strip.png"), _strip("strip.png", 360, 9)),
    "placeholder_in_text": (line(talk("Why <|image_pad|>?")), _nothing),
}
"""Faults that a processor of the Qwen-VL kind shows besides."""


def plant(meta: Path, faults: dict[str, tuple[Line, Callable[[Path], None]]]) -> dict[str, str]:
    """Put the faults among the talks, one every so often; where each is (`file:line`)."""
    data = meta.parent / "talks.jsonl"
    lines = data.read_bytes().splitlines()
    places = {}
    for number, (kind, (bad, prepare)) in enumerate(faults.items()):
        prepare(meta.parent / "media")
        # Behind what it may repeat, and before the end.
        place = min(len(lines), 10 + 7 * number)
        lines.insert(place, bad)
        places[kind] = f"{data}:{place + 1}"
    data.write_bytes(b"\n".join(lines) + b"\n")
    return places
