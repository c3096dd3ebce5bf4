"""Which files a row may name: any local one by default, those below the roots alone where there are roots."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lading import ConfigError, CorpusError, Loader, open_corpus
from lading.doctor import examine, open_for_examination
from lading.encode import Encoder
from lading.errors import SkipSample
from lading.lengths import count_lengths
from lading.loader import Samples
from lading.loader.config import LoaderConfig
from lading.loader.planning import Planning
from lading.toy import processor
from lading.verify import verify
from lading.vlm.datasets import make_meta_dataset


def row(*pictures: str) -> dict[str, Any]:
    talk = [{"from": "human", "value": "<image>" * len(pictures) + "Who?"}, {"from": "gpt", "value": "Ada."}]
    return {"conversations": talk, "images": list(pictures)}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


ESCAPES: dict[str, Callable[[Path], str]] = {
    "a link to the file": lambda root: "link.png",
    "a link to a folder on the way": lambda root: "way/ada.png",
    "an absolute path": lambda root: str(root.parent / "outside" / "ada.png"),
    "file://": lambda root: f"file://{root.parent}/outside/ada.png",
    "..": lambda root: "../outside/ada.png",
    ".. further in": lambda root: "good/../../outside/ada.png",
    ".. behind a dot": lambda root: "./.././outside//ada.png",
    ".. in an absolute path": lambda root: f"{root}/../outside/ada.png",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder of media with ways out of it, and a corpus beside it: a good row first, then one for each way."""
    root, outside = tmp_path / "media", tmp_path / "outside"
    (root / "good").mkdir(parents=True)
    outside.mkdir()
    for place in (root / "good" / "ada.png", outside / "ada.png"):
        Image.new("RGB", (56, 56), "red").save(place)
    (root / "link.png").symlink_to(outside / "ada.png")
    (root / "way").symlink_to(outside, target_is_directory=True)
    (root / "inner.png").symlink_to(root / "good" / "ada.png")
    rows = [row("good/ada.png"), row("inner.png"), *(row(escape(root)) for escape in ESCAPES.values())]
    write(tmp_path / "rows.jsonl", rows)
    return root


def test_by_default_any_local_file_is_read(root: Path) -> None:
    loader = Loader(root.parent / "rows.jsonl", "toy:qwen2_5_vl", pack_size=512, media_dir=root, cache=False)
    list(loader)
    assert loader.ledger.total()["trained"] == 2 + len(ESCAPES)


def test_confined_what_lies_elsewhere_is_refused_by_name_in_every_room(root: Path) -> None:
    path, places = root.parent / "rows.jsonl", [f"rows.jsonl:{line}" for line in range(3, 3 + len(ESCAPES))]
    confined: dict[str, Any] = {"media_dir": root, "media_roots": [root]}
    loader = Loader(path, "toy:qwen2_5_vl", pack_size=512, cache=False, **confined)
    list(loader)
    entries = loader.ledger.entries()
    assert [entry["reason"] for entry in entries] == ["outside_media_roots"] * len(ESCAPES)
    assert [str(entry["where"]).rpartition("/")[2] for entry in entries] == places
    assert all(str(root) in str(entry["detail"]) for entry in entries)
    assert loader.ledger.total()["trained"] == 2

    samples = Samples(corpus=open_corpus(path, **confined), encoder=Encoder.of(processor("qwen2_5_vl")))
    counted = count_lengths(samples)
    assert [entry.reason for entry in counted.dropped] == ["outside_media_roots"] * len(ESCAPES)
    planning = Planning.of(samples, counted, LoaderConfig.of(pack_size=512))
    assert planning.plan(LoaderConfig.of(pack_size=512), 0).uncounted == len(ESCAPES)

    found = examine(open_for_examination(path, **confined))
    assert {kind: found.counts[kind] for kind in found.counts if "outside" in kind} == {
        "outside_media_roots": len(ESCAPES)
    }
    told = found.of_kind("outside_media_roots")
    assert [finding.where.rpartition("/")[2] for finding in told] == places

    assert verify(open_corpus(path, **confined), "toy:qwen2_5_vl", pack_size=512).dropped == {
        "outside_media_roots": len(ESCAPES)
    }


def test_a_meta_file_and_the_pages_confine_too(root: Path) -> None:
    meta = root.parent / "meta.json"
    entry = {"file_name": "rows.jsonl", "media_dir": "media", "media_roots": ["media"]}
    meta.write_text(json.dumps({"rows": entry}))
    loader = Loader(meta, "toy:qwen2_5_vl", pack_size=512, cache=False)
    assert loader.ledger.total()["reasons"] == {"outside_media_roots": len(ESCAPES)}
    # What the caller says takes the place of what the meta file does.
    wide = Loader(meta, "toy:qwen2_5_vl", pack_size=512, cache=False, media_roots=[root.parent])
    assert wide.ledger.total()["reasons"] == {}
    for lazy in (False, True):
        meta.write_text(json.dumps({"rows": {"file_name": "rows.jsonl", "media_dir": "media"}}))
        assert len(make_meta_dataset(meta, lazy=lazy)) == 2 + len(ESCAPES)
    lazy_ones = make_meta_dataset(meta, lazy=True, media_roots=[root])
    assert len([lazy_ones[place] for place in range(2)]) == 2
    for place in range(2, 2 + len(ESCAPES)):
        with pytest.raises(SkipSample, match="outside the media roots"):
            lazy_ones[place]
    examples = make_meta_dataset(meta, strict=False, media_roots=[root])
    assert len(examples) == 2
    assert examples.stats["n_dropped"] == len(ESCAPES)  # type: ignore[union-attr]


@pytest.mark.parametrize("roots", ["a name", "a path", [], [""], [None], [b"media"], 5])
def test_roots_that_are_no_list_of_folders_are_refused(root: Path, roots: Any) -> None:
    """A name alone fell into its letters, one of which is `/`; an empty list confined nothing."""
    given = {"a name": str(root), "a path": root}.get(roots, roots) if isinstance(roots, str) else roots
    meta = root.parent / "meta.json"
    meta.write_text(json.dumps({"rows": {"file_name": "rows.jsonl", "media_dir": "media", "media_roots": ["media"]}}))
    for open_it in (open_corpus, open_for_examination, make_meta_dataset):
        with pytest.raises(ConfigError, match="list of folders"):
            open_it(meta, media_roots=given)  # type: ignore[operator]
    if isinstance(roots, list) and roots != [b"media"]:
        meta.write_text(json.dumps({"rows": {"file_name": "rows.jsonl", "media_roots": roots}}))
        with pytest.raises(ConfigError, match="where a list of folders belongs"):
            open_corpus(meta)


@pytest.mark.parametrize("name", ["a\0b.png", "\ud800.png", "x" * 5000 + ".png", "loop/ada.png"])
def test_a_name_that_no_file_can_have_is_one_bad_sample(root: Path, name: str) -> None:
    (root / "loop").symlink_to(root / "loop")
    for rows in ([row("good/ada.png"), row(name)], [row(name), row(name)]):
        path = write(root.parent / "odd.jsonl", rows)
        for confined in ({"media_dir": root}, {"media_dir": root, "media_roots": [root]}):
            reason = "corrupt_media" if name.startswith("loop") else "missing_media"
            found = examine(open_for_examination(path, **confined))  # type: ignore[arg-type]
            assert found.count("error") == sum(one["images"] == [name] for one in rows)
            assert "unexpected_error" not in found.counts
            if rows[0] != rows[1]:
                loader = Loader(path, "toy:qwen2_5_vl", pack_size=512, cache=False, **confined)  # type: ignore[arg-type]
                assert loader.ledger.total()["reasons"] == {reason: 1}
            else:
                with pytest.raises(CorpusError, match=reason):
                    Loader(path, "toy:qwen2_5_vl", pack_size=512, cache=False, **confined)  # type: ignore[arg-type]


def test_a_source_that_lies_wholly_outside_ends_before_counting(root: Path) -> None:
    path = write(root.parent / "others.jsonl", [row(str(root / "good" / "ada.png"))] * 3)
    elsewhere = root.parent / "else where"
    elsewhere.mkdir()
    with pytest.raises(ConfigError, match="nothing was counted") as caught:
        Loader(path, "toy:qwen2_5_vl", pack_size=512, media_roots=[elsewhere])
    assert f"--media-root {root / 'good'}" in str(caught.value)


def test_one_picture_inside_is_enough_to_begin(root: Path) -> None:
    rows = [row(str(root.parent / "outside" / "ada.png"))] * 60
    path = write(root.parent / "mostly.jsonl", [*rows, row(str(root / "good" / "ada.png"))])
    loader = Loader(path, "toy:qwen2_5_vl", pack_size=512, media_roots=[root], cache=False)
    assert loader.ledger.total()["reasons"] == {"outside_media_roots": 60}


def test_a_snapshot_of_the_hub_may_use_its_own_blobs_and_no_others(tmp_path: Path) -> None:
    cache = tmp_path / "hub" / "datasets--ada--pictures"
    snapshot, blobs = cache / "snapshots" / "abc123", cache / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for place in (blobs / "f00d", tmp_path / "other.png"):
        Image.new("RGB", (56, 56), "red").save(place, "PNG")
    (snapshot / "ada.png").symlink_to(blobs / "f00d")
    (snapshot / "other.png").symlink_to(tmp_path / "other.png")
    path = write(snapshot / "rows.jsonl", [row("ada.png"), row("other.png")])
    loader = Loader(path, "toy:qwen2_5_vl", pack_size=512, media_roots=[snapshot], cache=False)
    assert [str(entry["where"]).rpartition(":")[2] for entry in loader.ledger.entries()] == ["2"]


def test_frames_of_a_clip_are_confined(root: Path) -> None:
    frames = ["good/ada.png", str(root.parent / "outside" / "ada.png")]
    talk = [{"from": "human", "value": "<video>What?"}, {"from": "gpt", "value": "Ada."}]
    good = row("good/ada.png")
    path = write(root.parent / "clips.jsonl", [good, {"conversations": talk, "videos": [frames]}])
    loader = Loader(path, "toy:qwen2_5_vl", pack_size=512, media_dir=root, media_roots=[root], cache=False)
    assert [entry["reason"] for entry in loader.ledger.entries()] == ["outside_media_roots"]


def test_the_doctor_counts_what_lies_outside_the_media_folder_as_a_notice(root: Path) -> None:
    found = examine(open_for_examination(root.parent / "rows.jsonl", media_dir=root))
    assert found.counts["outside_media_folder"] == found.count("notice") == len(ESCAPES)
    assert not found.fails()

    write(root.parent / "far.jsonl", [row(str(root.parent / "outside" / "ada.png"))])
    alone = examine(open_for_examination(root.parent / "far.jsonl", media_dir=root))
    assert alone.counts == {"outside_media_folder": 1}
    assert not alone.fails(strict=True)
    assert not alone.left_out("far", strict=True).any()


def test_a_corpus_opened_by_a_relative_path_is_found_from_everywhere(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root.parent)
    write(root.parent / "good.jsonl", [row("good/ada.png")] * 4)
    Path("meta.json").write_text(json.dumps({"good": {"file_name": "good.jsonl", "media_dir": "media"}}))
    loader = Loader("meta.json", "toy:qwen2_5_vl", pack_size=256)
    lone = Loader("good.jsonl", "toy:qwen2_5_vl", pack_size=256, media_dir="media", media_roots=["media"])
    # Where no media folder is named, paths are seen from here, and stay so.
    write(root.parent / "seen.jsonl", [row("media/good/ada.png")] * 4)
    Path("bare.json").write_text(json.dumps({"seen": {"file_name": "seen.jsonl"}}))
    bare = Loader("bare.json", "toy:qwen2_5_vl", pack_size=256)
    datasets = pytest.importorskip("datasets")
    given = datasets.Dataset.from_list([row("media/good/ada.png")] * 4)
    handed = Loader(given, "toy:qwen2_5_vl", pack_size=256, format="sharegpt")
    examples = make_meta_dataset("bare.json")
    (root.parent / "elsewhere").mkdir()
    os.chdir(root.parent / "elsewhere")
    assert Path(examples[0]["conversation"][0]["content"][0]["image"]).is_file()
    for opened in (loader, lone, bare, handed):
        list(opened)
        assert opened.ledger.total()["trained"] == 4
        state = opened.state_dict()
        opened.load_state_dict(state)
