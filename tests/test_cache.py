"""A file that takes its place in one step; where that place is no plain file, it is written to."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from lading.cache import replacing


def test_a_link_stays_one_and_its_target_is_new(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
        assert (tmp_path / "target").read_text() == "old"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX")
def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with replacing(tmp_path / "pipe") as file:
        file.write(b"said")
    reader.join(10)
    assert heard == [b"said"]
    assert (tmp_path / "pipe").is_fifo()


def test_what_fails_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("old")
    with suppress(RuntimeError), replacing(tmp_path / "notes") as file:
        file.write(b"half")
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
    assert (tmp_path / "notes").read_text() == "old"
