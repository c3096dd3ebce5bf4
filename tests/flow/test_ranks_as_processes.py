"""Two real processes of one group: each trains its share, and their ledgers add up."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lading import toy

RANK = """
import json, os, sys
import torch.distributed as distributed
from lading import Loader
meta, folder, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
loader = Loader(meta, "toy:qwen2_5_vl", pack_size=300, num_workers=1)
distributed.barrier()
if rank == 0:  # after counting: what fails now, fails in a worker of one rank
    for name in ("shape-3.png", "shape-10.png"):
        os.truncate(f"{os.path.dirname(meta)}/media/{name}", 60)
distributed.barrier()
steps = sum(1 for _ in loader)
books = loader.merged_ledger()
books.check()
print(json.dumps({"steps": steps, "total": books.total(), "repeats": books.repeats, "own": loader.ledger.total(),
                  "entries": books.entries()}))
distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_the_books_of_all_ranks_add_up(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path / "corpus", samples=30)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(meta), str(tmp_path), str(rank)], stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    one, other = (json.loads(process.communicate(timeout=240)[0]) for process in processes)
    assert one["steps"] == other["steps"]
    assert one["total"] == other["total"]
    assert one["total"]["trained"] + one["total"]["dropped"] + one["total"]["replaced"] == 30
    assert one["total"]["reasons"] == {"corrupt_media": 2}
    assert [entry["where"] for entry in one["entries"]] == [entry["where"] for entry in other["entries"]]
    assert max(own["own"]["trained"] for own in (one, other)) < one["total"]["trained"], "each knows its share alone"


DISAGREEING = """
import os, sys
import torch.distributed as distributed
from lading import Loader
from lading.errors import ConfigError
meta, folder, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
picture = f"{os.path.dirname(meta)}/media/shape-3.png"
if rank == 0:
    os.rename(picture, picture + ".away")
    Loader(meta, "toy:qwen2_5_vl", pack_size=300, cache=False)
    os.rename(picture + ".away", picture)
distributed.barrier()
if rank == 1:
    try:
        Loader(meta, "toy:qwen2_5_vl", pack_size=300, cache=False)
    except ConfigError as error:
        print(error)
distributed.barrier()
distributed.destroy_process_group()
"""


TWO_CORPORA = """
import sys
import torch.distributed as distributed
from lading import Loader
one, other, folder, rank = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
if rank == 0:
    Loader(one, "toy:qwen2_5_vl", pack_size=300, world_size=1, rank=0)
    Loader(one, "toy:qwen2_5_vl", pack_size=300), Loader(other, "toy:qwen2_5_vl", pack_size=300)
distributed.barrier()
if rank == 1:
    Loader(one, "toy:qwen2_5_vl", pack_size=300), Loader(other, "toy:qwen2_5_vl", pack_size=300)
    print("agreed")
distributed.barrier()
distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_two_corpora_of_as_many_samples_are_no_disagreement(tmp_path: Path) -> None:
    """Those for training and for validation, say."""
    rows = toy.write_corpus(tmp_path / "corpus", samples=30).with_name("talks.jsonl").read_text().splitlines()
    halves = [tmp_path / "corpus" / name for name in ("train.jsonl", "validation.jsonl")]
    for half, path in enumerate(halves):
        path.write_text("".join(row + "\n" for row in rows[half::2][: len(rows) // 2]))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TWO_CORPORA, *map(str, halves), str(tmp_path), str(rank)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=240)[0] for process in processes]
    assert "agreed" in said[1]


@pytest.mark.slow
def test_ranks_that_planned_otherwise_are_told(tmp_path: Path) -> None:
    """A picture that only one rank could not read would give it other packs."""
    meta = toy.write_corpus(tmp_path / "corpus", samples=30)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", DISAGREEING, str(meta), str(tmp_path), str(rank)], stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=240)[0] for process in processes]
    assert "another plan on rank 0 than on rank 1 (lengths" in said[1]
