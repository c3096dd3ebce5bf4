"""What the page shows of a sample is what the loader hands out."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from lading import Loader, report, toy
from lading.packing.pack import document_positions
from lading.records import Encoded
from lading.report.gather import choose
from lading.report.html import PLACES, report_data
from lading.report.media import Budget
from lading.report.records import MediumView


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("mixed"), samples=20)


def gathered(loader: Loader, limit: int = 200) -> report.Gathered:
    return report.gather(loader.samples, lengths=loader.lengths, plan=loader.plan, ledger=loader.ledger, limit=limit)


@pytest.mark.parametrize("family", toy.recipes())
def test_tokens_labels_and_positions_are_the_loaders(mixed: Path, family: str) -> None:
    loader = Loader(mixed, f"toy:{family}", pack_size=2048)
    shown = gathered(loader)
    opened = 0
    for view in shown.samples:
        encoded = loader.samples.encode(view.key.index)
        if not isinstance(encoded, Encoded):
            assert view.tokens is None, "a family that takes no clips drops them"
            continue
        opened += 1
        tokens = view.tokens
        assert tokens is not None
        assert np.repeat(tokens.ids, tokens.counts).tolist() == encoded.tensors["input_ids"].tolist()
        labels = encoded.tensors["labels"].numpy()
        assert np.repeat(tokens.trained, tokens.counts).tolist() == (labels != -100).tolist()
        positions = document_positions(encoded.document, loader.samples.facts.three_way).numpy()
        positions = positions[None] if positions.ndim == 1 else positions[1:]
        starts = np.cumsum(tokens.counts) - tokens.counts
        assert np.array_equal(tokens.first.T, positions[:, starts])
        assert np.array_equal(tokens.last.T, positions[:, starts + tokens.counts - 1])
        runs = sum(len(span.runs) for span in encoded.document.media)
        assert np.count_nonzero(tokens.medium >= 0) == runs
        media = [part for turn in view.turns for part in turn.parts if isinstance(part, MediumView)]
        assert all(part.pictures and not part.trouble for part in media)
        assert set(tokens.medium.tolist()) == {*range(len(media)), -1}
    assert opened >= 15


def test_the_texts_of_tokens_are_the_text(mixed: Path) -> None:
    loader = Loader(mixed, "toy:qwen2_5_vl", pack_size=2048)
    shown = gathered(loader)
    tokenizer = loader.samples.facts.processor.tokenizer
    for view in shown.samples:
        assert view.tokens is not None
        said = "".join(shown.texts[token] for token in view.tokens.ids.tolist())
        assert said == tokenizer.decode(view.tokens.ids.tolist(), skip_special_tokens=False)


def test_a_token_that_is_part_of_a_character_is_shown_in_bytes(tmp_path: Path) -> None:
    row = {"conversations": [{"from": "human", "value": "What is 🦉?"}, {"from": "gpt", "value": "An owl."}]}
    path = tmp_path / "owl.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    texts = gathered(Loader(path, "toy:qwen2_5_vl", pack_size=512)).texts.values()
    written = bytes.fromhex("".join(text[1:-1] for text in texts if text.startswith("⟨")))
    assert sorted(written) == sorted("🦉".encode())


def test_what_is_odd_is_among_those_chosen(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path, samples=80, faults=True)
    loader = Loader(meta, "toy:qwen2_5_vl", pack_size=256)
    shown = gathered(loader, limit=20)
    assert len(shown.samples) == 20
    left_out = {entry["index"] for entry in loader.ledger.entries()}
    chosen = {view.key.index for view in shown.samples}
    assert left_out <= chosen
    assert set(loader.plan.pack(int(loader.plan.order[0, 0])).tolist()) & chosen
    for limit in range(1, 90, 7):
        found = choose(82, limit, marked=sorted(left_out), plan=loader.plan)
        assert found == sorted(set(found))
        assert len(found) == min(limit, 82)


def test_a_medium_beyond_the_budget_is_left_out_and_says_so() -> None:
    budget = Budget(side=100, seconds=1.0, left=25)
    picture = MediumView(kind="image", name="a.png", pictures=("data:0123456789",))
    assert budget.take(picture) is picture
    assert "left out" in budget.take(picture).trouble
    assert budget.take(picture).pictures == ()


def test_a_very_long_sample_is_shown_in_part(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    row = {"conversations": [{"from": "human", "value": "a " * 9000}, {"from": "gpt", "value": "b"}]}
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    loader = Loader(path, "toy:qwen2_5_vl", pack_size=20_000)
    data, _ = report_data(
        stats=loader.stats, lengths=loader.lengths, plan=loader.plan, ledger=loader.ledger, shown=gathered(loader),
        findings=(), losses=(),
    )  # fmt: skip
    sample = data["samples"][0]
    assert len(sample["tokens"]) == PLACES
    assert sample["hidden"] == sample["length"] - PLACES > 0


@pytest.mark.slow
def test_two_hundred_samples_with_large_pictures_stay_small(tmp_path: Path) -> None:
    # Noise is the worst that can come: nothing of it can be compressed away.
    dice = np.random.default_rng(0)
    rows = []
    for number in range(200):
        names = [f"{number}-{place}.jpg" for place in range(2)]
        for name in names:
            Image.fromarray(dice.integers(0, 256, (480, 640, 3), dtype=np.uint8)).save(tmp_path / name)
        talk = [{"from": "human", "value": "<image><image>What?"}, {"from": "gpt", "value": "Noise."}]
        rows.append({"conversations": talk, "images": names})
    path = tmp_path / "noise.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    loader = Loader(path, "toy:qwen2_5_vl", pack_size=8192)
    shown = gathered(loader)
    size = report.write(
        tmp_path / "r.html", stats=loader.stats, lengths=loader.lengths, plan=loader.plan, ledger=loader.ledger,
        shown=shown,
    )  # fmt: skip
    media = [part for view in shown.samples for turn in view.turns for part in turn.parts if not isinstance(part, str)]
    assert len(media) == 400
    assert sum(bool(part.pictures) for part in media) >= 200
    assert size < 15_000_000


def test_the_terminal_shows_the_same_tokens(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path, samples=20, faults=True)
    loader = Loader(meta, "toy:qwen2_5_vl", pack_size=256)
    shown = gathered(loader)
    console = Console(
        width=200, record=True, force_terminal=True, color_system="truecolor", file=(tmp_path / "o").open("w")
    )
    for line in report.terminal(shown, lengths=loader.lengths, ledger=loader.ledger):
        console.print(line)
    said = console.export_text(clear=False)
    assert "missing_media" in said
    for view in shown.samples:
        if view.tokens is not None:
            start = "".join(shown.texts[token] for token in view.tokens.ids[view.tokens.trained][:3].tolist())
            assert start in said
    assert "<|image_pad|> ×" in said
