import copy
import pickle

import pytest
from tokenizers.processors import TemplateProcessing

from lading import toy
from lading.errors import ConfigError
from lading.lengths import count_lengths
from lading.loader import ProcessorFacts, Samples, load_processor, read_processor
from lading.media import placeholder


def test_a_border_crosses_process_borders(toy_border: ProcessorFacts) -> None:
    twin = pickle.loads(pickle.dumps(toy_border))
    talk = placeholder.conversation()
    assert twin.tokeniser.render(talk) == toy_border.tokeniser.render(talk)
    assert twin.geometries == toy_border.geometries


def test_no_pad_token() -> None:
    processor = copy.deepcopy(toy.processor("qwen2_5_vl"))
    processor.tokenizer.pad_token = None
    with pytest.raises(ConfigError, match="no pad token"):
        read_processor(processor)


def test_no_chat_template() -> None:
    processor = copy.deepcopy(toy.processor("qwen2_5_vl"))
    processor.chat_template = None
    with pytest.raises(ConfigError, match="without a chat template"):
        read_processor(processor)


@pytest.mark.parametrize("name", ["toy:nothing", "/no/such/folder", "no-such-folder"])
def test_a_processor_that_cannot_be_had(name: str) -> None:
    with pytest.raises(ConfigError, match="wanted"):
        load_processor(name)


def test_counts_do_not_depend_on_who_used_the_tokenizer_before(toy_samples: Samples) -> None:
    before = count_lengths(toy_samples)
    toy_samples.facts.processor.tokenizer(["a", "b c d e f"], padding="max_length", truncation=True, max_length=300)
    after = count_lengths(toy_samples)
    assert after.tokens.tolist() == before.tokens.tolist()
    toy_samples.facts.processor.tokenizer(["a", "b c d e f"], padding=True, truncation=True, max_length=3)
    assert count_lengths(toy_samples).tokens.tolist() == before.tokens.tolist()


def test_a_tokenizer_of_another_family_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"without '<IMG_CONTEXT>'"):
        read_processor(toy.processor("qwen2_5_vl"), "internvl")


def test_a_text_is_tokenised_alike_in_any_company() -> None:
    processor = copy.deepcopy(toy.processor("gemma3"))
    first, number = processor.tokenizer.bos_token, processor.tokenizer.bos_token_id
    processor.tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{first} $A", special_tokens=[(first, number)]
    )
    encode = read_processor(processor).tokeniser.encode_texts
    texts = [f"{first}red", "green", f"{first}blue", "red"]
    together = [encoded.ids.tolist() for encoded in encode(texts)]
    assert together == [encode([text])[0].ids.tolist() for text in texts]
    assert [(ids[0], ids.count(number)) for ids in together] == [(number, 1)] * len(texts)
