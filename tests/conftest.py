"""Fixtures for every room: the toy world, and the shared folder where it is present."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

# No test reaches a network; set before transformers is imported, because it is read only once.
os.environ["HF_HUB_OFFLINE"] = "1"
# Lengths are kept where they vanish with the tests, and never beside data that is not ours.
_KEPT = tempfile.TemporaryDirectory(prefix="lading-tests-")
os.environ["LADING_CACHE"] = _KEPT.name

import hypothesis
import pytest
import torch

from lading import toy
from lading.encode import Encoder
from lading.loader import ProcessorFacts, Samples, read_processor
from lading.sources import open_corpus

# Timings are noisy where two processes share two cores; and CI must not depend on luck: new examples are tried at home.
hypothesis.settings.register_profile("lading", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("lading")

# Two processes share two cores; torch must not start threads of its own in each.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def toy_border() -> ProcessorFacts:
    return read_processor(toy.processor("qwen2_5_vl"))


@pytest.fixture(scope="session")
def toy_meta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("corpus"), samples=60)


@pytest.fixture(scope="session")
def toy_samples(toy_border: ProcessorFacts, toy_meta: Path) -> Samples:
    return Samples(corpus=open_corpus(toy_meta), encoder=Encoder(facts=toy_border))
