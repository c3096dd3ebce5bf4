"""LLaMA-Factory's dataset_info.json, as people have it."""

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from PIL import Image

from lading.encode import Encoder
from lading.errors import ConfigError, UnknownName
from lading.lengths import count_lengths
from lading.loader import Samples
from lading.samples.layouts import source_layouts
from lading.sources import Corpus, open_corpus

INFO: dict[str, Any] = {
    "identity": {"file_name": "identity.json"},
    "alpaca_own": {
        "file_name": "own.json",
        "columns": {"prompt": "ask", "query": "more", "response": "say", "system": "be", "history": "before"},
    },
    "mllm_demo": {
        "file_name": "mllm.json",
        "formatting": "sharegpt",
        "columns": {"messages": "messages", "images": "images"},
        "tags": {
            "role_tag": "role",
            "content_tag": "content",
            "user_tag": "user",
            "assistant_tag": "assistant",
        },
    },
    "tooling": {
        "file_name": "tooling.json",
        "formatting": "sharegpt",
        "columns": {"messages": "conversations"},
        "tags": {"observation_tag": "saw", "function_tag": "did"},
        "num_samples": 3,
    },
    "dpo": {
        "file_name": "dpo.json",
        "ranking": True,
        "formatting": "sharegpt",
        "columns": {"messages": "conversations", "chosen": "chosen", "rejected": "rejected"},
    },
}
ROWS: dict[str, Any] = {
    "identity.json": [{"instruction": "Who are you?", "input": "", "output": "Ada."}],
    "own.json": [{"ask": "Add.", "more": "1 2", "say": "3", "be": "Be brief.", "before": [["Hi", "Ho"]]}],
    "mllm.json": [
        {
            "messages": [
                {"content": "<image>Who is he?", "role": "user"},
                {"content": "Bob.", "role": "assistant"},
            ],
            "images": ["mllm_data/1.png"],
        }
    ],
    "tooling.json": [
        {
            "conversations": [
                {"from": "human", "value": "Weather?"},
                {"from": "did", "value": "look()"},
                {"from": "saw", "value": "rain"},
                {"from": "gpt", "value": "Rain."},
            ]
        }
    ],
    "dpo.json": [{"conversations": [], "chosen": {}, "rejected": {}}],
}


@pytest.fixture
def info(tmp_path: Path) -> Path:
    for name, rows in ROWS.items():
        (tmp_path / name).write_text(json.dumps(rows))
    (tmp_path / "mllm_data").mkdir()
    Image.new("RGB", (56, 56)).save(tmp_path / "mllm_data" / "1.png")
    return rewritten(tmp_path, INFO)


def rewritten(folder: Path, entries: dict[str, Any]) -> Path:
    (folder / "dataset_info.json").write_text(json.dumps(entries))
    return folder / "dataset_info.json"


def formats(corpus: Corpus) -> dict[str, str | None]:
    layouts = source_layouts(corpus)
    return {source.config.name: layout.format for source, layout in zip(corpus.sources, layouts, strict=True)}


def test_everything_but_pairs_is_read(info: Path, caplog: pytest.LogCaptureFixture) -> None:
    samples = Samples(corpus=open_corpus(info), encoder=Encoder.of("toy:qwen2_5_vl"))
    assert repr(samples.corpus) == "Corpus(identity: 1, alpaca_own: 1, mllm_demo: 1, tooling: 3)"
    assert "dpo: left out: preference pairs" in caplog.text
    assert formats(samples.corpus) == {
        "identity": "alpaca", "alpaca_own": "alpaca", "mllm_demo": "sharegpt", "tooling": "sharegpt"
    }  # fmt: skip
    own = samples.conversation(1)
    assert [message.role for message in own.messages] == ["system", "user", "assistant", "user", "assistant"]
    assert samples.conversation(2).media[0].reference == str(info.parent / "mllm_data" / "1.png")
    assert [message.role for message in samples.conversation(3).messages] == ["user", "assistant", "tool", "assistant"]
    assert not count_lengths(samples).dropped


def test_pairs_that_are_asked_for_are_refused(info: Path) -> None:
    with pytest.raises(ConfigError, match=r"found dpo: preference pairs \(ranking\)"):
        open_corpus(info, ["identity", "dpo"])


def test_nothing_is_downloaded_unasked(info: Path) -> None:
    path = rewritten(info.parent, {**INFO, "slim": {"hf_hub_url": "somebody/slim", "ms_hub_url": "x/y"}})
    with pytest.raises(ConfigError, match=r"1 data sets on a hub \(slim …\) and no choice"):
        open_corpus(path)
    assert len(open_corpus(path, ["mllm_demo"])) == 1


def test_subset_split_and_folder_of_a_hub_entry(info: Path) -> None:
    """A folder stands for the hub: `datasets` reads both alike."""
    hub = info.parent / "hub"
    (hub / "inner").mkdir(parents=True)
    rows = {
        "conversations": [[{"from": "human", "value": f"{n}?"}, {"from": "gpt", "value": "Yes."}] for n in range(6)]
    }
    Dataset.from_dict(rows).to_parquet(hub / "inner" / "test.parquet")
    entry = {"hf_hub_url": str(hub), "folder": "inner", "split": "test[2:5]", "formatting": "sharegpt"}
    corpus = open_corpus(rewritten(info.parent, {**INFO, "slim": entry}), ["slim"])
    assert [corpus.row(place).value["conversations"][0]["value"] for place in range(3)] == ["2?", "3?", "4?"]
    assert formats(corpus) == {"slim": "sharegpt"}


def test_a_file_that_is_here_is_not_fetched(info: Path) -> None:
    both = {"identity": {"hf_hub_url": "somebody/identity", "file_name": "identity.json"}}
    assert len(open_corpus(rewritten(info.parent, both))) == 1


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"script_url": "x.py"}, "it comes by script_url"),
        ({"file_name": "identity.json", "formatting": "chatml"}, "formatting 'chatml'"),
        ({"file_name": "identity.json", "num_samples": -1}, "num_samples -1"),
        ({"file_name": "identity.json", "split": 3}, "split 3 where a name belongs"),
        ({"formatting": "alpaca"}, "no file_name"),
        ({"file_name": "identity.json", "colums": {}}, "did you mean 'columns'?"),
        ({"file_name": "identity.json", "columns": {"promt": "x"}}, "did you mean 'prompt'?"),
    ],
)
def test_mistakes_are_named(info: Path, entry: dict[str, Any], said: str) -> None:
    with pytest.raises((ConfigError, UnknownName)) as caught:
        open_corpus(rewritten(info.parent, {"bad": entry}), ["bad"])
    assert said in str(caught.value)
