"""The names of the `datasets` page: data sets written to disk, and read back."""

import inspect
import io
import json
import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch.distributed as distributed
from datasets import Audio, Dataset, Features, Image, Value
from PIL import Image as Pictures
from PIL.JpegImagePlugin import JpegImageFile
from torch.utils.data import DataLoader

from lading.errors import ConfigError, CorpusError, LadingError, SkipSample, UnknownName
from lading.vlm import datasets as page
from lading.vlm.examples import Examples
from lading.vlm.samplers import LengthGroupedSampler
from tests.vlm.rows import RATIOS, numbered, said, write_meta, write_rows

SIGNATURES = {
    "make_rdr_dataset": "path_or_dataset='quintend/rdr-items', split='train', **kwargs",
    "make_cord_v2_dataset": "path_or_dataset='naver-clova-ix/cord-v2', split='train', **kwargs",
    "make_medpix_dataset": "path_or_dataset='medpix-dataset/medpix-dataset', split='train', **kwargs",
    "make_cv17_dataset": "path_or_dataset='ysdede/commonvoice_17_tr_fixed', split='train', **kwargs",
    "make_unimm_chat_dataset": "path_or_dataset='Yirany/UniMM-Chat', split='train', **kwargs",
    "_convert_sharegpt_to_conversation": "example, columns=None, tags=None, media_dir=None",
    "_load_json_or_jsonl": "file_path",
    "_load_jsonl_for_rank": "file_path, sample_ratio, rank, world_size",
    "_collect_sample_stats": "examples",
    "_log_dataset_loading_summary": "timings, wall_time, total_samples, rank=None",
    "make_meta_dataset": (
        "path_or_dataset, dataset_names=None, split='train', shard_data=False, rank=None, world_size=None, **kwargs"
    ),
    "PreTokenizedDatasetWrapper": "dataset, processor, max_length=None, max_retries=10",
    "RobustDatasetWrapper": "dataset, max_retries=10",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_every_name_takes_what_the_page_says(name: str) -> None:
    parameters = inspect.signature(getattr(page, name)).parameters.values()
    found = [str(parameter.replace(annotation=inspect.Parameter.empty)) for parameter in parameters]
    wanted = SIGNATURES[name].split(", ")
    plain = [one for one in wanted if one != "**kwargs"]
    assert found[: len(plain)] == plain
    assert ("**kwargs" in found) == ("**kwargs" in wanted)


def picture(number: int, **options: Any) -> bytes:
    file = io.BytesIO()
    Pictures.new("RGB", (40 + number, 30), (number, 90, 90)).save(file, "JPEG", **options)
    return file.getvalue()


def save(folder: Path, columns: dict[str, list[Any]], **features: Any) -> Path:
    kinds = {name: features.get(name, Value("string")) for name in columns}
    Dataset.from_dict(columns, features=Features(kinds)).save_to_disk(folder)
    return folder


def rdr(folder: Path, pictures: list[bytes]) -> Path:
    texts = [f"picture {number}" for number in range(len(pictures))]
    stored = [{"bytes": one, "path": None} for one in pictures]
    return save(folder, {"image": stored, "text": texts}, image=Image())


def test_rdr_from_disk(tmp_path: Path) -> None:
    rdr(tmp_path / "rdr", [picture(number) for number in range(3)])
    examples = page.make_rdr_dataset(str(tmp_path / "rdr"), split="train[1:]")
    assert len(examples) == 2
    user, assistant = examples[0]["conversation"]
    shown, asked = user["content"]
    assert (user["role"], assistant["role"]) == ("user", "assistant")
    assert (shown["type"], shown["image"].size) == ("image", (41, 30))
    assert asked == {"type": "text", "text": "Describe this image."}
    assert assistant["content"] == [{"type": "text", "text": "picture 1"}]
    assert examples.key(0).where == f"{tmp_path / 'rdr'} train[1:] row 0"


def test_no_picture_is_decoded_before_somebody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rdr(tmp_path / "rdr", [picture(number) for number in range(3)])
    decoded: list[tuple[int, int]] = []
    load = JpegImageFile.load

    def watched(self: JpegImageFile) -> Any:
        decoded.append(self.size)
        return load(self)

    monkeypatch.setattr(JpegImageFile, "load", watched)
    shown = [example["conversation"][0]["content"][0]["image"] for example in page.make_rdr_dataset(tmp_path / "rdr")]
    assert [one.size for one in shown] == [(40, 30), (41, 30), (42, 30)]
    assert decoded == []
    shown[1].convert("L")
    assert set(decoded) == {(41, 30)}


def test_a_turned_picture_is_turned(tmp_path: Path) -> None:
    exif = Pictures.Exif()
    exif[0x0112] = 6
    rdr(tmp_path / "rdr", [picture(0, exif=exif)])
    shown = page.make_rdr_dataset(tmp_path / "rdr")[0]["conversation"][0]["content"][0]["image"]
    assert shown.size == (30, 40)


def test_a_corrupt_picture_is_one_bad_sample(tmp_path: Path) -> None:
    rdr(tmp_path / "rdr", [picture(0), b"no picture"])
    examples = page.make_rdr_dataset(tmp_path / "rdr")
    assert said(examples[0]) == "picture 0"
    with pytest.raises(SkipSample, match="found image <10 bytes> that cannot be read") as caught:
        examples[1]
    assert caught.value.reason == "corrupt_media"


def test_cord_medpix_and_unimm_from_disk(tmp_path: Path) -> None:
    stored = [{"bytes": picture(7), "path": None}]
    truth = json.dumps({"gt_parse": {"menu": [{"nm": "tea"}, {"nm": "pie"}], "total": "5"}})
    turns = json.dumps([{"from": "human", "value": "Look <image> here"}, {"from": "gpt", "value": "A square."}])
    save(tmp_path / "cord", {"image": stored, "ground_truth": [truth]}, image=Image())
    save(tmp_path / "medpix", {"image_id": stored, "question": ["Where?"], "answer": ["Here."]}, image_id=Image())
    save(tmp_path / "unimm", {"image": stored, "conversation": [turns]}, image=Image())
    receipt = page.make_cord_v2_dataset(tmp_path / "cord")[0]
    assert said(receipt) == "<s_total>5</s_total><s_menu><s_nm>tea</s_nm><sep/><s_nm>pie</s_nm></s_menu>"
    scan = page.make_medpix_dataset(tmp_path / "medpix")[0]
    assert (scan["conversation"][0]["content"][1]["text"], said(scan)) == ("Where?", "Here.")
    chat = page.make_unimm_chat_dataset(tmp_path / "unimm")[0]
    assert [part["type"] for part in chat["conversation"][0]["content"]] == ["text", "image", "text"]
    for example in (receipt, scan, chat):
        (shown,) = (part["image"] for part in example["conversation"][0]["content"] if part["type"] == "image")
        assert shown.size == (47, 30)


@pytest.mark.parametrize(("asked", "rate"), [({}, 8000), ({"sampling_rate": 16000}, 16000)])
def test_common_voice_from_disk(tmp_path: Path, asked: dict[str, int], rate: int) -> None:
    wave = np.sin(np.linspace(0, 300, 800)).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", wave, 8000, subtype="FLOAT")
    recordings = Dataset.from_dict({"audio": [str(tmp_path / "a.wav")], "transcription": ["Merhaba."]})
    recordings.cast_column("audio", Audio()).save_to_disk(tmp_path / "cv")
    example = page.make_cv17_dataset(tmp_path / "cv", **asked)[0]
    samples, found_rate = example["audio"]
    assert (found_rate, len(samples)) == (rate, 800 * rate // 8000)
    if rate == 8000:
        np.testing.assert_array_equal(samples, wave)
    assert [part["type"] for part in example["conversation"][0]["content"]] == ["audio", "text"]
    assert said(example) == "Merhaba."


def test_an_open_data_set_with_the_rate_of_its_column(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.flac", np.zeros(800, dtype=np.float32), 8000)
    columns = {"audio": [str(tmp_path / "a.flac")], "transcription": ["x"]}
    dataset = Dataset.from_dict(columns).cast_column("audio", Audio(sampling_rate=4000))
    assert page.make_cv17_dataset(dataset)[0]["audio"][1] == 4000


def test_workers_read_it(tmp_path: Path) -> None:
    rdr(tmp_path / "rdr", [picture(number) for number in range(5)])
    examples = page.make_rdr_dataset(tmp_path / "rdr")
    loader = DataLoader(examples, batch_size=2, num_workers=2, collate_fn=lambda batch: [said(one) for one in batch])  # type: ignore[arg-type]  # torch wants its own class; a sequence will do
    assert [text for batch in loader for text in batch] == [f"picture {number}" for number in range(5)]
    assert said(pickle.loads(pickle.dumps(examples))[4]) == "picture 4"


def test_a_misspelt_option_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rdr(tmp_path / "rdr", [picture(0)])
    page.make_rdr_dataset(tmp_path / "rdr", promt="Who?")
    assert "option 'promt'" in caplog.text
    assert "did you mean 'prompt'?" in caplog.text


@pytest.mark.parametrize(
    "make",
    [
        page.make_rdr_dataset,
        page.make_cord_v2_dataset,
        page.make_medpix_dataset,
        page.make_cv17_dataset,
        page.make_unimm_chat_dataset,
    ],
)
def test_unknown_columns_and_no_rows(make: Callable[..., Examples]) -> None:
    with pytest.raises(ConfigError, match=r"found columns other; wanted \w+, "):
        make(Dataset.from_dict({"other": [1]}))
    empty = Dataset.from_dict({name: [] for name in ("image", "text", "ground_truth", "image_id", "question", "answer",
                                                     "audio", "transcription", "conversation")})  # fmt: skip
    with pytest.raises(CorpusError, match="found no rows"):
        make(empty)


def test_a_meta_file_with_everything(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_rows(tmp_path / "a.jsonl", numbered(3))
    talk = {
        "dialog": [
            {"who": "S", "says": "Be brief."},
            {"who": "Q", "says": "<image><video><audio>Well?"},
            {"who": "A", "says": "Yes."},
        ],
        "pics": [{"path": "p.png", "note": 1}],
        "clips": [["f0.png", "f1.png"]],
        "sounds": ["s.wav"],
        "_text_tokens": 11,
        "mm_inputs_meta": {"images_meta": [[56, 56]]},
    }
    (tmp_path / "b.json").write_text(json.dumps([talk]))
    tags = {"role_tag": "who", "content_tag": "says", "user_tag": "Q", "assistant_tag": "A", "system_tag": "S"}
    columns = {"messages": "dialog", "images": "pics", "videos": "clips", "audios": "sounds"}
    meta = write_meta(
        tmp_path,
        a={"file_name": "a.jsonl"},
        b={"file_name": "b.json", "tags": tags, "columns": columns, "media_dir": "m"},
    )
    with caplog.at_level(logging.INFO):
        examples = page.make_meta_dataset(meta, fps=2)
    assert isinstance(examples, page._ExamplesWithStats)
    system, user, _ = examples[3]["conversation"]
    assert (system["role"], system["content"][0]["text"]) == ("system", "Be brief.")
    assert user["content"] == [
        {"type": "image", "image": str(tmp_path / "m" / "p.png"), "note": 1},
        {"type": "video", "video": [str(tmp_path / "m" / "f0.png"), str(tmp_path / "m" / "f1.png")]},
        {"type": "audio", "audio": str(tmp_path / "m" / "s.wav")},
        {"type": "text", "text": "Well?"},
    ]
    assert (examples[3]["_text_tokens"], examples[3]["mm_inputs_meta"]) == (11, talk["mm_inputs_meta"])
    counted = page._collect_sample_stats(examples)
    assert counted.items() <= examples.stats.items()
    assert (counted["n_images"], counted["n_videos"], counted["n_audios"], counted["n_text_only"]) == (1, 1, 1, 3)
    assert counted["n_media_tokens"] == 4 + 500 + 500
    assert (counted["n_missing_text_tokens"], counted["n_missing_mm_inputs_meta"]) == (3, 0)
    assert examples.stats["n_samples"] == len(examples) == 4
    assert "loaded 4 samples of 2 data sets" in caplog.text
    assert "option 'fps'" in caplog.text
    assert pickle.loads(pickle.dumps(examples)).stats == examples.stats


def test_text_that_was_counted_and_text_that_was_not() -> None:
    turn = {"role": "assistant", "content": [{"type": "text", "text": "x" * 31}]}
    clip = {"role": "user", "content": [{"type": "video", "video": "v.mp4"}]}
    guessed = page._collect_sample_stats([{"conversation": [turn]}])
    counted = page._collect_sample_stats([{"conversation": [turn], "_text_tokens": 7, "_media_tokens": 3}])
    assert (guessed["n_text_tokens"], guessed["n_media_tokens"]) == (10, 0)
    assert (counted["n_text_tokens"], counted["n_media_tokens"]) == (7, 3)
    sized = {"conversation": [clip], "mm_inputs_meta": {"videos_meta": [[100, 480, 640, 25.0, 4.0]]}}
    assert page._collect_sample_stats([sized])["n_media_tokens"] == 4 * (480 // 32) * (640 // 32)


ESTIMATED = {
    "a clip by its duration": ("video", {"mm_inputs_meta": {"videos_meta": [[38, 850, 558, 0, 3.3]]}}),
    "a clip of one frame": ("video", {"mm_inputs_meta": {"videos": [[1, 64, 64, 30.0, 0.1]]}}),
    "sizes under another name": ("image", {"mm_inputs_meta": {"image": [[112, 112]]}}),
    "sizes that cannot be read": ("image", {"mm_inputs_meta": {"images_meta": [["a", "b"]]}}),
    "a link": ("image_url", {}),
    "a link to a clip": ("video_url", {"mm_inputs_meta": {"videos_meta": [[60, 64, 96, 30.0, 2.0]]}}),
    "a count that is not there": ("image", {"_media_tokens": None, "_text_tokens": None}),
}


@pytest.mark.parametrize(("kind", "more"), ESTIMATED.values(), ids=list(ESTIMATED))
def test_statistics_mirror_what_the_sampler_estimates(kind: str, more: dict[str, Any]) -> None:
    shown = {"role": "user", "content": [{"type": kind, kind: "x"}, {"type": "text", "text": "y" * 20}]}
    example = {"conversation": [shown, {"role": "assistant", "content": None}], **more}
    counted = page._collect_sample_stats([example])
    assert (counted["n_text_tokens"], counted["n_media_tokens"]) == LengthGroupedSampler([example])._estimate_tokens(
        example
    )
    assert (counted["n_images"], counted["n_videos"]) == (kind.startswith("image"), kind.startswith("video"))
    assert (counted["n_text_only"], counted["n_missing_text_tokens"]) == (0, 1)


def test_statistics_of_what_is_tokenised_and_of_what_says_nothing() -> None:
    counted = page._collect_sample_stats([{"input_ids": [1, 2, 3]}, {"conversation": []}, {}])
    assert (counted["n_text_tokens"], counted["n_media_tokens"], counted["n_text_only"]) == (3, 0, 3)
    assert counted["n_missing_text_tokens"] == 2


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("lazy", [False, True])
def test_ranks_share_every_ratio(tmp_path: Path, ratio: float, world_size: int, lazy: bool) -> None:
    write_rows(tmp_path / "a.jsonl", numbered(7))
    write_rows(tmp_path / "b.jsonl", numbered(4, start=100))
    meta = write_meta(tmp_path, a={"file_name": "a.jsonl", "sample_ratio": ratio}, b={"file_name": "b.jsonl"})
    whole = [said(example) for example in page.make_meta_dataset(meta)]
    first = len(whole) - 4
    for rank in range(world_size):
        mine = page.make_meta_dataset(meta, shard_data=True, rank=rank, world_size=world_size, lazy=lazy)
        assert [said(one) for one in mine] == whole[:first][rank::world_size] + whole[first:][rank::world_size]
    alone = page.make_meta_dataset(tmp_path / "meta.json", rank=1, world_size=world_size)
    assert [said(one) for one in alone] == whole


@pytest.mark.parametrize("ratio", RATIOS)
def test_one_file_for_a_rank_is_what_loading_all_would_give(tmp_path: Path, ratio: float) -> None:
    write_rows(tmp_path / "a.jsonl", numbered(9))
    meta = write_meta(tmp_path, a={"file_name": "a.jsonl", "sample_ratio": ratio}, b={"file_name": "a.jsonl"})
    whole = [said(one) for one in page.make_meta_dataset(meta)][:-9]
    shares = [page._load_jsonl_for_rank(str(tmp_path / "a.jsonl"), ratio, rank, 2) for rank in range(2)]
    answers = [[row["conversations"][1]["value"] for row in rows] for rows, _ in shares]
    assert answers == [whole[0::2], whole[1::2]]
    assert [total for _, total in shares] == [9, 9]


def test_skipped_lines_are_not_parsed(tmp_path: Path) -> None:
    good, bad = json.dumps(numbered(1)[0]), "{broken"
    (tmp_path / "a.jsonl").write_text("\n".join([good, bad, good, bad]))
    assert len(page._load_jsonl_for_rank(tmp_path / "a.jsonl", 1.0, 0, 2)[0]) == 2
    with pytest.raises(SkipSample, match=r"a\.jsonl:2:2"):
        page._load_jsonl_for_rank(tmp_path / "a.jsonl", 1.0, 1, 2)


def test_a_ratio_keeps_the_samples_of_random_42(tmp_path: Path) -> None:
    import random

    write_rows(tmp_path / "a.jsonl", numbered(20))
    rows, _ = page._load_jsonl_for_rank(tmp_path / "a.jsonl", 0.5, 0, 1)
    wanted = random.Random(42).sample(range(20), 10)
    assert [row["conversations"][1]["value"] for row in rows] == [f"answer {number}" for number in wanted]


def test_the_lazy_form_reads_a_row_when_it_is_asked_for(tmp_path: Path) -> None:
    good, bad = json.dumps(numbered(1)[0]), "{broken"
    (tmp_path / "a.jsonl").write_text("\n".join([good, bad, good]))
    meta = write_meta(tmp_path, a={"file_name": "a.jsonl"})
    lazy = page.make_meta_dataset(meta, lazy=True)
    assert len(lazy) == 3
    assert said(lazy[-1]) == said(lazy[2]) == "answer 0"
    assert [said(one) for one in lazy[::2]] == ["answer 0", "answer 0"]
    with pytest.raises(SkipSample, match=r"a\.jsonl:2"):
        lazy[1]
    with pytest.raises(IndexError):
        lazy[3]
    assert lazy[::2].stats["n_text_only"] == 2
    assert len(pickle.dumps(lazy)) < 2000


def test_a_bad_row_is_raised_or_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = numbered(2)
    rows[1]["conversations"][0]["value"] = "<image>?"
    write_rows(tmp_path / "a.jsonl", rows)
    meta = write_meta(tmp_path, a={"file_name": "a.jsonl"})
    with pytest.raises(SkipSample, match=r"more <image> marks than images; wanted one for each mark \[.*a\.jsonl:2\]"):
        page.make_meta_dataset(meta)
    examples = page.make_meta_dataset(meta, strict=False)
    assert isinstance(examples, page._ExamplesWithStats)
    assert (len(examples), examples.stats["n_samples"], examples.stats["n_dropped"]) == (1, 1, 1)
    assert "left out a#1" in caplog.text


def test_names_choose_and_must_exist(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", numbered(2))
    write_rows(tmp_path / "b.jsonl", numbered(3))
    meta = write_meta(tmp_path, a={"file_name": "a.jsonl"}, b={"file_name": "b.jsonl"})
    assert len(page.make_meta_dataset(meta, ["b"])) == len(page.make_meta_dataset(meta, "b")) == 3
    with pytest.raises(ConfigError, match="data set 'c'"):
        page.make_meta_dataset(meta, ["c"])
    with pytest.raises(ConfigError, match="found an empty list"):
        page.make_meta_dataset(meta, [])


@pytest.mark.parametrize("ratio", [0, 0.1])
def test_no_examples_are_an_error(tmp_path: Path, ratio: float) -> None:
    write_rows(tmp_path / "a.jsonl", numbered(2))
    meta = write_meta(tmp_path, a={"file_name": "a.jsonl", "sample_ratio": ratio})
    with pytest.raises(CorpusError, match=r"found no rows in Corpus\(a: 0\); wanted at least one"):
        page.make_meta_dataset(meta)


def test_a_rank_without_samples_is_no_error(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", numbered(1))
    meta = write_meta(tmp_path, a={"file_name": "a.jsonl"})
    mine = page.make_meta_dataset(meta, shard_data=True, rank=1, world_size=2)
    assert isinstance(mine, page._ExamplesWithStats)
    assert (len(mine), mine.stats["n_samples_largest_share"]) == (0, 1)
    with pytest.raises(ConfigError, match="found rank 2 of 2"):
        page.make_meta_dataset(meta, shard_data=True, rank=2, world_size=2)


def test_the_rank_comes_from_the_process_group(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", numbered(4))
    meta = write_meta(tmp_path, a={"file_name": "a.jsonl"})
    assert len(page.make_meta_dataset(meta, shard_data=True)) == 4
    store = distributed.FileStore(str(tmp_path / "store"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        assert len(page.make_meta_dataset(meta, shard_data=True)) == 4
        assert len(page.make_meta_dataset(meta, shard_data=True, world_size=2)) == 2
    finally:
        distributed.destroy_process_group()


def test_one_row_is_converted() -> None:
    row = {"messages": [{"role": "user", "content": "<audio><image>?"}, {"role": "assistant", "content": "!"}],
           "audios": [b"wav"], "images": [Pictures.new("L", (2, 2))]}  # fmt: skip
    sound, shown, asked = page._convert_sharegpt_to_conversation(row)["conversation"][0]["content"]
    assert (sound, asked["text"]) == ({"type": "audio", "audio": b"wav"}, "?")
    assert shown["image"] is row["images"][0]
    with pytest.raises(UnknownName, match="did you mean 'images'"):
        page._convert_sharegpt_to_conversation(row, columns={"image": "x"})
    with pytest.raises(UnknownName, match="tag 'role'"):
        page._convert_sharegpt_to_conversation(row, tags={"role": "x"})


def test_json_and_jsonl_are_the_same(tmp_path: Path) -> None:
    rows = numbered(3)
    write_rows(tmp_path / "a.jsonl", rows)
    (tmp_path / "a.json").write_text(json.dumps(rows))
    assert page._load_json_or_jsonl(str(tmp_path / "a.json")) == rows
    assert page._load_json_or_jsonl(tmp_path / "a.jsonl") == rows
    for name in ("b.JSON", "b", "b.data"):
        (tmp_path / name).write_text("\n" + json.dumps(rows))
        assert page._load_json_or_jsonl(tmp_path / name) == rows
    for name in ("c.JSONL", "c"):
        write_rows(tmp_path / name, rows)
        assert page._load_json_or_jsonl(tmp_path / name) == rows
    (tmp_path / "bad.json").write_text('{"a": 1}')
    with pytest.raises(LadingError, match="found a JSON dict; wanted an array"):
        page._load_json_or_jsonl(tmp_path / "bad.json")


def test_keys_that_say_how_to_train_are_refused_by_name_or_ignored_on_purpose(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada."}]
    (tmp_path / "rows.jsonl").write_text(json.dumps({"messages": talk, "nframes": 4}) + "\n")
    (tmp_path / "meta.json").write_text(json.dumps({"rows": {"file_name": "rows.jsonl"}}))
    for lazy in (False, True):
        with pytest.raises(ConfigError, match=r"found 'nframes', which says how to train .* ignore_keys=\['nframes'\]"):
            page.make_meta_dataset(tmp_path / "meta.json", lazy=lazy)
        (example,) = page.make_meta_dataset(tmp_path / "meta.json", lazy=lazy, ignore_keys=["nframes"])
        assert [turn["role"] for turn in example["conversation"]] == ["user", "assistant"]
