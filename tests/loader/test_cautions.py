"""What a document would notice of others in its batch is said before it trains, and only where the corpus has it."""

from __future__ import annotations

import json
import logging
import wave
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lading import Loader, families, toy
from lading.loader.planning import cautions
from lading.records import LengthTable

PHI = families.find("phi4_mm")


def table(tokens: list[int], images: list[int], audios: list[int]) -> LengthTable:
    return LengthTable.of(tokens=np.array(tokens), images=np.array(images), audios=np.array(audios))


def test_sounds_that_pictures_would_change() -> None:
    (said,) = cautions(PHI, table([9, 9, 9, 9], [1, 0, 0, 1], [0, 1, 0, 1]), capacity=99)
    assert "found audio without image in 1 of 4 samples, and image in 2" in said
    sounds = table([9, 9], [0, 0], [1, 0])
    assert cautions(PHI, sounds, capacity=99) == []
    assert "and the placeholder image" in cautions(PHI, sounds, capacity=99, placeholder=True)[0]
    assert cautions(PHI, table([9, 9], [1, 1], [1, 0]), capacity=99) == [], "they have a picture of their own"
    assert cautions(PHI, table([9, 200], [0, 1], [1, 0]), capacity=99) == [], "the picture is in no pack"


def test_documents_that_would_change_all_positions() -> None:
    (said,) = cautions(PHI, table([5000, 9, 4096, 9000], [0] * 4, [0] * 4), capacity=8192)
    assert "found more than 4096 tokens in 1 of 3 samples" in said
    assert cautions(PHI, table([5000, 9], [0] * 2, [0] * 2), capacity=4096) == []
    assert cautions(PHI, table([5000, 6000], [0] * 2, [0] * 2), capacity=8192) == []


@pytest.mark.parametrize("name", [name for name in families.names() if name != PHI.name])
def test_other_families_have_nothing_to_say(name: str) -> None:
    assert (
        cautions(families.find(name), table([9, 9, 5000], [1, 0, 0], [0, 1, 0]), capacity=8192, placeholder=True) == []
    )


def test_the_loader_says_it_once_on_the_first_rank(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Image.new("RGB", (60, 60)).save(tmp_path / "p.png")
    with wave.open(str(tmp_path / "s.wav"), "wb") as sound:
        sound.setparams((1, 2, 16000, 0, "NONE", "NONE"))
        sound.writeframes(bytes(16000))
    rows = [
        {"conversations": [{"from": "human", "value": f"<{kind}>?"}, {"from": "gpt", "value": "!"}], f"{kind}s": [name]}
        for kind, name in (("image", "p.png"), ("audio", "s.wav"))
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    with caplog.at_level(logging.WARNING):
        loader = Loader(tmp_path / "rows.json", toy.processor("phi4_mm"), pack_size=2048, cache=False)
        list(loader)
    assert caplog.text.count("found audio without image in 1 of 2 samples, and image in 1") == 1
    caplog.clear()
    options = {"pack_size": 2048, "cache": False, "rank": 1, "world_size": 2}
    Loader(tmp_path / "rows.json", toy.processor("phi4_mm"), **options)
    assert "found audio" not in caplog.text
