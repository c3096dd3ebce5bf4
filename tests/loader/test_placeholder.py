"""Text-only batches beside a vision tower: room for the placeholder, and a gradient for every parameter."""

import json
import time
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel

from lading import Loader, families, toy
from lading.errors import ConfigError
from lading.media import placeholder
from lading.records import Batch
from tests.support.shorter import write_talks

TOY = "toy:qwen2_5_vl"
LIMIT = 240.0
"""Seconds after which two ranks that wait for each other are given up."""


def has_placeholder(batch: Batch) -> bool:
    return any(document.key.source == placeholder.SOURCE for row in batch.rows for document in row)


@pytest.mark.parametrize("too_long", ["drop", "truncate"])
def test_no_row_is_longer_than_a_pack(toy_meta: Path, too_long: str) -> None:
    loader = Loader(toy_meta, TOY, pack_size=150, placeholder_media=True, too_long=too_long)
    batches = list(loader)
    assert any(map(has_placeholder, batches))
    assert not all(map(has_placeholder, batches))
    assert max(batch.tensor("input_ids").shape[1] for batch in batches) <= 150
    assert loader.plan.pack_size < 150
    loader.ledger.check()


def test_a_corpus_of_pictures_gives_up_no_room(toy_meta: Path) -> None:
    pictures = toy_meta.parent / "albums.jsonl"
    (toy_meta.parent / "albums.json").write_text(
        json.dumps({"albums": {"file_name": pictures.name, "media_dir": "media"}})
    )
    loader = Loader(toy_meta.parent / "albums.json", TOY, pack_size=300, placeholder_media=True)
    assert loader.plan.pack_size == 300
    assert not any(map(has_placeholder, loader))


def test_a_pack_without_room_beside_the_placeholder_is_refused(toy_meta: Path) -> None:
    with pytest.raises(ConfigError, match="placeholder_media, whose picture takes"):
        Loader(toy_meta, TOY, pack_size=10, placeholder_media=True)


def gradients(model: torch.nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
    """The gradients of one step, of the parameters that got one."""
    model.zero_grad(set_to_none=True)
    model(**batch).loss.backward()
    return {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}


@pytest.mark.parametrize("name", families.names())
def test_text_alone_gives_every_parameter_of_a_picture_a_gradient(name: str, tmp_path: Path) -> None:
    talk = [("user", ("What is two plus two?",)), ("assistant", ("Four, as ever.",))]
    shown = [("user", ({"type": "image", "image": "navy.png"}, "What is it?")), ("assistant", ("Navy.",))]
    batches = {}
    for kind, row in (("text", talk), ("picture", shown)):
        folder = tmp_path / kind
        folder.mkdir()
        Image.new("RGB", (120, 90), "navy").save(folder / "navy.png")
        write_talks(folder, row)
        for media in (False, True):
            loader = Loader(folder / "talks.jsonl", f"toy:{name}", pack_size=4096, placeholder_media=media)
            batches[kind, media] = next(iter(loader))
    model = toy.model(name).eval()
    bare, held = gradients(model, batches["text", False]), gradients(model, batches["text", True])
    seen = gradients(model, batches["picture", False])
    vision = set(seen) - set(bare)
    assert vision, "without a placeholder the vision tower gets no gradient"
    assert set(held) == set(seen), "with one, whatever a picture reaches has a gradient"
    assert all(not held[name].any() for name in vision), "and it is zero"
    for parameter, gradient in bare.items():
        assert (held[parameter] - gradient).abs().max() <= 1e-4 * gradient.abs().max(), parameter


def rank_main(rank: int, folder: str) -> None:
    """One of two ranks, on gloo: rank 0 has text alone, rank 1 pictures; three steps together."""
    torch.set_num_threads(1)
    store = distributed.FileStore(f"{folder}/store", 2)
    distributed.init_process_group("gloo", rank=rank, world_size=2, store=store)
    # Without find_unused_parameters: a parameter without a gradient would leave the other rank waiting.
    model = DistributedDataParallel(toy.model("qwen2_5_vl"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    corpus = Path(folder, ("talks", "shapes")[rank] + ".json")
    loader = Loader(corpus, TOY, pack_size=128, placeholder_media=True, rank=0, world_size=1)
    said = []
    for _, batch in zip(range(3), loader, strict=False):
        said.append(has_placeholder(batch))
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    values = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    torch.save({"values": values, "placeholders": said}, Path(folder, f"{rank}.pt"))
    distributed.destroy_process_group()


@pytest.mark.slow
def test_a_rank_of_text_and_a_rank_of_pictures_train_together(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path, samples=60)
    for name, entry in json.loads(meta.read_text()).items():
        (tmp_path / f"{name}.json").write_text(json.dumps({name: entry}))
    ranks = multiprocessing.start_processes(rank_main, args=(str(tmp_path),), nprocs=2, join=False)  # type: ignore[no-untyped-call]
    late = time.monotonic() + LIMIT
    try:
        while not ranks.join(timeout=1):
            assert time.monotonic() < late, "the ranks wait for each other"
    finally:
        for process in ranks.processes:
            process.kill()
    text, pictures = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert text["placeholders"] == [True] * 3
    assert pictures["placeholders"] == [False] * 3
    assert torch.equal(text["values"], pictures["values"])
    untrained = torch.nn.utils.parameters_to_vector(toy.model("qwen2_5_vl").parameters()).detach()
    assert not torch.equal(text["values"], untrained)
