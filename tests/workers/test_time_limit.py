"""A sample that hangs while it is read ends as a named skip, wherever it hangs, and the run goes on."""

import ctypes
import faulthandler
import gc
import json
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import pytest

from lading import Loader, toy
from lading.errors import ConfigError, Reason, SkipSample
from lading.media import measure, video
from lading.records import Dropped, MediaPart, SampleKey
from lading.samples.skip import SkipPolicy, WorkerWatch
from lading.toy.corpus import draw_clip
from lading.workers.pool import ProcessPool
from lading.workers.prefetch import MOST_DEATHS

TOY = "toy:qwen2_5_vl"
KEY = SampleKey(index=3, source="s", where="d.jsonl:4")


def reasons(loader: Loader) -> dict[str, int]:
    loader.ledger.check()
    found: dict[str, int] = loader.ledger.total()["reasons"]
    return found


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return toy.write_corpus(tmp_path, samples=30)


@pytest.mark.parametrize("kind", ["image", "video", "audio"])
def test_a_pipe_is_refused_before_it_is_opened(tmp_path: Path, kind: Any) -> None:
    pipe = tmp_path / "pipe.mp4"
    os.mkfifo(pipe)
    for odd, said in ((pipe, "a pipe"), (tmp_path, "a folder"), (Path("/dev/zero"), "a device")):
        with pytest.raises(SkipSample, match=f"that is {said}") as skip:
            measure(MediaPart(kind=kind, reference=str(odd)))
        assert skip.value.reason == Reason.CORRUPT_MEDIA
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        with pytest.raises(SkipSample, match="that is a socket"):
            measure(MediaPart(kind=kind, reference=str(tmp_path / "s")))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_pipe_in_a_corpus_is_a_named_skip_in_counting_and_in_training(corpus: Path, workers: int) -> None:
    media = corpus.parent / "media"
    (media / "clip-0.mp4").unlink()
    os.mkfifo(media / "clip-0.mp4")
    loader = Loader(corpus, TOY, pack_size=512, num_workers=workers, cache=False)
    assert reasons_of_counting(loader) == {"clips": Reason.CORRUPT_MEDIA}
    (media / "clip-1.mp4").unlink()
    os.mkfifo(media / "clip-1.mp4")
    list(loader)
    assert reasons(loader) == {"corrupt_media": 2}
    assert all("that is a pipe" in str(entry["detail"]) for entry in loader.ledger.entries())


def reasons_of_counting(loader: Loader) -> dict[str, Reason]:
    return {entry.key.source: entry.reason for entry in loader.lengths.dropped}


def test_a_clip_that_takes_too_long_is_given_up_between_two_frames(tmp_path: Path) -> None:
    """In any process: no signal is needed for it."""
    draw_clip(tmp_path / "clip.mp4", "red", "circle", frames=400)
    part = MediaPart(kind="video", reference=str(tmp_path / "clip.mp4"))

    def frames_in(seconds: float | None) -> Any:
        return SkipPolicy(decode_seconds=seconds).attempt(KEY, lambda: len(video.decode(part, range(400))))

    dropped = frames_in(0.01)
    assert dropped.reason == Reason.DECODE_TIMEOUT
    assert "clip.mp4 still being read after 0.01 s" in dropped.detail
    assert frames_in(60) == 400
    assert frames_in(None) == 400, "whoever sets no limit has none"
    assert len(video.decode(part, range(400))) == 400, "and none is left behind"


def in_a_process_of_ours(work: Callable[[], Any], seconds: float) -> Any:
    """What the policy makes of a sample, and of the next one, in a process that was started to read samples."""
    policy = SkipPolicy(decode_seconds=seconds)

    def attempt_both(_: int) -> list[Any]:
        return [policy.attempt(KEY, work), policy.attempt(KEY, lambda: "the next one")]

    with ProcessPool(attempt_both, 2, "fork") as pool:
        return next(pool.map(range(2), 2))


def carry_on_regardless() -> None:
    while True:
        try:
            time.sleep(60)
        except Exception:  # noqa: BLE001 - this is what libraries do, and what must not help them
            continue


def loop() -> None:
    while True:
        pass


@pytest.mark.parametrize("work", [carry_on_regardless, loop])
def test_what_python_does_forever_is_interrupted(work: Callable[[], None]) -> None:
    began = time.monotonic()
    dropped, following = in_a_process_of_ours(work, 0.2)
    assert isinstance(dropped, Dropped)
    assert (dropped.key, dropped.reason) == (KEY, Reason.DECODE_TIMEOUT)
    assert following == "the next one"
    assert time.monotonic() - began < 10


def test_a_pipe_that_is_read_all_the_same_is_interrupted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    dropped, _ = in_a_process_of_ours((tmp_path / "pipe").read_bytes, 0.2)
    assert dropped.reason == Reason.DECODE_TIMEOUT


def test_the_signals_of_the_user_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGALRM)
    assert SkipPolicy(decode_seconds=0.01).attempt(KEY, lambda: time.sleep(0.05)) is None
    assert signal.getsignal(signal.SIGALRM) == before


def hang_on(monkeypatch: pytest.MonkeyPatch, name: str, hang: Callable[[], object]) -> None:
    """Decoding this clip hangs, as a broken codec does. Workers are forked, and so inherit it."""
    decode = video.decode

    def decode_or_hang(part: MediaPart, wanted: Any) -> Any:
        if str(part.reference).endswith(name):
            hang()
        return decode(part, wanted)

    monkeypatch.setattr(video, "decode", decode_or_hang)


@pytest.mark.slow
def test_a_clip_that_hangs_in_a_worker_is_skipped_by_name(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Loader(corpus, TOY, pack_size=300)
    hang_on(monkeypatch, "clip-1.mp4", loop)
    loader = Loader(corpus, TOY, pack_size=300, num_workers=2, decode_seconds=1.0)
    assert len(list(loader)) == len(whole), "the ranks must stay in step"
    assert reasons(loader) == {"decode_timeout": 1}
    (entry,) = loader.ledger.entries()
    assert entry["source"] == "clips"
    assert "wanted a sample that is read within that time (decode_seconds)" in str(entry["detail"])


def locked_for_good() -> None:
    """Waits for a lock that it has itself, in C, with the interpreter's lock held: nothing in Python runs any more."""
    library = ctypes.PyDLL(None)
    lock = ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(lock)
    library.pthread_mutex_lock(lock)


@pytest.mark.slow
def test_a_worker_that_hears_nothing_ends_and_the_next_one_refuses_the_sample(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    hang_on(monkeypatch, "clip-1.mp4", locked_for_good)
    loader = Loader(corpus, TOY, pack_size=300, num_workers=2, decode_seconds=0.5)
    batches = list(loader)
    assert len(batches) == len(loader)
    assert reasons(loader) == {"decode_timeout": 1}
    (entry,) = loader.ledger.entries()
    assert json.loads((corpus.parent / "clips.jsonl").read_text().splitlines()[1])["videos"] == ["clip-1.mp4"]
    assert str(entry["where"]).endswith("clips.jsonl:2")
    assert "no alarm interrupts" in str(entry["detail"])
    assert "A worker hung and was ended" in caplog.text
    assert "in locked_for_good" in capfd.readouterr().err, "it says where"


@pytest.mark.slow
def test_any_number_of_samples_may_hang_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More clips in one pack than workers that may die without a single batch in between."""
    hang_on(monkeypatch, ".mp4", locked_for_good)
    loader = Loader(toy.write_corpus(tmp_path, samples=50), TOY, pack_size=9000, num_workers=1, decode_seconds=0.2)
    clips = int((loader.lengths.videos > 0).sum())
    assert clips > MOST_DEATHS
    list(loader)
    assert reasons(loader) == {"decode_timeout": clips}


def note_then_wait(watch: WorkerWatch, moves_on: bool) -> None:
    watch.begin(7)
    if moves_on:
        signal.signal(signal.SIGVTALRM, lambda *_: (watch.end(), os._exit(0)))
    time.sleep(60)


@pytest.mark.slow
@pytest.mark.parametrize("moves_on", [False, True])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_only_what_a_late_worker_was_still_reading_is_refused(method: str, moves_on: bool) -> None:
    watch = WorkerWatch(0.1)
    worker: Any = multiprocessing.get_context(method).Process(target=note_then_wait, args=(watch, moves_on))
    worker.start()
    assert not watch.end_if_late(worker), "it has only begun"
    until = time.monotonic() + 60
    while not watch.end_if_late(worker) and time.monotonic() < until:
        time.sleep(0.05)
    assert not worker.is_alive()
    assert watch.refused == (set() if moves_on else {7})
    assert not watch.end_if_late(worker), "nothing is being read"
    if not moves_on:
        with pytest.raises(SkipSample, match="no alarm interrupts"):
            watch.begin(7)


def killed_once(mark: Path) -> None:
    """What the kernel does when memory runs out."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_sample_is_not_blamed_for_a_worker_that_somebody_killed(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "killed"
    hang_on(monkeypatch, "clip-1.mp4", lambda: killed_once(mark))
    loader = Loader(corpus, TOY, pack_size=300, num_workers=1, decode_seconds=0.5)
    late = False
    for _ in loader:
        if mark.exists() and not late:
            late = True
            time.sleep(3)  # a long step: that it died is noticed long after the sample's time was over
    assert late
    assert reasons(loader) == {}


@pytest.mark.slow
def test_workers_do_not_mind_a_hang_detector_of_the_user(corpus: Path) -> None:
    """Its thread is not copied into a worker, which must not wait for it."""
    loader = Loader(corpus, TOY, pack_size=300, num_workers=1, decode_seconds=30.0)
    faulthandler.dump_traceback_later(60, exit=True)
    try:
        assert len(list(loader)) == len(loader)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.mark.slow
def test_a_worker_may_wait_longer_than_a_sample_may_take(corpus: Path, caplog: pytest.LogCaptureFixture) -> None:
    loader = Loader(corpus, TOY, pack_size=300, num_workers=1, decode_seconds=1.0)
    for step, _ in enumerate(loader):
        if step == 1:
            time.sleep(5)  # a long training step: the worker is at rest
    assert "died" not in caplog.text
    assert reasons(loader) == {}


@pytest.mark.parametrize("seconds", [0, -1, True, "60", float("inf"), float("nan"), 1e12, 10**400])
def test_limits_that_cannot_be(corpus: Path, seconds: object) -> None:
    with pytest.raises(ConfigError, match="decode_seconds"):
        Loader(corpus, TOY, pack_size=300, decode_seconds=seconds)


@pytest.mark.slow
def test_a_decoder_that_is_garbage_when_workers_are_forked_does_not_hang_them(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its threads are left behind: whoever frees it in a worker waits for them forever."""
    draw_clip(tmp_path / "long.mp4", "red", "circle", frames=200)
    loader = Loader(corpus, TOY, pack_size=300, num_workers=1, decode_seconds=10.0)
    hang_on(monkeypatch, ".mp4", gc.collect)  # the worker frees garbage before it decodes
    container = av.open(str(tmp_path / "long.mp4"))
    container.streams.video[0].thread_type = "AUTO"
    frame = next(container.decode(video=0))
    frame.to_ndarray(format="rgb24")
    cycle: list[object] = [container, frame]
    cycle.append(cycle)
    del container, frame, cycle
    assert len(list(loader)) == len(loader)
    assert reasons(loader) == {}
