"""A corpus is counted once, exactly, and what is kept is never out of date."""

from __future__ import annotations

import copy
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import lading
from lading import Loader, toy
from lading.encode import Encoder
from lading.errors import ConfigError, CorpusError, ExactnessError, Reason, SkipSample
from lading.ledger import Ledger
from lading.lengths import Count, Counting, count_lengths
from lading.lengths.count import count_chunk
from lading.lengths.fingerprint import COUNTING
from lading.lengths.rows import merge
from lading.lengths.store import LENGTHS, PARTS
from lading.loader import Samples, read_processor
from lading.records import COLUMNS, Encoded, LengthTable
from lading.samples.skip import SkipPolicy
from lading.sources import open_corpus
from lading.workers.pool import ProcessPool, StartMethod
from tests.families.targets import TARGETS, facts_of

FAMILY = "qwen2_5_vl"


def samples_of(meta: Path, processor: Any = None, *, strict: bool = False) -> Samples:
    facts = read_processor(toy.processor(FAMILY) if processor is None else processor)
    return Samples(corpus=open_corpus(meta), encoder=Encoder(facts=facts), policy=SkipPolicy(strict=strict))


def run(samples: Samples, folder: Path, **options: Any) -> Count:
    return Counting(samples=samples, cache=folder, **options).run()


def numbers(table: LengthTable) -> list[list[int]]:
    return [column.tolist() for column in attrgetter(*COLUMNS)(table)]


def same(one: LengthTable, other: LengthTable) -> bool:
    return numbers(one) == numbers(other) and one.dropped == other.dropped and one.sources == other.sources


@pytest.fixture
def meta(tmp_path: Path) -> Path:
    return toy.write_corpus(tmp_path / "corpus", samples=30, faults=True)


@pytest.mark.parametrize("target", [target for target in TARGETS if "toy" in str(target)])
def test_counted_equals_encoded_from_the_cache_and_without(
    target: tuple[str, str], toy_meta: Path, tmp_path: Path
) -> None:
    samples = Samples(corpus=open_corpus(toy_meta), encoder=Encoder(facts=facts_of(target)))
    plain, first, second = count_lengths(samples), run(samples, tmp_path), run(samples, tmp_path)
    assert same(plain, first.table)
    assert same(plain, second.table)
    assert sum(second.fresh) == sum(entry.reason == Reason.IMPOSSIBLE_SHAPE for entry in plain.dropped)
    for index in range(0, len(samples), 7):
        encoded = samples.encode(index)
        tokens, spoken = int(second.table.tokens[index]), int(second.table.label_tokens[index])
        if isinstance(encoded, Encoded):
            assert tokens == len(encoded.tensors["input_ids"])
            assert spoken == int((encoded.tensors["labels"] != -100).sum())
        else:
            assert tokens == 0


def test_the_loader_keeps_lengths_beside_the_data(meta: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LADING_CACHE")
    assert Loader(meta, f"toy:{FAMILY}", pack_size=512, cache=False).lengths is not None
    assert not (meta.parent / ".lading").exists()
    first, second = (Loader(meta, f"toy:{FAMILY}", pack_size=512).lengths for _ in range(2))
    assert same(first, second)
    kept = sorted(path.name.partition("-")[0] for path in (meta.parent / ".lading").iterdir())
    assert kept == ["albums", "clips", "shapes", "talks"]


def test_nothing_is_tokenised_the_second_time(toy_meta: Path, tmp_path: Path) -> None:
    samples = samples_of(toy_meta)
    encode_texts = samples.facts.tokeniser.encode_texts
    calls: list[int] = []

    def watched(texts: list[str]) -> Any:
        calls.append(len(texts))
        return encode_texts(texts)

    tokeniser = replace(samples.facts.tokeniser, encode_texts=watched)
    samples = replace(samples, encoder=Encoder(facts=replace(samples.facts, tokeniser=tokeniser)))
    first = count_lengths(samples, cache=tmp_path)
    assert sum(calls) == len(samples)
    assert same(first, count_lengths(samples, cache=tmp_path))
    assert sum(calls) == len(samples)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_lengths_beside_data_that_is_read_only_now_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LADING_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "users"))
    samples = samples_of(toy.write_corpus(tmp_path / "data", samples=8).with_name("talks.jsonl"))
    first = Counting(samples=samples).run()
    (tmp_path / "data" / ".lading").chmod(0o555)
    try:
        again = Counting(samples=samples).run()
    finally:
        (tmp_path / "data" / ".lading").chmod(0o755)
    assert (first.fresh, again.fresh) == ((len(samples),), (0,))
    assert again.folders == first.folders
    assert not (tmp_path / "users").exists()


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_lengths_beside_read_only_data_are_completed_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LADING_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "users"))
    toy.write_corpus(tmp_path / "data", samples=40)
    metas = [tmp_path / "data" / name for name in ("share.json", "all.json")]
    for path, ratio in zip(metas, (0.5, 1.0), strict=True):
        path.write_text(json.dumps({"talks": {"file_name": "talks.jsonl", "sample_ratio": ratio}}))
    part, whole = map(samples_of, metas)
    Counting(samples=part).run()
    (tmp_path / "data" / ".lading").chmod(0o555)
    try:
        counts = [Counting(samples=whole).run() for _ in range(2)]
    finally:
        (tmp_path / "data" / ".lading").chmod(0o755)
    assert [count.fresh for count in counts] == [(len(whole) - len(part),), (0,)]
    assert same(counts[0].table, counts[1].table)
    assert counts[1].folders[0].is_relative_to(tmp_path / "users")


def test_a_single_source_stays_memory_mapped(meta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lading.lengths.store.MAPPED_FROM", 0)
    samples = samples_of(meta.parent / "albums.jsonl")
    count_lengths(samples, cache=tmp_path)
    tokens = count_lengths(samples, cache=tmp_path).tokens
    base: Any = tokens
    while not isinstance(base, np.memmap):
        assert base.base is not None, "no part of a mapped file"
        base = base.base


def template(processor: Any) -> None:
    processor.chat_template = processor.chat_template.replace("<|im_end|>", "!<|im_end|>")


def tokenizer(processor: Any) -> None:
    processor.tokenizer.add_tokens(["triangle"])


def picture_size(processor: Any) -> None:
    own = processor.image_processor.size
    processor.image_processor.size = replace(own, longest_edge=own.longest_edge // 2)


def clip_size(processor: Any) -> None:
    own = processor.video_processor.size
    processor.video_processor.size = replace(own, longest_edge=own.longest_edge // 2)


@pytest.mark.parametrize("change", [template, tokenizer, picture_size, clip_size])
def test_another_processor_is_counted_anew(meta: Path, tmp_path: Path, change: Callable[[Any], None]) -> None:
    run(samples_of(meta), tmp_path)
    processor = copy.deepcopy(toy.processor(FAMILY))
    change(processor)
    changed = samples_of(meta, processor)
    again = run(changed, tmp_path)
    assert list(again.fresh) == [len(source) for source in changed.corpus.sources]
    assert same(again.table, count_lengths(changed))
    assert sum(run(samples_of(meta), tmp_path).fresh) == 1, "the first one is still there, but for a missing picture"


def test_padding_and_truncation_left_behind_are_no_other_tokenizer(meta: Path, tmp_path: Path) -> None:
    samples = samples_of(meta, copy.deepcopy(toy.processor(FAMILY)))
    run(samples, tmp_path)
    samples.facts.processor.tokenizer(["a", "b c"], padding="max_length", truncation=True, max_length=9)
    assert sum(run(samples, tmp_path).fresh) == 1


@pytest.mark.parametrize(
    "option", [{"columns": {"messages": "talk"}}, {"tags": {"user_tag": "asker"}}, {"media_dir": "."}]
)
def test_another_way_to_read_it_is_counted_anew(tmp_path: Path, option: dict[str, Any]) -> None:
    turns = [{"from": "human", "value": "One?"}, {"from": "gpt", "value": "One."}]
    row = {"conversations": turns, "talk": [{"from": "human", "value": "Two or more?"}, *turns[1:]]}
    (tmp_path / "d.jsonl").write_text(json.dumps(row) + "\n")
    meta = tmp_path / "meta.json"
    for entry in ({"file_name": "d.jsonl"}, {"file_name": "d.jsonl", **option}):
        meta.write_text(json.dumps({"d": entry}))
        assert run(samples_of(meta), tmp_path / "kept").fresh == (1,)
        assert run(samples_of(meta), tmp_path / "kept").fresh == (0,)


def test_a_changed_file_is_counted_anew_and_a_moved_one_is_not(meta: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    before = run(samples_of(meta), kept)
    moved = tmp_path / "moved"
    shutil.move(meta.parent, moved)
    after = run(samples_of(moved / "meta.json"), kept)
    assert sum(after.fresh) == 1
    assert numbers(after.table) == numbers(before.table)
    assert str(moved) in after.table.dropped[1].detail
    talks, state = moved / "talks.jsonl", (moved / "talks.jsonl").stat()
    talks.write_text(talks.read_text().replace("sums", "sins"))
    os.utime(talks, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert run(samples_of(moved / "meta.json"), kept).fresh[-1] == len(open_corpus(talks))


def test_what_was_dropped_stays_dropped_and_what_was_missing_is_asked_for_again(meta: Path, tmp_path: Path) -> None:
    first, second = run(samples_of(meta), tmp_path), run(samples_of(meta), tmp_path)
    assert [entry.reason for entry in second.table.dropped] == [Reason.MISSING_MEDIA, Reason.MALFORMED_JSON]
    assert second.table.dropped == first.table.dropped
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob(LENGTHS)}
    assert second.fresh == (1, 0, 0, 0)
    Image.new("RGB", (90, 70)).save(meta.parent / "media" / "no-such-picture.png")
    third = run(samples_of(meta), tmp_path)
    assert [entry.reason for entry in third.table.dropped] == [Reason.MALFORMED_JSON]
    assert same(third.table, count_lengths(samples_of(meta)))
    rewritten = [path for path, stamp in stamps.items() if path.stat().st_mtime_ns != stamp]
    assert [path.parent.name.partition("-")[0] for path in rewritten] == ["shapes"]
    assert sum(run(samples_of(meta), tmp_path).fresh) == 0


def test_strict_raises_what_was_kept_as_dropped(meta: Path, tmp_path: Path) -> None:
    run(samples_of(meta), tmp_path)
    with pytest.raises(SkipSample, match=r"no-such-picture\.png"):
        run(samples_of(meta, strict=True), tmp_path)


def test_a_damaged_file_is_counted_again(meta: Path, tmp_path: Path) -> None:
    first = run(samples_of(meta), tmp_path)
    for path in tmp_path.rglob(LENGTHS):
        content = bytearray(path.read_bytes())
        content[-20] ^= 4
        path.write_bytes(content)
    second = run(samples_of(meta), tmp_path)
    assert second.fresh == first.fresh
    assert same(first.table, second.table)


def test_ratios_share_one_count(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path / "corpus", samples=40)
    whole = run(samples_of(meta.parent / "talks.jsonl"), tmp_path / "none").table.tokens
    entry = {"file_name": "talks.jsonl", "media_dir": "media"}
    fresh = []
    for ratio in (0.5, 2.25, 1.0):
        meta.write_text(json.dumps({"t": {**entry, "sample_ratio": ratio}}))
        samples = samples_of(meta)
        counted = run(samples, tmp_path / "kept")
        fresh.append(counted.fresh[0])
        rows = [samples.corpus.locate(index)[1] for index in range(len(samples))]
        assert counted.table.tokens.tolist() == whole[rows].tolist()
        assert counted.table.dropped == ()
    assert fresh == [len(whole) // 2, len(whole) - len(whole) // 2, 0]


def test_media_that_were_all_changed_are_noticed(meta: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(samples_of(meta), tmp_path)
    for path in (meta.parent / "media").glob("shape-*.png"):
        Image.open(path).resize((64, 300)).save(path)
    again = run(samples_of(meta), tmp_path)
    assert "media of shapes changed" in caplog.text
    assert again.fresh[1:] == (0, 0, 0)
    assert same(again.table, count_lengths(samples_of(meta)))


def test_a_single_changed_picture_is_named_when_it_is_opened(meta: Path, tmp_path: Path) -> None:
    samples = samples_of(meta)
    table = run(samples, tmp_path).table
    Image.new("RGB", (30, 400)).save(meta.parent / "media" / "shape-0.png")
    with pytest.raises(ExactnessError, match=r"shapes\.jsonl:1.*lading count --again"):
        samples.encode(0, counted=int(table.tokens[0]))
    again = run(samples, tmp_path, again=True)
    assert isinstance(samples.encode(0, counted=int(again.table.tokens[0])), Encoded)


def test_a_folder_that_cannot_be_written_to(
    meta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ConfigError, match="cannot be written to"):
        run(samples_of(meta), blocked)
    monkeypatch.setenv("LADING_CACHE", str(blocked))
    assert same(count_lengths(samples_of(meta), cache=True), count_lengths(samples_of(meta)))
    assert "lengths are not kept" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_any_number_of_processes_counts_the_same(tmp_path: Path, start_method: StartMethod) -> None:
    meta = toy.write_corpus(tmp_path / "corpus", samples=300, faults=True)
    samples = samples_of(meta)
    plain = count_lengths(samples)
    for workers in (0, 1, 2):
        assert same(run(samples, tmp_path / f"kept-{workers}", workers=workers).table, plain)
    chunks = [([index], [index]) for index in range(len(samples))]
    with ProcessPool(partial(count_chunk, samples), 3, start_method) as pool:
        counted = merge(pool.map(chunks, len(chunks)))
        assert len(pool.processes()) == 3
    assert counted.records["tokens"].tolist() == plain.tokens.tolist()
    assert [own.detail for own in counted.refused.values()] == [entry.detail for entry in plain.dropped]
    strict = samples_of(meta, strict=True)
    with ProcessPool(partial(count_chunk, strict), 2, start_method) as pool:
        with pytest.raises(SkipSample, match=r"no-such-picture\.png") as skip:
            list(pool.map(chunks, len(chunks)))
        assert skip.value.reason == Reason.MISSING_MEDIA


@pytest.mark.slow
@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_a_worker_process_that_dies_is_named(toy_meta: Path, start_method: StartMethod) -> None:
    with ProcessPool(partial(count_chunk, samples_of(toy_meta)), 2, start_method) as pool:
        counted = pool.map([([0], [0])] * 400, 400)
        next(counted)
        pool.processes()[0].kill()  # as the kernel would
        with pytest.raises(CorpusError, match=r"exit code -9.*workers=0"):
            list(counted)


INTERRUPTED = """
import sys
from lading import toy
from lading.encode import Encoder
from lading.lengths import count
from lading.samples import Samples
from lading.sources import open_corpus
count.KEPT_EVERY, count.CHUNK = 0.0, 8
samples = Samples(corpus=open_corpus(sys.argv[1]), encoder=Encoder.of(toy.processor("qwen2_5_vl")))
count.count_lengths(samples, lambda done: print(done, flush=True), cache=sys.argv[2])
"""


def test_a_killed_count_goes_on_where_it_was(tmp_path: Path) -> None:
    toy.write_corpus(tmp_path, samples=20)
    data = tmp_path / "talks.jsonl"
    data.write_text((data.read_text() + '{"broken\n') * 800)
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(data), str(tmp_path / "kept")], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    said = [int(child.stdout.readline()) for _ in range(40)]
    child.send_signal(signal.SIGKILL)
    assert child.wait(timeout=60) == -signal.SIGKILL
    assert said[0] == 0
    assert not list((tmp_path / "kept").rglob(LENGTHS))
    samples = samples_of(data)
    kept = len(list((tmp_path / "kept").rglob(f"{PARTS}/*.npz"))) * 8
    assert 38 * 8 <= kept < len(samples), "it was killed while it counted"
    counted = run(samples, tmp_path / "kept")
    assert counted.fresh == (len(samples) - kept,)
    assert same(counted.table, count_lengths(samples))
    assert run(samples, tmp_path / "kept").fresh == (0,)
    assert not list((tmp_path / "kept").rglob(PARTS))


def test_an_interrupted_second_count_does_not_go_on_with_the_first(meta: Path, tmp_path: Path) -> None:
    samples = samples_of(meta)
    run(samples, tmp_path)

    def interrupt(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(samples, tmp_path, again=True, progress=interrupt)
    assert run(samples, tmp_path).fresh[0] == len(samples.corpus.sources[0])


def test_ranks_that_start_at_once_do_not_disturb_each_other(meta: Path, tmp_path: Path) -> None:
    code = INTERRUPTED.replace("print(done, flush=True)", "None")
    children = [subprocess.Popen([sys.executable, "-c", code, str(meta), str(tmp_path / "kept")]) for _ in range(2)]
    assert [child.wait(timeout=300) for child in children] == [0, 0]
    samples = samples_of(meta)
    counted = run(samples, tmp_path / "kept")
    assert sum(counted.fresh) == 1
    assert same(counted.table, count_lengths(samples))


def test_what_is_said_to_decide_about_lengths_is_there() -> None:
    """A folder that was renamed would change, and old lengths would still be believed."""
    root = Path(lading.__file__).parent
    assert [name for name in COUNTING if not (root / name).exists()] == []


def test_what_is_counted_again_is_named(meta: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Another encoder is other software, which nobody expects to cost anything; other settings were asked for."""
    corpus, processor = open_corpus(meta), toy.processor(FAMILY)
    exact = Samples(corpus=corpus, encoder=Encoder(facts=read_processor(processor, choice="exact")))
    with caplog.at_level("INFO", "lading"):
        run(exact, tmp_path / "cache")
        assert "counted again" not in caplog.text
        run(samples_of(meta, processor), tmp_path / "cache")
        (record,) = (record for record in caplog.records if "counted again" in record.message)
        assert record.levelname == "WARNING"
        assert "since other than last time: encoder (shapes, albums," in record.message
        caplog.clear()
        run(samples_of(meta, processor), tmp_path / "cache")
        assert "counted again" not in caplog.text
        other = copy.deepcopy(processor)
        other.image_processor.size = {"shortest_edge": 28 * 28 * 4, "longest_edge": 28 * 28 * 9}
        run(samples_of(meta, other), tmp_path / "cache")
        (record,) = (record for record in caplog.records if "counted again" in record.message)
        assert record.levelname == "INFO"
        assert "settings" in record.message


def test_keys_that_nobody_reads_are_counted_kept_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    talk = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada."}]
    rows = [{"messages": talk, "id": place, **({"mood": "glad"} if place % 3 == 2 else {})} for place in range(20)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for fresh in (20, 0):
        caplog.clear()
        with caplog.at_level("INFO", "lading.lengths"):
            counted = run(samples_of(tmp_path / "rows.jsonl"), tmp_path / "cache")
        assert sum(counted.fresh) == fresh
        found = {key.key: (key.kind, key.count, key.where) for key in counted.table.unread}
        file = str(tmp_path / "rows.jsonl")
        assert found == {"id": ("harmless", 20, f"{file}:1"), "mood": ("unread", 6, f"{file}:3")}
        (record,) = (record for record in caplog.records if "nobody reads mood" in record.message)
        assert record.levelname == "WARNING"
    ledger = Ledger.open(counted.table)
    assert str(ledger).splitlines()[0].startswith("rows: nobody reads mood (6, first ")
