"""Real conversations through the real processor: nothing lost, counted equals encoded, packs full."""

import json
from pathlib import Path

import pytest

from lading.encode import Encoder
from lading.encode.template import messages_for_template
from lading.lengths import count_lengths
from lading.loader import ProcessorFacts, Samples, load_processor, read_processor
from lading.plan import make_plan, plan_stats
from lading.records import Encoded
from lading.sources import open_corpus
from tests.support.shared import real_processor, shared_data

pytestmark = pytest.mark.xdist_group("shared-qwen2_5_vl")


@pytest.fixture(scope="module")
def facts() -> ProcessorFacts:
    return read_processor(load_processor(real_processor("qwen2_5_vl")))


@pytest.fixture(scope="module")
def alpaca(facts: ProcessorFacts) -> Samples:
    return Samples(corpus=open_corpus(shared_data("alpaca_en_demo.json")), encoder=Encoder(facts=facts))


@pytest.mark.parametrize("pack_size", [2048, 4096])
def test_text_is_packed_full_and_whole(alpaca: Samples, pack_size: int) -> None:
    table = count_lengths(alpaca)
    stats = plan_stats(make_plan(table, pack_size=pack_size), table)
    assert (stats.samples, stats.packed, stats.dropped) == (999, 999, 0)
    assert stats.fill >= 0.99
    assert stats.packs == stats.lower_bound


def test_text_is_counted_as_the_processor_tokenises(alpaca: Samples) -> None:
    table = count_lengths(alpaca)
    processor = alpaca.encoder.facts.processor
    for index in range(0, 999, 7):
        messages = messages_for_template(alpaca.conversation(index).messages)
        own = processor.apply_chat_template(messages, tokenize=True, return_dict=True)["input_ids"][0]
        assert table.tokens[index] == len(own)


@pytest.mark.parametrize("name", ["mllm_demo", "mllm_video_demo"])
def test_real_media_are_counted_without_pixels(facts: ProcessorFacts, name: str) -> None:
    path = shared_data(f"mllm_demo/{name}.json")
    samples = Samples(corpus=open_corpus(path), encoder=Encoder(facts=facts))
    table = count_lengths(samples)
    assert not table.dropped
    assert len(table) == len(json.loads(path.read_text()))
    for index in range(len(table)):
        encoded = samples.encode(index, counted=int(table.tokens[index]))
        assert isinstance(encoded, Encoded)
        if name == "mllm_demo":
            talk = samples.conversation(index)
            text = facts.processor.apply_chat_template(messages_for_template(talk.messages), tokenize=False)
            pictures = [Path(str(part.reference)) for part in talk.media]
            from transformers.image_utils import load_image

            own = facts.processor(text=[text], images=[load_image(str(p)) for p in pictures], return_tensors="pt")
            assert encoded.tensors["input_ids"].tolist() == own["input_ids"][0].tolist()
            assert (encoded.tensors["pixel_values"] - own["pixel_values"]).abs().max() == 0
