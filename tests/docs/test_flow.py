"""The walk of a sample on the page about the flow is what a profiler sees."""

import json
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from PIL import Image

import lading
from tests.support.shared import ROOT

SOURCE = ROOT / "src" / "lading"
PAGE = ROOT / "docs" / "flow.md"
STEP = re.compile(r"^(\S+\.py) +(\S+)", re.MULTILINE)


def described() -> list[tuple[str, str]]:
    """(file, function) of each step of the page's walk."""
    section = PAGE.read_text(encoding="utf-8").split("## The walk of a sample, file by file", 1)[1]
    block = section.split("```text\n", 1)[1].split("```", 1)[0]
    return STEP.findall(block)


def seen(folder: Path) -> list[tuple[str, str]]:
    """The files that a pack of one picture passes on its way to a batch, each with the function it is entered by."""
    Image.new("RGB", (120, 90), "red").save(folder / "card.png")
    talk = [{"role": "user", "content": "<image>What is it?"}, {"role": "assistant", "content": "A red card."}]
    (folder / "one.jsonl").write_text(json.dumps({"messages": talk, "images": ["card.png"]}) + "\n")
    parts = lading.Loader(folder / "one.jsonl", "toy:qwen2_5_vl", pack_size=512, cache=False).parts()
    entered: dict[str, str] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(SOURCE) and not frame.f_code.co_name.startswith("<"):
            entered.setdefault(path.relative_to(SOURCE).as_posix(), frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        parts["collate_fn"]([parts["dataset"][0]])
    finally:
        sys.setprofile(before)
    return list(entered.items())


def test_the_walk_on_the_page_is_what_a_profiler_sees(tmp_path: Path) -> None:
    assert described() == seen(tmp_path)
