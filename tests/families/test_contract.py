"""One contract over every family: what makes families differ is declared, so all of them keep the same promises."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from lading.encode import Encoder
from lading.encode.template import messages_for_template
from lading.errors import SkipSample
from lading.fields import IGNORE_INDEX
from lading.loader import Border, Samples
from lading.packing import build_pack
from lading.records import Conversation, Encoded, MediaPart, Message, TextPart
from lading.sources import Corpus
from lading.tensors import clip, join, split
from lading.verify.alone import chat_template
from lading.verify.labels import labels_alone
from tests.families.talks import clip_bytes, make_talk, own_output, picture, sound_bytes
from tests.families.targets import TARGETS, border_of

pytestmark = pytest.mark.parametrize("target", TARGETS)

REFUSES_TOOL_TURNS = (("real", "gemma4"),)
"""Templates that write an answer after a tool's into the turn before: such a talk is refused by name."""


def _samples(border: Border) -> Samples:
    return Samples(corpus=Corpus.of([]), encoder=Encoder(facts=border))


def _sound_talks(border: Border) -> list[Conversation]:
    if "audio" not in border.geometries:
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


def _clip_talks(border: Border) -> list[Conversation]:
    if "video" not in border.geometries:
        return []
    short, long = (MediaPart(kind="video", reference=clip_bytes(frames)) for frames in (9, 40))
    return [
        make_talk(7, ("user", (short, "What moves?")), ("assistant", ("A circle.",))),
        make_talk(
            8, ("user", ("Before", long, picture(90, 50, "red"), "after")), ("assistant", ("A clip, a picture.",))
        ),
    ]


def _talks(border: Border) -> list[Conversation]:
    return [
        *_clip_talks(border),
        *_sound_talks(border),
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


def _encoded(border: Border) -> list[Encoded]:
    samples = _samples(border)
    return [samples.encoder.encode(talk) for talk in _talks(border)]


def test_ids_and_pixels_equal_the_processors_own(target: tuple[str, str]) -> None:
    border = border_of(target)
    for talk, sample in zip(_talks(border), _encoded(border), strict=True):
        own = own_output(border, talk)
        assert sample.tensors["input_ids"].tolist() == own["input_ids"][0].tolist()
        for name in border.family.fields:
            assert name in sample.tensors or name not in own
            if name in own:
                assert torch.equal(sample.tensors[name], own[name])
        if border.family.token_types:
            assert torch.equal(sample.tensors[border.family.token_types], own[border.family.token_types][0])


def test_counted_length_equals_encoded_length(target: tuple[str, str]) -> None:
    border = border_of(target)
    samples = _samples(border)
    for talk, sample in zip(_talks(border), _encoded(border), strict=True):
        outline = border.tokeniser.outline([(talk, samples.encoder.footprints(talk))])[0]
        assert not isinstance(outline, SkipSample)
        assert outline.length.tokens == len(sample.tensors["input_ids"])
        assert outline.length.label_tokens == int((sample.tensors["labels"] != IGNORE_INDEX).sum())


def _before_and_after(border: Border, messages: list[dict[str, object]], place: int) -> tuple[str, str]:
    """The prompt of an answer and the talk up to its end, by rendering alone."""

    def render(upto: int, **options: object) -> str:
        text = border.processor.apply_chat_template(messages[:upto], chat_template=chat_template(border), **options)
        # Phi closes a whole talk with its end token, which nobody says.
        return str(text).removesuffix("<|endoftext|>")

    calm = {"thinking": False} if "thinking" in chat_template(border) else {}
    prompt = render(place, add_generation_prompt=True, **calm)
    if border.family.name == "step3p7":  # its prompt opens a thought that its written turns do not have
        prompt = prompt.removesuffix("<think>\n")
    return prompt, render(place + 1)


def test_labels_equal_an_independent_derivation(target: tuple[str, str]) -> None:
    """Render the talk up to each answer and with it: what was added is the answer. No marker is searched for."""
    border = border_of(target)
    tokenizer = border.processor.tokenizer
    for talk, sample in zip(_talks(border), _encoded(border), strict=True):
        if talk.media:
            assert sample.tensors["labels"].tolist() == _labels_by_prefixes(border, talk, sample)
            continue
        expected = [IGNORE_INDEX] * len(sample.tensors["input_ids"])
        whole = border.tokeniser.render(talk)
        encoding = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
        messages = messages_for_template(talk.messages, system_as_text=border.family.system_as_text)
        for place, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            before, after = _before_and_after(border, messages, place)
            assert whole.startswith(before)
            assert whole.startswith(after)
            stop = len(after.rstrip("\n"))
            for token, (start, end) in enumerate(encoding["offset_mapping"]):
                if len(before) <= start and end <= stop:
                    expected[token] = encoding["input_ids"][token]
        assert sample.tensors["labels"].tolist() == expected


def test_labels_equal_what_changes_with_the_answers(target: tuple[str, str]) -> None:
    """The derivation that `lading verify` uses, which also knows answers that begin with a newline."""
    border = border_of(target)
    for talk, sample in zip(_talks(border), _encoded(border), strict=True):
        ids = sample.tensors["input_ids"].tolist()
        assert sample.tensors["labels"].tolist() == labels_alone(border, talk, ids)


def _labels_by_prefixes(border: Border, talk: Conversation, sample: Encoded) -> list[int]:
    """Tokenise the talk up to an answer, once with it and once with an empty one: it begins where the two part."""
    ids = sample.tensors["input_ids"].tolist()
    expected = [IGNORE_INDEX] * len(ids)
    closing = border.processor.tokenizer.convert_tokens_to_ids(border.family.turns.closing)
    empty = Message(role="assistant", parts=(TextPart(text=""),))
    for place, message in enumerate(talk.messages):
        if message.role == "assistant":
            talks = (dataclasses.replace(talk, messages=(*talk.messages[:place], last)) for last in (empty, message))
            without, whole = (_samples(border).encoder.encode(own).tensors["input_ids"].tolist() for own in talks)
            start = next(n for n, (one, other) in enumerate(zip(without, whole, strict=False)) if one != other)
            stop = len(whole) - whole[::-1].index(closing)
            assert ids[:stop] == whole[:stop]
            expected[start:stop] = ids[start:stop]
    return expected


def test_labels_say_what_the_assistant_says_and_nothing_else(target: tuple[str, str]) -> None:
    border = border_of(target)
    tokenizer = border.processor.tokenizer
    for talk, sample in zip(_talks(border), _encoded(border), strict=True):
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
    border = border_of(target)
    encoded = _encoded(border)
    joined = join([sample.tensors for sample in encoded], border.family.table)
    parts = split(joined, [sample.document for sample in encoded], border.family.table)
    for sample, part in zip(encoded, parts, strict=True):
        assert set(part) == set(sample.tensors)
        for name, tensor in sample.tensors.items():
            assert torch.equal(part[name], tensor)


def test_a_pack_keeps_every_document_as_it_was(target: tuple[str, str]) -> None:
    border = border_of(target)
    encoded = _encoded(border)
    pack = build_pack(encoded, fields=border.family.table, three_way=border.three_way)
    parts = split(pack.tensors, pack.documents, border.family.table)
    for place, (sample, part) in enumerate(zip(encoded, parts, strict=True), start=1):
        assert torch.equal(part["input_ids"], sample.tensors["input_ids"])
        assert part["document_ids"].unique().tolist() == [place]
        assert part["labels"].tolist() == [*sample.tensors["labels"].tolist()[1:], IGNORE_INDEX]
        alone = build_pack([sample], fields=border.family.table, three_way=border.three_way)
        assert torch.equal(part["position_ids"], alone.tensors["position_ids"])


def test_clipping_never_separates_a_medium_from_its_tokens(target: tuple[str, str]) -> None:
    border = border_of(target)
    sample = _encoded(border)[-2]
    for length in range(1, sample.document.tokens + 1):
        try:
            cut = clip(sample, length, border.family.table)
        except SkipSample:
            continue
        assert cut.document.tokens <= length
        pads = torch.isin(cut.tensors["input_ids"], torch.tensor(border.tokeniser.pads))
        promised = sum(sum(span.footprint.runs) for span in cut.document.media)
        assert int(pads.sum()) == promised
        split(cut.tensors, [cut.document], border.family.table)


def test_what_a_tool_says_is_not_the_assistants(target: tuple[str, str]) -> None:
    border = border_of(target)
    talk = make_talk(
        0,
        ("user", ("What is the weather?",)),
        ("assistant", ("Let me look.",)),
        ("tool", ("22 degrees",)),
        ("assistant", ("It is 22 degrees.",)),
    )
    if target in REFUSES_TOOL_TURNS:
        with pytest.raises(SkipSample, match="turn in the rendered text"):
            _samples(border).encoder.encode(talk)
        return
    sample = _samples(border).encoder.encode(talk)
    decode = border.processor.tokenizer.decode
    spoken = [decode(sample.tensors["labels"][start:stop], skip_special_tokens=True) for start, stop in sample.spans]
    assert [text.strip() for text in spoken] == ["Let me look.", "It is 22 degrees."]


@pytest.mark.parametrize("quoted", ["opening", "closing"])
def test_quoting_a_marker_moves_no_label(target: tuple[str, str], quoted: str) -> None:
    border = border_of(target)
    marker = border.family.turns.open("assistant") if quoted == "opening" else border.family.turns.closing
    talk = make_talk(
        0,
        ("user", (picture(80, 80, "red"), f"Type {marker} please")),
        ("assistant", (f"It is {marker} here.",)),
        ("user", ("Thanks",)),
        ("assistant", ("Bye.",)),
    )
    sample = _samples(border).encoder.encode(talk)
    decode = border.processor.tokenizer.decode
    spoken = [decode(sample.tensors["input_ids"][start:stop]).strip() for start, stop in sample.spans]
    assert spoken[0].startswith("It is")
    assert spoken[0].endswith(" here." + border.family.turns.closing)
    assert spoken[1] == "Bye." + border.family.turns.closing


def test_a_quoted_pad_is_refused_by_name(target: tuple[str, str]) -> None:
    border = border_of(target)
    pad = border.family.media["image"].pad
    talk = make_talk(0, ("user", (picture(80, 80, "red"), f"What does {pad} mean?")), ("assistant", ("A pad.",)))
    with pytest.raises(SkipSample) as caught:
        _samples(border).encoder.encode(talk)
    assert caught.value.reason == "placeholder_in_text"
