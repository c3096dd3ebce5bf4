"""One contract over every family: what makes families differ is declared, so all of them keep the same promises."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from lading.encode import Encoder
from lading.encode.template import messages_for_template
from lading.errors import SkipSample
from lading.fields import IGNORE_INDEX
from lading.loader import ProcessorFacts, Samples
from lading.packing import build_pack
from lading.records import Conversation, Encoded, MediaPart, Message, TextPart
from lading.sources import Corpus
from lading.tensors import clip, join, split
from lading.verify.alone import chat_template, labels_alone
from tests.families.talks import clip_bytes, make_talk, own_output, picture, sound_bytes
from tests.families.targets import TARGETS, facts_of

pytestmark = pytest.mark.parametrize("target", TARGETS)

REFUSES_TOOL_TURNS = (("real", "gemma4"),)
"""Templates that write an answer after a tool's into the turn before: such a talk is refused by name."""


def _samples(facts: ProcessorFacts) -> Samples:
    return Samples(corpus=Corpus.of([]), encoder=Encoder(facts=facts))


def _sound_talks(facts: ProcessorFacts) -> list[Conversation]:
    if "audio" not in facts.geometries:
        return []
    first, second = (MediaPart(kind="audio", reference=sound_bytes(seconds)) for seconds in (1.3, 2.9))
    return [
        make_talk(5, ("user", (first, "What is this?")), ("assistant", ("A hum.",))),
        make_talk(6, ("user", (second, "and", first)), ("assistant", ("Two hums.",))),
        make_talk(
            9,
            (
                "user",
                tuple(MediaPart(kind="audio", reference=sound_bytes(samples / 16_000)) for samples in (16_001, 32_000)),
            ),
            ("assistant", ("Odd lengths.",)),
        ),
    ]


def _clip_talks(facts: ProcessorFacts) -> list[Conversation]:
    if "video" not in facts.geometries:
        return []
    short, long = (MediaPart(kind="video", reference=clip_bytes(frames)) for frames in (9, 40))
    return [
        make_talk(7, ("user", (short, "What moves?")), ("assistant", ("A circle.",))),
        make_talk(
            8, ("user", ("Before", long, picture(90, 50, "red"), "after")), ("assistant", ("A clip, a picture.",))
        ),
    ]


def _talks(facts: ProcessorFacts) -> list[Conversation]:
    return [
        *_clip_talks(facts),
        *_sound_talks(facts),
        make_talk(0, ("user", ("What is two plus two?",)), ("assistant", ("Four.",))),
        make_talk(1, ("user", (picture(120, 90, "red"), "What do you see?")), ("assistant", ("A red picture.",))),
        make_talk(2, ("system", ("Be brief.",)), ("user", ("Hi",)), ("assistant", ("Hello!",))),
        make_talk(
            3,
            ("user", (picture(200, 60, "blue"), "and", picture(64, 150, "green"))),
            ("assistant", ("Two pictures.", " One is blue.")),
            ("user", ("Which is green?",)),
            ("assistant", ("The second.\n\nSurely.",)),
        ),
        make_talk(4, ("user", ("\nNewlines first?\n",)), ("assistant", ("\nYes, here too.",))),
    ]


def _encoded(facts: ProcessorFacts) -> list[Encoded]:
    samples = _samples(facts)
    return [samples.encoder.encode(talk) for talk in _talks(facts)]


def test_ids_and_pixels_equal_the_processors_own(target: tuple[str, str]) -> None:
    facts = facts_of(target)
    for talk, sample in zip(_talks(facts), _encoded(facts), strict=True):
        own = own_output(facts, talk)
        assert sample.tensors["input_ids"].tolist() == own["input_ids"][0].tolist()
        for name in facts.family.fields:
            assert name in sample.tensors or name not in own
            if name in own:
                assert torch.equal(sample.tensors[name], own[name])
        if facts.family.token_types:
            assert torch.equal(sample.tensors[facts.family.token_types], own[facts.family.token_types][0])


def test_counted_length_equals_encoded_length(target: tuple[str, str]) -> None:
    facts = facts_of(target)
    samples = _samples(facts)
    for talk, sample in zip(_talks(facts), _encoded(facts), strict=True):
        tokenised = facts.tokeniser.tokenised([(talk, samples.encoder.footprints(talk))])[0]
        assert not isinstance(tokenised, SkipSample)
        assert tokenised.length.tokens == len(sample.tensors["input_ids"])
        assert tokenised.length.label_tokens == int((sample.tensors["labels"] != IGNORE_INDEX).sum())


def _before_and_after(facts: ProcessorFacts, messages: list[dict[str, object]], place: int) -> tuple[str, str]:
    """The prompt of an answer and the talk up to its end, by rendering alone."""

    def render(upto: int, **options: object) -> str:
        text = facts.processor.apply_chat_template(messages[:upto], chat_template=chat_template(facts), **options)
        # Phi closes a whole talk with its end token, which nobody says.
        return str(text).removesuffix("<|endoftext|>")

    calm = {"thinking": False} if "thinking" in chat_template(facts) else {}
    prompt = render(place, add_generation_prompt=True, **calm)
    if facts.family.name == "step3p7":  # its prompt opens a thought that its written turns do not have
        prompt = prompt.removesuffix("<think>\n")
    return prompt, render(place + 1)


def test_labels_equal_an_independent_derivation(target: tuple[str, str]) -> None:
    """Render the talk up to each answer and with it: what was added is the answer. No marker is searched for."""
    facts = facts_of(target)
    tokenizer = facts.processor.tokenizer
    for talk, sample in zip(_talks(facts), _encoded(facts), strict=True):
        if talk.media:
            assert sample.tensors["labels"].tolist() == _labels_by_prefixes(facts, talk, sample)
            continue
        expected = [IGNORE_INDEX] * len(sample.tensors["input_ids"])
        whole = facts.tokeniser.render(talk)
        encoding = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
        messages = messages_for_template(talk.messages, system_as_text=facts.family.system_as_text)
        for place, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            before, after = _before_and_after(facts, messages, place)
            assert whole.startswith(before)
            assert whole.startswith(after)
            stop = len(after.rstrip("\n"))
            for token, (start, end) in enumerate(encoding["offset_mapping"]):
                if len(before) <= start and end <= stop:
                    expected[token] = encoding["input_ids"][token]
        assert sample.tensors["labels"].tolist() == expected


def test_labels_equal_what_changes_with_the_answers(target: tuple[str, str]) -> None:
    """The derivation that `lading verify` uses, which also knows answers that begin with a newline."""
    facts = facts_of(target)
    for talk, sample in zip(_talks(facts), _encoded(facts), strict=True):
        ids = sample.tensors["input_ids"].tolist()
        assert sample.tensors["labels"].tolist() == labels_alone(facts, talk, ids)


def _labels_by_prefixes(facts: ProcessorFacts, talk: Conversation, sample: Encoded) -> list[int]:
    """Tokenise the talk up to an answer, once with it and once with an empty one: it begins where the two part."""
    ids = sample.tensors["input_ids"].tolist()
    expected = [IGNORE_INDEX] * len(ids)
    closing = facts.processor.tokenizer.convert_tokens_to_ids(facts.family.turns.closing)
    empty = Message(role="assistant", parts=(TextPart(text=""),))
    for place, message in enumerate(talk.messages):
        if message.role == "assistant":
            talks = (dataclasses.replace(talk, messages=(*talk.messages[:place], last)) for last in (empty, message))
            without, whole = (_samples(facts).encoder.encode(own).tensors["input_ids"].tolist() for own in talks)
            start = next(n for n, (one, other) in enumerate(zip(without, whole, strict=False)) if one != other)
            stop = len(whole) - whole[::-1].index(closing)
            assert ids[:stop] == whole[:stop]
            expected[start:stop] = ids[start:stop]
    return expected


def test_labels_say_what_the_assistant_says_and_nothing_else(target: tuple[str, str]) -> None:
    facts = facts_of(target)
    tokenizer = facts.processor.tokenizer
    for talk, sample in zip(_talks(facts), _encoded(facts), strict=True):
        spoken = []
        for start, stop in sample.spans:
            labels = sample.tensors["labels"][start:stop]
            assert torch.equal(labels, sample.tensors["input_ids"][start:stop])
            spoken.append("".join(tokenizer.decode(labels, skip_special_tokens=True).split()))
        answers = [
            "".join("".join(part.text for part in message.parts if isinstance(part, TextPart)).split())
            for message in talk.messages
            if message.role == "assistant"
        ]
        assert spoken == answers
        inside = sum(stop - start for start, stop in sample.spans)
        assert int((sample.tensors["labels"] != IGNORE_INDEX).sum()) == inside


def test_split_undoes_join(target: tuple[str, str]) -> None:
    facts = facts_of(target)
    encoded = _encoded(facts)
    joined = join([sample.tensors for sample in encoded], facts.family.table)
    parts = split(joined, [sample.document for sample in encoded], facts.family.table)
    for sample, part in zip(encoded, parts, strict=True):
        assert set(part) == set(sample.tensors)
        for name, tensor in sample.tensors.items():
            assert torch.equal(part[name], tensor)


def test_a_pack_keeps_every_document_as_it_was(target: tuple[str, str]) -> None:
    facts = facts_of(target)
    encoded = _encoded(facts)
    pack = build_pack(encoded, fields=facts.family.table, three_way=facts.three_way)
    parts = split(pack.tensors, pack.documents, facts.family.table)
    for place, (sample, part) in enumerate(zip(encoded, parts, strict=True), start=1):
        assert torch.equal(part["input_ids"], sample.tensors["input_ids"])
        assert part["document_ids"].unique().tolist() == [place]
        assert part["labels"].tolist() == [*sample.tensors["labels"].tolist()[1:], IGNORE_INDEX]
        alone = build_pack([sample], fields=facts.family.table, three_way=facts.three_way)
        assert torch.equal(part["position_ids"], alone.tensors["position_ids"])


def test_clipping_never_separates_a_medium_from_its_tokens(target: tuple[str, str]) -> None:
    facts = facts_of(target)
    sample = _encoded(facts)[-2]
    for length in range(1, sample.document.tokens + 1):
        try:
            cut = clip(sample, length, facts.family.table)
        except SkipSample:
            continue
        assert cut.document.tokens <= length
        pads = torch.isin(cut.tensors["input_ids"], torch.tensor(facts.tokeniser.pads))
        promised = sum(sum(span.footprint.runs) for span in cut.document.media)
        assert int(pads.sum()) == promised
        split(cut.tensors, [cut.document], facts.family.table)


def test_what_a_tool_says_is_not_the_assistants(target: tuple[str, str]) -> None:
    facts = facts_of(target)
    talk = make_talk(
        0,
        ("user", ("What is the weather?",)),
        ("assistant", ("Let me look.",)),
        ("tool", ("22 degrees",)),
        ("assistant", ("It is 22 degrees.",)),
    )
    if target in REFUSES_TOOL_TURNS:
        with pytest.raises(SkipSample, match="turn in the rendered text"):
            _samples(facts).encoder.encode(talk)
        return
    sample = _samples(facts).encoder.encode(talk)
    decode = facts.processor.tokenizer.decode
    spoken = [decode(sample.tensors["labels"][start:stop], skip_special_tokens=True) for start, stop in sample.spans]
    assert [text.strip() for text in spoken] == ["Let me look.", "It is 22 degrees."]


@pytest.mark.parametrize("quoted", ["opening", "closing"])
def test_quoting_a_marker_moves_no_label(target: tuple[str, str], quoted: str) -> None:
    facts = facts_of(target)
    marker = facts.family.turns.open("assistant") if quoted == "opening" else facts.family.turns.closing
    talk = make_talk(
        0,
        ("user", (picture(80, 80, "red"), f"Type {marker} please")),
        ("assistant", (f"It is {marker} here.",)),
        ("user", ("Thanks",)),
        ("assistant", ("Bye.",)),
    )
    sample = _samples(facts).encoder.encode(talk)
    decode = facts.processor.tokenizer.decode
    spoken = [decode(sample.tensors["input_ids"][start:stop]).strip() for start, stop in sample.spans]
    assert spoken[0].startswith("It is")
    assert spoken[0].endswith(" here." + facts.family.turns.closing)
    assert spoken[1] == "Bye." + facts.family.turns.closing


def test_a_quoted_pad_is_refused_by_name(target: tuple[str, str]) -> None:
    facts = facts_of(target)
    pad = facts.family.media["image"].pad
    talk = make_talk(0, ("user", (picture(80, 80, "red"), f"What does {pad} mean?")), ("assistant", ("A pad.",)))
    with pytest.raises(SkipSample) as caught:
        _samples(facts).encoder.encode(talk)
    assert caught.value.reason == "placeholder_in_text"
