"""A corpus in which the ranks of a step are as unlike as can be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lading import toy


@pytest.fixture(scope="session")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Mostly text; one sample with a picture, and one with a picture and a clip."""
    folder = toy.write_corpus(tmp_path_factory.mktemp("uneven"), samples=60).parent
    talks, shapes, clips = (
        (folder / f"{name}.jsonl").read_text().splitlines() for name in ("talks", "shapes", "clips")
    )
    both = {
        "conversations": [
            {"from": "human", "value": "<image><video>What are these?"},
            {"from": "gpt", "value": "A picture, and something that moves."},
        ],
        "images": json.loads(shapes[0])["images"],
        "videos": json.loads(clips[0])["videos"],
    }
    (folder / "uneven.jsonl").write_text("\n".join([*talks, *shapes[:1], json.dumps(both)]) + "\n")
    path = folder / "uneven.json"
    path.write_text(json.dumps({"uneven": {"file_name": "uneven.jsonl", "media_dir": "media"}}))
    return path
