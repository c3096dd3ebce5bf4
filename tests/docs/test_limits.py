"""What the page of limits says is refused is refused.

Whoever teaches lading one of these changes the page with it.
"""

import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import lading

TOY = "toy:qwen2_5_vl"
QUESTION = {"role": "user", "content": "Who is this?"}
ANSWER = {"role": "assistant", "content": "Ada."}
PICTURED = {"role": "user", "content": "<image>Who is this?"}
TALK = {"messages": [PICTURED, ANSWER], "images": ["ada.png"]}
BOUNDS = {"max_pixels": 3136, "min_pixels": 784, "resized_height": 28}
PART = {"type": "image", "image": "ada.png"}


def shown_as(**extra: Any) -> dict[str, Any]:
    content = [{**PART, **extra}, {"type": "text", "text": "Who is this?"}]
    return {"messages": [{"role": "user", "content": content}, ANSWER]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Image.new("RGB", (224, 168), "red").save(tmp_path / "ada.png")
    return tmp_path


def batch_of(folder: Path, row: Mapping[str, Any]) -> lading.Batch:
    (folder / "rows.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    loader = lading.Loader(folder / "rows.jsonl", TOY, pack_size=512, cache=False)
    return next(iter(loader))


@pytest.mark.parametrize("address", ["s3://bucket/a", "gs://bucket/a", "hf://datasets/a/b/a", "https://a.b/a"])
def test_an_address_is_refused(folder: Path, address: str) -> None:
    with pytest.raises(lading.ConfigError, match=rf"address {address}.jsonl; wanted a corpus on a local disk"):
        lading.Loader(f"{address}.jsonl", TOY, pack_size=512)
    with pytest.raises(lading.CorpusError, match="unsupported_media 1"):
        batch_of(folder, {**TALK, "images": [f"{address}.png"]})


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({**TALK, "tools": [{"name": "look"}]}, "tool_calls 1"),
        ({"messages": [QUESTION, {**ANSWER, "tool_calls": [{"function": {"name": "look"}}]}, ANSWER]}, "tool_calls 1"),
        ({"messages": [QUESTION]}, "no_assistant_turn 1"),
        ({"text": "Once upon a time."}, "found columns text"),
    ],
    ids=["tools", "tool_calls", "no_answer", "text"],
)
def test_a_row_is_refused_by_name(folder: Path, row: dict[str, Any], said: str) -> None:
    with pytest.raises(lading.CorpusError, match=said):
        batch_of(folder, row)


@pytest.mark.parametrize(
    "row",
    [
        {**TALK, **BOUNDS},
        {**TALK, "images": [{"path": "ada.png", **BOUNDS}]},
        shown_as(**BOUNDS),
        {**TALK, "weight": 0},
        {"messages": [QUESTION, {**ANSWER, "reasoning_content": "Hm."}]},
        {"question": "Who?", "answer": "Ada.", "rejected": "Bob."},
        {"prompt": "Who?", "chosen": "Ada.", "rejected": "Bob."},
        {"prompt": "Who?", "completion": "Ada.", "label": False},
    ],
    ids=["row", "medium", "part", "row_weight", "reasoning_content", "rejected", "preference", "label"],
)
def test_what_says_how_to_train_and_is_not_obeyed_ends_the_run(folder: Path, row: dict[str, Any]) -> None:
    with pytest.raises(lading.ConfigError):
        batch_of(folder, row)


def test_stores_that_are_streamed_are_refused(folder: Path) -> None:
    datasets = pytest.importorskip("datasets")
    with tarfile.open(folder / "shard.tar", "w") as shard:
        shard.add(folder / "ada.png", "ada.png")
    streamed = datasets.IterableDataset.from_generator(lambda: iter([TALK]))
    for corpus in (folder / "shard.tar", folder / "rows.csv", folder / "rows.jsonl.gz", streamed, [TALK]):
        with pytest.raises(lading.ConfigError):
            lading.Loader(corpus, TOY, pack_size=512)


def test_a_processor_with_code_of_its_own_is_refused_by_name(folder: Path) -> None:
    settings = {"processor_class": "Own", "auto_map": {"AutoProcessor": "own.Own"}}
    (folder / "processor_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "own.py").write_text("class Own: ...\n", encoding="utf-8")
    with pytest.raises(lading.ConfigError, match="cannot load as a processor"):
        lading.load_processor(folder)


def test_a_tokenizer_alone_is_refused(folder: Path) -> None:
    (folder / "rows.jsonl").write_text(json.dumps(TALK) + "\n", encoding="utf-8")
    with pytest.raises(lading.ConfigError, match="without a tokenizer"):
        lading.Loader(folder / "rows.jsonl", lading.toy.processor("qwen2_5_vl").tokenizer, pack_size=512)
