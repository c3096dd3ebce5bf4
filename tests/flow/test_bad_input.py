"""Every kind of bad input ends in the ledger by name, beside good samples that are trained on all the same."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lading import Loader
from lading.errors import SkipSample


def talk(question: str, answer: str = "Yes.", **media: Any) -> str:
    return json.dumps(
        {"conversations": [{"from": "human", "value": question}, {"from": "gpt", "value": answer}], **media}
    )


GOOD = talk("Is this good?")
BAD = {
    "malformed_json": '{"conversations": [{"from": "human"',
    "bad_row": '{"text": "no conversation here"}',
    "unknown_role": json.dumps({"conversations": [{"from": "wizard", "value": "x"}, {"from": "gpt", "value": "y"}]}),
    "empty_conversation": '{"conversations": []}',
    "no_assistant_turn": json.dumps({"conversations": [{"from": "human", "value": "Anyone?"}]}),
    "marks_without_media": talk("<image><image>two?", images=["good.png"]),
    "media_without_marks": talk("none?", images=["good.png"]),
    "missing_media": talk("<image>", images=["gone.png"]),
    "corrupt_media": talk("<image>", images=["corrupt.png"]),
    "unsupported_media": talk("<audio>", audios=["sound.wav"]),
    "impossible_shape": talk("<image>", images=["thread.png"]),
    "placeholder_in_text": talk("<image> is <|image_pad|>?", images=["good.png"]),
    "too_long": talk("Say it.", answer="word " * 3000),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    Image.new("RGB", (60, 60)).save(folder / "good.png")
    Image.new("RGB", (4000, 3)).save(folder / "thread.png")
    (folder / "corrupt.png").write_bytes(b"\x89PNG but not really")
    lines = [GOOD, *(line for bad in BAD.values() for line in (bad, GOOD))]
    (folder / "data.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "data.jsonl"


def test_everything_is_accounted_for(corpus: Path) -> None:
    loader = Loader(corpus, "toy:qwen2_5_vl", pack_size=1024)
    list(loader)
    loader.ledger.check()
    total = loader.ledger.total()
    assert total["reasons"] == dict.fromkeys(BAD, 1)
    assert total["trained"] == len(BAD) + 1
    for entry in loader.ledger.entries():
        line = 2 * list(BAD).index(str(entry["reason"])) + 2
        assert str(entry["where"]).endswith(f"data.jsonl:{line}")
        assert str(entry["detail"]).startswith("found ")


@pytest.mark.parametrize("reason", BAD)
def test_strictness_raises_with_the_place(corpus: Path, reason: str) -> None:
    path = corpus.parent / f"{reason}.jsonl"
    path.write_text(GOOD + "\n" + BAD[reason] + "\n")
    with pytest.raises(SkipSample) as caught:
        list(Loader(path, "toy:qwen2_5_vl", pack_size=1024, strict=True))
    assert caught.value.reason == reason
    assert f"{reason}.jsonl:2" in str(caught.value)


def test_odd_rows_at_the_beginning_end_no_run(tmp_path: Path) -> None:
    odd = [
        '{"id": ' + "7" * 5000 + "}",
        json.dumps({"conversations": "[" * 50_000}),
        json.dumps(
            {"conversations": [{"from": "human", "value": [{"type": ["image"]}]}, {"from": "gpt", "value": "y"}]}
        ),
        json.dumps({**json.loads(GOOD), "system": "\ud800"}),
    ]
    (tmp_path / "d.jsonl").write_text("\n".join([*odd, GOOD]) + "\n")
    loader = Loader(tmp_path / "d.jsonl", "toy:qwen2_5_vl", pack_size=1024)
    list(loader)
    loader.ledger.check()
    total = loader.ledger.total()
    assert (total["reasons"], total["trained"]) == ({"bad_row": len(odd)}, 1)
