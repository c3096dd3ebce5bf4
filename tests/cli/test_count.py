"""`lading count` as a person runs it, and the copy it writes."""

import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from lading import media, toy
from lading.cli.app import app
from lading.encode import Encoder
from lading.lengths import count_lengths
from lading.loader import Samples, read_processor
from lading.loader.config import DECODE_SECONDS
from lading.media import image
from lading.media.opening import seconds_left
from lading.records import MediaPart, Size
from lading.samples.layouts import source_layouts
from lading.sources import open_corpus
from lading.vlm.estimate import estimate
from lading.vlm.examples import CorpusReader
from tests.cli.test_commands import lading


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("faulty"), samples=30, faults=True)


def test_counted_then_kept_then_used_by_the_plan(faulty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = ("count", faulty, "--processor", "toy:qwen2_5_vl")
    monkeypatch.setenv("LADING_CACHE", str(tmp_path))
    said = [json.loads(lading(*own, "--json").stdout) for _ in range(2)]
    table = count_lengths(Samples(corpus=open_corpus(faulty), encoder=Encoder.of(toy.processor("qwen2_5_vl"))))
    for name in ("tokens", "label_tokens", "visual_tokens", "images", "videos", "frames", "patches", "patch_pairs"):
        assert said[0]["total"][name] == int(getattr(table, name).sum())
        assert said[0]["total"][name] == sum(source[name] for source in said[0]["sources"].values())
    assert [(one["total"]["counted"], one["total"]["kept"]) for one in said] == [(32, 0), (1, 31)]
    assert said[1]["total"]["dropped"] == 2
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    plan = lading("plan", faulty, "--processor", "toy:qwen2_5_vl", "--pack-size", 256, "--json")
    assert json.loads(plan.stdout)["tokens"] == said[0]["total"]["tokens"]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == stamps, "nothing was counted for it"


def test_for_a_person_in_a_folder_of_their_choice(faulty: Path, tmp_path: Path) -> None:
    done = lading("count", faulty, "--processor", "toy:qwen2_5_vl", "--out", tmp_path / "here", "--again")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "trained on" in said
    assert "frames of clips" in said
    assert "samples counted a second" in said
    assert "no-such-picture.png" in done.stderr.replace("\n", "")
    assert len(list((tmp_path / "here").iterdir())) == 4


def test_an_annotated_copy_estimates_exactly(faulty: Path, tmp_path: Path) -> None:
    done = lading("count", faulty, "--processor", "toy:qwen2_5_vl", "--annotate", tmp_path / "copy", "--json")
    assert done.returncode == 0, done.stderr
    meta = Path(json.loads(done.stdout)["annotated"])
    copy = open_corpus(meta)
    facts = read_processor(toy.processor("qwen2_5_vl"))
    table = count_lengths(Samples(corpus=open_corpus(faulty), encoder=Encoder(facts=facts)))
    assert (
        count_lengths(Samples(corpus=copy, encoder=Encoder(facts=facts))).tokens.tolist() == table.tokens.tolist()[:-1]
    )
    read = CorpusReader(corpus=copy, layouts=source_layouts(copy))
    for index in range(len(copy)):
        example = read(copy.row(index))
        if table.tokens[index]:
            assert estimate(example).total == table.tokens[index]
            assert estimate(example).media == table.visual_tokens[index]
            sizes = example["mm_inputs_meta"]
            assert len(sizes["images_meta"]) == table.images[index]
            assert len(sizes["videos_meta"]) == table.videos[index]
        else:
            assert "_text_tokens" not in example
    clip = read(copy.row(copy.ends[1]))["mm_inputs_meta"]["videos_meta"][0]
    assert clip[4] == pytest.approx(clip[0] / clip[3])


@pytest.mark.parametrize("command", [["count"], ["plan", "--pack-size", "300"]])
def test_a_medium_may_take_only_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    left: list[float | None] = []

    def timed(part: MediaPart) -> Size:
        if isinstance(part.reference, str):  # and not what a processor is shown when it is read
            left.append(seconds_left("a picture"))
        return image.measure(part)

    monkeypatch.setitem(media._SIZES, "image", timed)
    monkeypatch.setenv("LADING_CACHE", str(tmp_path / "cache"))
    meta = toy.write_corpus(tmp_path, samples=20)
    done = CliRunner().invoke(app, [*command, str(meta), "--processor", "toy:qwen2_5_vl"])
    assert done.exit_code == 0, done.output
    assert left
    assert all(own is not None and own <= DECODE_SECONDS for own in left)


def test_a_copy_does_not_take_the_place_of_its_data(faulty: Path) -> None:
    before = (faulty.parent / "talks.jsonl").read_bytes()
    done = lading("count", faulty, "--processor", "toy:qwen2_5_vl", "--annotate", faulty.parent)
    assert done.returncode == 2
    assert "take the place of" in done.stderr
    assert (faulty.parent / "talks.jsonl").read_bytes() == before


def test_a_copy_does_not_take_the_place_of_its_meta_file(tmp_path: Path) -> None:
    data, meta = tmp_path / "data.jsonl", tmp_path / "meta.json"
    talk = [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "Ho."}]
    data.write_text(json.dumps({"messages": talk}) + "\n")
    meta.write_text('{"talks": {"file_name": "data.jsonl"}}')
    done = lading("count", meta, "--processor", "toy:qwen2_5_vl", "--annotate", tmp_path)
    assert done.returncode == 2
    assert "a folder of its own" in " ".join(done.stderr.split())
    assert list(json.loads(meta.read_text())["talks"]) == ["file_name"]


TALK = [{"role": "user", "content": "<image>Who?"}, {"role": "assistant", "content": "Ada."}]


def test_a_source_that_is_lost_as_a_whole_is_no_success(tmp_path: Path) -> None:
    """One data set whose media folder is not named, beside one that is whole: where its pictures are is said."""
    image_folder = tmp_path / "images"
    image_folder.mkdir()
    Image.new("RGB", (60, 40), "red").save(image_folder / "ada.png")
    row = {"messages": TALK, "images": ["ada.png"]}
    for name in ("lost", "good"):
        (tmp_path / f"{name}.jsonl").write_text((json.dumps(row) + "\n") * 3)
    good = {"file_name": "good.jsonl", "media_dir": "images"}
    (tmp_path / "meta.json").write_text(json.dumps({"lost": {"file_name": "lost.jsonl"}, "good": good}))
    own = (tmp_path / "meta.json", "--processor", "toy:qwen2_5_vl")
    for done in (lading("count", *own, "--quiet"), lading("plan", *own, "--pack-size", 512)):
        assert done.returncode == 1
        assert "Nothing to train on in lost: all 3 samples dropped (3 missing_media)" in done.stderr
        assert f"but {image_folder}/ada.png is: media_dir='{image_folder}' (--media-dir {image_folder})?" in done.stderr
        assert "Nothing to train on in good" not in done.stderr
    fine = lading("plan", *own, "--pack-size", 512, "--dataset", "good")
    assert (fine.returncode, "Nothing to train on" in fine.stderr) == (0, False)


def test_what_rows_say_about_training_is_asked_for_by_options(tmp_path: Path) -> None:
    asked, said = {"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada."}
    rows = [{"messages": [asked, said, asked, {**said, "weight": 0}], "mood": "glad", "nframes": 2}] * 3
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    own = ("count", tmp_path / "rows.jsonl", "--processor", "toy:qwen2_5_vl", "--json")
    refused = lading(*own)
    assert refused.returncode == 2
    assert "ignore_keys=['nframes'] (--ignore-key nframes)" in " ".join(refused.stderr.split())
    every = json.loads(lading(*own, "--ignore-key", "nframes").stdout)
    assert {(key["key"], key["kind"], key["count"]) for key in every["sources"]["rows"]["unread"]} == {
        ("nframes", "how_to_train", 3),
        ("mood", "unread", 3),
    }
    assert lading(*own, "--ignore-key", "nframes", "--train-on", "last").returncode == 1, (
        "the last answer weighs nothing"
    )
