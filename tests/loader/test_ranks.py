"""Which processes get the same data: by a mesh, by a group, and what is said where neither was given."""

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed, multiprocessing
from torch.distributed.device_mesh import init_device_mesh

from lading import ConfigError, Loader, toy
from lading.records import Batch

WORLD = 4
"""Two shares of the data, each trained on by two processes that hold a half of the model."""


def digest(batch: Batch) -> str:
    """Of every number that the model is fed."""
    made = hashlib.sha256()
    for name, value in sorted(batch.inputs.items()):
        made.update(name.encode())
        made.update(value.numpy().tobytes() if isinstance(value, torch.Tensor) else repr(value).encode())
    return made.hexdigest()


def of(meta: str, **options: Any) -> Loader:
    return Loader(meta, "toy:qwen2_5_vl", pack_size=300, cache=False, **options)


def seen(loader: Loader) -> dict[str, Any]:
    batches = list(loader)
    ledger = loader.merged_ledger()
    ledger.check()
    return {
        "share": [loader.config.rank, loader.config.world_size],
        "documents": [document.key.index for batch in batches for row in batch.rows for document in row],
        "batches": [digest(batch) for batch in batches],
        "total": ledger.total()["trained"],
    }


def refused(**options: Any) -> str:
    with pytest.raises(ConfigError) as error:
        of("never opened", **options)
    return str(error.value)


class Said(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def rank_main(rank: int, folder: str, meta: str) -> None:
    """Everything that four processes of a group see."""
    torch.set_num_threads(1)
    store = distributed.FileStore(f"{folder}/store", WORLD)
    distributed.init_process_group("gloo", rank=rank, world_size=WORLD, store=store)
    said = Said()
    logging.getLogger("lading").addHandler(said)
    report: dict[str, Any] = {"alone": [of(meta).config.rank, of(meta).config.world_size], "before": list(said.lines)}
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    nameless = init_device_mesh("cpu", (2, 2))
    odd = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "experts"))
    hybrid = init_device_mesh("cpu", (2, 2, 1), mesh_dim_names=("dp_replicate", "dp_shard", "tp"))
    loader = of(meta)
    report["assumed"] = {"share": [loader.config.rank, loader.config.world_size], "said": list(said.lines)}
    said.lines.clear()
    report["mesh"] = seen(of(meta, mesh=mesh))
    report["part"] = seen(of(meta, mesh=mesh["dp"]))
    report["group"] = seen(of(meta, group=mesh.get_group("dp")))
    report["dims"] = seen(of(meta, mesh=odd, data_dims=("dp",)))
    report["one name"] = seen(of(meta, mesh=odd, data_dims="dp"))
    parts = hybrid, hybrid["dp_replicate", "dp_shard"], hybrid["dp_replicate", "dp_shard"]._flatten("dp")
    report["hybrid"] = [seen(of(meta, mesh=part))["share"] for part in parts]
    report["one share"] = of(meta, mesh=init_device_mesh("cpu", (1, 4), mesh_dim_names=("dp", "tp"))["dp"]).config.rank
    both = of(meta, mesh=mesh, world_size=None)
    report["all the same"] = seen(of(meta, mesh=mesh["tp"], data_dims=()))
    report["by hand"] = [of(meta, rank=1, world_size=3).config.rank, both.config.world_size]
    report["refused"] = [
        refused(mesh=nameless),
        refused(mesh=odd),
        refused(mesh=mesh, data_dims=("dp", "cp")),
        refused(mesh=mesh, rank=0, world_size=2),
        refused(data_dims=("dp",)),
        refused(mesh=mesh["tp"]),
        refused(mesh=hybrid["dp_shard"]),
        refused(mesh=hybrid["dp_shard", "tp"]),
        refused(mesh="dp"),
        refused(group=5),
    ]
    report["quiet"] = [line for line in said.lines if "process groups" in line]
    Path(folder, f"{rank}.json").write_text(json.dumps(report))
    distributed.barrier()
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("ranks")
    meta = toy.write_corpus(folder / "corpus", samples=30)
    processes = multiprocessing.start_processes(  # type: ignore[no-untyped-call]
        rank_main, args=(str(folder), str(meta)), nprocs=WORLD, join=False
    )
    while not processes.join(timeout=240):
        pass
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(WORLD)]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["mesh", "part", "group", "dims", "one name"])
def test_ranks_that_hold_parts_of_one_model_get_the_same(reports: list[dict[str, Any]], way: str) -> None:
    first, second, third, fourth = (report[way] for report in reports)
    assert [one["share"] for one in (first, second, third, fourth)] == [[0, 2], [0, 2], [1, 2], [1, 2]]
    assert (first["documents"], first["batches"]) == (second["documents"], second["batches"])
    assert (third["documents"], third["batches"]) == (fourth["documents"], fourth["batches"])
    # Of the last step alone a pack may be repeated on another rank.
    assert not {*first["batches"][:-1]} & {*third["batches"][:-1]}
    assert sorted({*first["documents"], *third["documents"]}) == list(range(30))
    assert {one["total"] for one in (first, second, third, fourth)} == {30}, "no share is counted twice"


@pytest.mark.slow
def test_where_subgroups_exist_and_none_was_named_it_is_said_what_was_assumed(reports: list[dict[str, Any]]) -> None:
    for rank, report in enumerate(reports):
        assert report["alone"] == [rank, WORLD]
        assert report["before"] == [], "one group alone is no reason to say anything"
        assert report["assumed"]["share"] == [rank, WORLD]
        assert any("each of all 4 ranks gets a share" in line and "mesh=" in line for line in report["assumed"]["said"])
        assert report["quiet"] == [], "nor where one was named"
        assert report["by hand"] == [1, 2]


@pytest.mark.slow
def test_a_mesh_whose_data_dimensions_are_not_known_is_refused(reports: list[dict[str, Any]]) -> None:
    for rank, report in enumerate(reports):
        nameless, odd, lacking, both, without, part, shard, lone, text, number = report["refused"]
        assert "2 dimensions without names" in nameless
        assert "experts" in odd
        assert "data_dims" in odd
        assert "cp" in lacking
        assert "more than one of mesh, group, and rank" in both
        assert "data_dims without a mesh" in without
        assert "a mesh of tp alone, of 2 of 4 processes" in part
        assert "a mesh of dp_shard alone, of 2 of 4 processes" in shard, "its replicas would train on the same"
        assert "a mesh of dp_shard, tp alone, of 2 of 4 processes" in lone
        assert (report["hybrid"], report["one share"]) == ([[rank, WORLD]] * 3, 0)
        assert "a str as mesh" in text
        assert "5 as group" in number
        assert report["all the same"]["share"] == [0, 1]
        assert sorted(report["all the same"]["documents"]) == list(range(30))
