"""What a person has who reads the README: a LLaVA-style JSON, pictures and a processor folder."""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image

from lading import toy

COLOURS = ("red", "green", "blue", "white")


def lay_out(folder: Path, processor: Path | None = None) -> int:
    """Put these into a folder; how many conversations there are. Without a processor, a small one is made."""
    (folder / "images" / "bus").mkdir(parents=True)
    rows = []
    for number, colour in enumerate(COLOURS):
        name = f"bus/{number:012}.jpg"
        Image.new("RGB", (112, 84), colour).save(folder / "images" / name)
        said = "<image>\nWhich colour is it?" if number % 2 else "Which colour is it?\n<image>"
        turns = [{"from": "human", "value": said}, {"from": "gpt", "value": f"It is {colour}."}]
        rows.append({"id": f"{number:012}", "image": name, "conversations": turns})
    talk = [{"from": "human", "value": "Hello!"}, {"from": "gpt", "value": "Hi. What may I look at?"}]
    rows.append({"id": "text", "model": "", "conversations": talk})
    (folder / "llava.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    if processor is None:
        toy.processor("qwen2_5_vl").save_pretrained(folder / "processor")
    else:
        (folder / "processor").symlink_to(processor.resolve(), target_is_directory=True)
    return len(rows)
