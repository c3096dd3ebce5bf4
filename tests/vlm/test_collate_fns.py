"""The collate functions: every family's batch is what its model class takes, with the loss of each sample alone."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lading import families, toy
from lading.encode import Encoder
from lading.errors import ConfigError, LadingError, SkipSample
from lading.loader import read_processor
from lading.vlm import collate_fns, label_search
from lading.vlm.batches import conversations_of
from lading.vlm.collate_fns import COLLATE_FNS
from lading.vlm.datasets import PreTokenizedDatasetWrapper, RobustDatasetWrapper
from tests.support.alone import loss_alone
from tests.support.shared import real_processor

FAMILIES = families.names()


def picture(width: int = 90, height: int = 60, colour: str = "red") -> dict[str, Any]:
    return {"type": "image", "image": Image.new("RGB", (width, height), colour)}


def turn(role: str, *parts: Any) -> dict[str, Any]:
    return {
        "role": role,
        "content": [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts],
    }


def examples() -> list[dict[str, Any]]:
    return [
        {"conversation": [turn("user", picture(), "What?"), turn("assistant", "A red ", "one.")]},
        {
            "conversation": [
                turn("user", "Two and two?"),
                turn("assistant", "Four."),
                turn("user", "Sure?"),
                turn("assistant", "Yes."),
            ]
        },
        {
            "conversation": [
                turn("user", picture(50, 140, "blue"), "and", picture(70, 70, "green")),
                turn("assistant", "Both."),
            ]
        },
    ]


def processor(name: str, side: str = "right") -> Any:
    own = copy.deepcopy(toy.processor(name))
    own.tokenizer.padding_side = side
    return own


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_batch_is_its_samples_padded_and_shifted(name: str, side: str) -> None:
    own = processor(name, side)
    collate = collate_fns.default_collate_fn if name == "gemma4" else COLLATE_FNS[type(own).__name__]
    batch = collate(examples(), own)
    encoder = Encoder.of(own)
    talks = collate_fns._talks([example["conversation"] for example in examples()])
    rows, width = batch["input_ids"].shape
    assert rows == 3
    for row, talk in enumerate(talks):
        sample = encoder.encode(talk)
        length = sample.document.tokens
        own_ids = sample.tensors["input_ids"]
        start = width + 1 - length if side == "left" else 0
        stop = min(start + length, width)
        assert torch.equal(batch["input_ids"][row, start:stop], own_ids[: stop - start])
        expected = torch.full((width + 1,), -100)
        expected[start : start + length] = sample.tensors["labels"]
        assert torch.equal(batch["labels"][row], expected[1:])
        assert int(batch["attention_mask"][row].sum()) in (length, length - 1)
    assert batch["n_images_per_sample"].tolist() == [1, 0, 2]
    for field in families.find(name).fields:
        if field in batch:
            assert isinstance(batch[field], torch.Tensor)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_model_takes_the_batch(name: str) -> None:
    own = processor(name)
    batch = COLLATE_FNS[type(own).__name__](examples()[:1], own)
    inputs = {key: value for key, value in batch.items() if not key.startswith("n_") and key != "input_mode"}
    model = toy.model(name).eval()
    with torch.no_grad():
        loss = model(**inputs, shift_labels=inputs["labels"]).loss.item()
    if name == "gemma4":
        return  # its prefix is not in the sample alone
    sample = Encoder.of(own).encode(collate_fns._talks([examples()[0]["conversation"]])[0])
    assert loss == pytest.approx(loss_alone(model, sample, own), abs=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_batch_has_everything_the_processor_gives(name: str) -> None:
    own = processor(name)
    batch = collate_fns.default_collate_fn(examples()[:1], own)
    text = own.apply_chat_template([turn("user", {"type": "image"}, "What?"), turn("assistant", "A red ", "one.")])
    pictures = [examples()[0]["conversation"][0]["content"][0]["image"]]
    made = own(text=[text], images=pictures if name == "phi4_mm" else [pictures], return_tensors="pt")
    assert set(made) <= set(batch), "a model given less may fall back, and says nothing"


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", FAMILIES)
def test_labels_of_somebody_elses_ids(name: str, side: str) -> None:
    own = processor(name, side)
    batch = collate_fns.default_collate_fn(examples(), own)
    conversations = [example["conversation"] for example in examples()]
    labels = collate_fns.build_labels_from_template(batch["input_ids"], conversations, own)
    # The last token of the longest row was cut off by the shift: a truncated end must not matter.
    assert torch.equal(labels[:, 1:], batch["labels"][:, :-1])


@pytest.mark.parametrize("name", FAMILIES)
def test_labels_need_neither_the_media_nor_an_answer(name: str) -> None:
    own = processor(name)
    batch = collate_fns.default_collate_fn([examples()[2], examples()[0]], own)
    bare = [turn("user", {"type": "image"}, "and", {"type": "image"}), turn("assistant", "Both.")]
    unanswered = examples()[0]["conversation"][:1]
    labels = collate_fns.build_labels_from_template(batch["input_ids"], [bare, unanswered], own)
    assert torch.equal(labels[0, 1:], batch["labels"][0, :-1])
    assert labels[1].tolist() == [-100] * labels.shape[1]
    with pytest.raises(ConfigError, match="at least one"):
        collate_fns.build_labels_from_template(batch["input_ids"][:0], [], own)


PIECES = st.lists(
    st.sampled_from(["a", " ", "\n", "<|im_start|>", "assistant", "user", "<|im_end|>", "é"]), min_size=1, max_size=7
).map("".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(PIECES, PIECES), min_size=1, max_size=3), st.integers(0, 3), st.integers(0, 3))
def test_markers_are_trusted_only_where_they_say_what_lining_up_says(
    turns: list[tuple[str, str]], before: int, cut: int
) -> None:
    own = toy.processor("qwen2_5_vl")
    facts = read_processor(own)
    talk = [turn(role, text) for pair in turns for role, text in zip(("user", "assistant"), pair, strict=True)]
    (conversation,) = conversations_of([{"conversation": talk}])
    text, said = facts.tokeniser.rendered(conversation)
    (whole,) = facts.tokeniser.encode_texts([text])
    end = len(whole.ids) - cut
    ids = np.concatenate([np.full(before, own.tokenizer.pad_token_id), whole.ids[:end]])
    expected = np.full(len(ids), -100)
    for start, stop in (whole.token_span(*span) for span in said):
        expected[before + start : before + stop] = whole.ids[start : min(stop, end)]
    labels = collate_fns.build_labels_from_template(torch.from_numpy(ids)[None], [talk], own)
    assert labels[0].tolist() == expected.tolist()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_plain_conversation_is_not_tokenised_again(name: str) -> None:
    facts = read_processor(processor(name))
    (conversation,) = conversations_of(examples()[1:2])
    text, said = facts.tokeniser.rendered(conversation)
    (own,) = facts.tokeniser.encode_texts([text])
    spans = label_search._matching_spans(own.ids, text, said, facts)
    # SmolVLM's `Assistant:` is made of tokens like any other, so that its markers prove nothing.
    assert spans == (None if name == "smolvlm" else [own.token_span(*span) for span in said])


def test_quoted_markers_move_no_label_of_somebody_elses_ids() -> None:
    own = processor("qwen2_5_vl")
    quoting = [
        {
            "conversation": [
                turn("user", "Say <|im_start|>assistant\nno<|im_end|>"),
                turn("assistant", "\nIt is <|im_end|> so."),
            ]
        }
    ]
    batch = collate_fns.qwen2_5_collate_fn(quoting, own)
    labels = collate_fns.build_labels_from_template(batch["input_ids"], [quoting[0]["conversation"]], own)
    assert torch.equal(labels[:, 1:], batch["labels"][:, :-1])
    spoken = own.tokenizer.decode(labels[0][labels[0] != -100])
    assert spoken.endswith("It is <|im_end|> so.<|im_end|>")
    assert "no<|im_end|>" not in spoken


def test_text_search_is_the_last_resort_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    class Strange:
        tokenizer = toy.processor("qwen2_5_vl").tokenizer
        chat_template = "{% for m in messages %}{{ m.content[0].text }} {% endfor %}"

        def apply_chat_template(self, messages: Any, **options: Any) -> str:
            return " ".join(part["text"] for message in messages for part in message["content"])

    talk = [turn("user", "hi"), turn("assistant", "the red ", "circle")]
    ids = torch.tensor([Strange.tokenizer.encode("<|im_start|>hi the red circle<|im_end|> more")])
    labels = collate_fns.build_labels_from_template(ids, [talk], Strange())
    assert Strange.tokenizer.decode(labels[0][labels[0] != -100]).strip() == "the red circle<|im_end|>"
    assert "searching for the answers' text" in caplog.text


def test_gemma4_sees_an_empty_thought_and_is_not_trained_on_it() -> None:
    own = processor("gemma4")
    batch = collate_fns.gemma4_prefix_collate_fn(examples(), own)
    decode = own.tokenizer.decode
    for row, example in enumerate(examples()):
        seen = decode(batch["input_ids"][row])
        answers = sum(message["role"] == "assistant" for message in example["conversation"])
        assert seen.count("<|turn>model\n<|channel>thought\n<channel|>") == answers
        spoken = decode(batch["labels"][row][batch["labels"][row] != -100])
        assert "<|channel>" not in spoken
        assert "thought" not in spoken
        said = "".join(
            collate_fns._extract_assistant_text(m) + "<turn|>"
            for m in example["conversation"]
            if m["role"] == "assistant"
        )
        assert spoken == said
    types = batch["mm_token_type_ids"]
    assert types.shape == batch["input_ids"].shape
    image = own.tokenizer.convert_tokens_to_ids("<|image|>")
    assert torch.equal(types == 1, batch["input_ids"] == image)


@pytest.mark.parametrize("example", examples(), ids=["picture", "two_answers", "two_pictures"])
def test_gemma4_is_not_trained_on_a_thought_that_a_hook_puts_in(example: dict[str, Any]) -> None:
    own = processor("gemma4")
    wanted = collate_fns.gemma4_prefix_collate_fn([example], own)
    hooked = collate_fns.default_collate_fn(
        [example],
        own,
        _post_tokenize_hook=lambda batch, it: collate_fns._inject_thinking_prefix_tokens(batch, it.tokenizer),
    )
    assert torch.equal(hooked["input_ids"], wanted["input_ids"])
    assert torch.equal(hooked["labels"], wanted["labels"])
    found = collate_fns.build_labels_from_template(wanted["input_ids"], [example["conversation"]], own)
    assert torch.equal(found[:, 1:], wanted["labels"][:, :-1])


@pytest.mark.parametrize("side", ["right", "left"])
def test_whatever_runs_along_with_the_ids_grows_with_a_thought(side: str) -> None:
    own = processor("gemma4", side)
    tokenizer = own.tokenizer
    turn_ids = tokenizer.encode("<|turn>model\n", add_special_tokens=False)
    ids = torch.tensor([[5, *turn_ids, 6]])
    batch = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "ranks": torch.stack([torch.arange(ids.shape[1]), torch.arange(ids.shape[1])]) + 1,
        "weights": torch.ones(1, ids.shape[1]),
        "one_row": torch.arange(ids.shape[1]),
        "names": ["a.png"],
        "input_features_mask": torch.ones(3, ids.shape[1], dtype=torch.bool),  # three sounds, of as many frames
    }
    changed = collate_fns._inject_thinking_prefix_tokens(batch, tokenizer)
    prefix = tokenizer.encode("<|channel>thought\n<channel|>", add_special_tokens=False)
    grown = [5, *turn_ids, *prefix, 6]
    head = list(range(1, 2 + len(turn_ids)))
    assert changed["input_ids"].tolist() == [grown]
    assert changed["attention_mask"].tolist() == [[1] * len(grown)]
    assert changed["ranks"].tolist() == [[*head, *[0] * len(prefix), ids.shape[1]]] * 2
    assert all(changed[name] is batch[name] for name in ("weights", "one_row", "names", "input_features_mask"))
    two = {"input_ids": ids.repeat(2, 1), "three": torch.ones(3, ids.shape[1], dtype=torch.int32)}
    three = collate_fns._inject_thinking_prefix_tokens(two, tokenizer)["three"]
    assert (three.shape, three.dtype, int(three.sum())) == ((3, len(grown)), torch.int32, 3 * ids.shape[1])


def test_gemma4_keeps_quoted_markers_and_lengths() -> None:
    own = processor("gemma4")
    quoting = {
        "conversation": [
            turn("user", "What is <|turn>model\nsecret<turn|>?"),
            turn("assistant", "It marks <turn|> a turn."),
        ]
    }
    batch = collate_fns.gemma4_prefix_collate_fn([quoting, examples()[1]], own, max_length=90)
    assert batch["input_ids"].shape == (2, 89)
    labels = batch["labels"][0]
    assert own.tokenizer.decode(labels[labels != -100]) == "It marks <turn|> a turn.<turn|>"
    whole = collate_fns.gemma4_prefix_collate_fn([quoting], own)
    length = whole["input_ids"].shape[1] + 1
    with pytest.raises(ValueError, match="only samples of"):
        collate_fns.gemma4_prefix_collate_fn([quoting], own, max_length=length - 1)


def test_text_search_does_not_take_the_question_for_the_answer() -> None:
    own = processor("qwen2_5_vl")
    talk = [turn("user", "Say yes"), turn("assistant", "yes"), turn("user", "ok"), turn("assistant", "")]
    text = own.apply_chat_template(talk)
    ids = torch.tensor([own.tokenizer.encode(text)])
    labels = collate_fns.build_labels(ids, [talk], own)
    places = (labels[0] != -100).nonzero().flatten().tolist()
    assert own.tokenizer.decode(ids[0][places]) == "yes<|im_end|>"
    assert own.tokenizer.decode(ids[0][: places[0]]).endswith("<|im_start|>assistant\n")


def test_a_part_that_does_not_say_what_it_is_has_no_text() -> None:
    message = {"role": "assistant", "content": [{"image": "a.png"}, {"type": "text", "text": "yes"}]}
    assert collate_fns._extract_assistant_text(message) == "yes"


def test_a_changed_processor_is_read_anew() -> None:
    own = processor("qwen2_5_vl")
    before = collate_fns.default_collate_fn(examples()[1:2], own)
    own.chat_template = own.chat_template.replace("helpful", "brave")
    after = collate_fns.default_collate_fn(examples()[1:2], own)
    assert "brave assistant" in own.tokenizer.decode(after["input_ids"][0])
    assert "helpful assistant" in own.tokenizer.decode(before["input_ids"][0])
    own.image_processor.size = {"shortest_edge": 4 * 28 * 28, "longest_edge": 6 * 28 * 28}
    assert collate_fns.default_collate_fn(examples()[:1], own)["image_grid_thw"].prod() <= 24


@pytest.mark.parametrize(
    ("name", "part", "setting", "value"),
    [
        ("qwen2_5_vl", "image_processor", "max_pixels", 4 * 28 * 28),
        ("qwen3_vl", "image_processor", "max_pixels", 4 * 32 * 32),
        ("internvl", "image_processor", "max_patches", 1),
        ("smolvlm", "image_processor", "do_image_splitting", False),
    ],
)
def test_any_setting_of_its_media_is_read_anew(name: str, part: str, setting: str, value: Any) -> None:
    """A batch after a change is the batch of a processor that never was otherwise."""
    talk = [{"conversation": [turn("user", picture(300, 200), "What?"), turn("assistant", "One.")]}]
    changed, fresh = processor(name), processor(name)
    before = collate_fns.default_collate_fn(talk, changed)
    for own in (changed, fresh):
        assert hasattr(getattr(own, part), setting) or setting == "max_pixels"
        setattr(getattr(own, part), setting, value)
    after, wanted = (collate_fns.default_collate_fn(talk, own) for own in (changed, fresh))
    assert after["input_ids"].tolist() == wanted["input_ids"].tolist() != before["input_ids"].tolist()
    assert torch.equal(after["pixel_values"], wanted["pixel_values"])


def test_a_processor_of_another_family_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a Qwen3VLProcessor, of Qwen3-VL; wanted a processor of Qwen2\.5-VL"):
        collate_fns.qwen2_5_collate_fn(examples(), processor("qwen3_vl"))


def test_media_that_cannot_be_measured_add_nothing() -> None:
    own = processor("qwen2_5_vl")
    known = [turn("user", picture())]
    for unknown in ({"type": "image", "image": "gone.png"}, {"type": "image"}, {"type": "video"}):
        some = [turn("user", unknown, picture())]
        assert collate_fns._estimate_media_tokens(some, own) == collate_fns._estimate_media_tokens(known, own) > 0


@pytest.mark.parametrize("name", ["qwen2_5_vl", "kimi_k25", "smolvlm", "phi4_mm"])
def test_what_is_too_long_is_known_without_media_that_cannot_be_measured(name: str) -> None:
    own = processor(name)
    gone = {"type": "image", "image": "gone.png"}
    unknown, both, known = (
        [turn("user", *pictures, "What?"), turn("assistant", "One.")]
        for pictures in ([gone], [gone, picture()], [picture()])
    )
    whole = len(own.apply_chat_template(known, tokenize=True, return_dict=True)["input_ids"][0])
    marked = whole - collate_fns._estimate_media_tokens(known, own)
    assert collate_fns._drop_overlong_samples([unknown, known], own, marked) == ([unknown], [0])
    assert collate_fns._drop_overlong_samples([unknown, both], own, whole)[1] == [0]
    linked = [turn("user", {"type": "image", "image": "https://gone/gone.png"}, "What?"), turn("assistant", "One.")]
    assert collate_fns._drop_overlong_samples([linked], own, marked)[1] == [0]
    with pytest.raises(ValueError, match=rf"only samples of {marked} tokens"):
        collate_fns._drop_overlong_samples([unknown], own, marked - 1)
    with pytest.raises(SkipSample, match=r"found no image file gone\.png"):
        collate_fns.default_collate_fn([{"conversation": unknown}], own, max_length=whole)


def test_media_that_a_family_does_not_take_are_refused_by_name() -> None:
    heard = [turn("user", {"type": "audio", "audio": "gone.wav"}), turn("assistant", "One.")]
    with pytest.raises(SkipSample, match="found audio in a sample for"):
        collate_fns._drop_overlong_samples([heard], processor("qwen2_5_vl"), 100)


def test_a_fixed_length_and_what_does_not_fit_it(caplog: pytest.LogCaptureFixture) -> None:
    own = processor("kimi_k25")
    batch = collate_fns.kimi_k25_vl_collate_fn(examples(), own, max_length=400)
    assert batch["input_ids"].shape == (3, 399)
    lengths = batch["attention_mask"].sum(1).tolist()
    short = collate_fns.kimi_k25_vl_collate_fn(examples(), own, max_length=sorted(lengths)[1])
    assert len(short["input_ids"]) == 2
    assert "left out 1 of 3 samples" in caplog.text
    with pytest.raises(ValueError, match=r"only samples of .* tokens"):
        collate_fns.kimi_k25_vl_collate_fn(examples(), own, max_length=3)
    conversations = [example["conversation"] for example in examples()]
    kept, places = collate_fns._drop_overlong_samples(conversations, own, sorted(lengths)[1])
    assert len(kept) == len(places) == 2
    extra = [collate_fns._estimate_media_tokens(conversation, own) for conversation in conversations]
    assert extra[1] == 0
    assert extra[0] > 0


def test_expanding_several_images() -> None:
    ids = torch.tensor([1, 9, 2, 9])
    grown, mask = collate_fns._expand_image_tokens(ids, torch.ones(4), torch.tensor([[1, 4, 6], [1, 2, 2]]), 9)
    assert grown.tolist() == [1, *[9] * 6, 2, 9]
    assert mask.sum() == len(grown)
    with pytest.raises(ConfigError, match="2 placeholders for 1 grids"):
        collate_fns._expand_image_tokens(ids, torch.ones(4), torch.tensor([[1, 4, 6]]), 9)


def test_every_colour_mode_becomes_rgb() -> None:
    modes = ("L", "P", "RGBA", "CMYK", "I;16")
    conversations = [[turn("user", {"type": "image", "image": Image.new(mode, (4, 4))}) for mode in modes]]
    converted = collate_fns._ensure_rgb(conversations)
    assert {message["content"][0]["image"].mode for message in converted[0]} == {"RGB"}


def test_media_are_found_and_counted() -> None:
    conversations = [example["conversation"] for example in examples()]
    images, videos = collate_fns._extract_media_from_conversations(conversations)
    assert images is not None
    assert len(images) == 3
    assert videos is None
    assert collate_fns._count_media_per_sample(conversations) == ([1, 0, 2], [0, 0, 0])


def test_media_that_are_not_at_hand_are_counted_all_the_same() -> None:
    bare = [[turn("user", {"type": "image"}, {"type": "video"}, picture()), turn("assistant", "Three.")]]
    assert collate_fns._count_media_per_sample(bare) == ([2], [1])
    images, videos = collate_fns._extract_media_from_conversations(bare)
    assert images is not None
    assert (len(images), videos) == (1, None)
    assert collate_fns._drop_overlong_samples(bare, processor("qwen2_5_vl"), 100) == (bare, [0])


def test_unknown_processors_get_the_default_with_a_word(caplog: pytest.LogCaptureFixture) -> None:
    assert COLLATE_FNS["MysteryProcessor"] is collate_fns.default_collate_fn
    assert "MysteryProcessor" in caplog.text


class FewerThanAll:
    """A data set of which half fails to collate."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index


def test_a_batch_that_fails_is_drawn_again() -> None:
    def only_large(batch: list[int]) -> list[int]:
        if min(batch) < 2:
            raise ValueError("too small")
        return batch

    collate = collate_fns.make_robust_collate(FewerThanAll(), only_large)
    assert min(collate([0])) >= 2
    with pytest.raises(LadingError, match="too small"):
        collate_fns.make_robust_collate(FewerThanAll(), lambda batch: only_large([0]), max_retries=2)([0])


BAD: list[tuple[str, Any]] = [
    ("no examples", []),
    ("only user turns", [{"conversation": [turn("user", "hi")]}]),
    (
        "no image file",
        [{"conversation": [turn("user", {"type": "image", "image": "gone.png"}), turn("assistant", "x")]}],
    ),
    ("cannot be read", [{"conversation": [turn("user", {"type": "image", "image": b"junk"}), turn("assistant", "x")]}]),
    ("without its image", [{"conversation": [turn("user", {"type": "image"}), turn("assistant", "x")]}]),
    ("an example with text", [{"text": "hi"}]),
    ("an example with type NoneType", [None]),
    ("1 more image than", [{"conversation": [turn("user", "hi"), turn("assistant", "x")], "images": ["a.png"]}]),
    ("1 more audio than", [{"conversation": [turn("user", "hi"), turn("assistant", "x")], "audio": ([0.0], 16000)}]),
    ("tool_calls", [{"conversation": [turn("user", "hi"), {**turn("assistant", ""), "tool_calls": [{"name": "f"}]}]}]),
    ("half a character", [{"conversation": [turn("user", "a\ud800"), turn("assistant", "x")]}]),
]


@pytest.mark.parametrize(("said", "bad"), BAD, ids=[said for said, _ in BAD])
@pytest.mark.parametrize("name", FAMILIES)
def test_bad_examples_are_named(name: str, said: str, bad: list[Any]) -> None:
    own = toy.processor(name)
    with pytest.raises((ConfigError, SkipSample), match=said):
        COLLATE_FNS[type(own).__name__](bad, own)


@pytest.mark.parametrize("missing", ["chat_template", "pad_token"])
def test_a_processor_that_lacks_something_is_named(missing: str) -> None:
    own = processor("qwen2_5_vl")
    if missing == "chat_template":
        own.chat_template = None
    else:
        own.tokenizer.pad_token = None
    with pytest.raises(ConfigError, match=missing.replace("_", " ")):
        collate_fns.qwen2_5_collate_fn(examples(), own)


@pytest.mark.parametrize("name", FAMILIES)
def test_pre_tokenised_samples_are_padded_and_shifted(name: str) -> None:
    own = processor(name)
    dataset = PreTokenizedDatasetWrapper(examples(), own)
    batch = collate_fns.pad_collate_fn([dataset[index] for index in range(3)], own, max_length=2000)
    assert batch["input_ids"].shape == batch["labels"].shape == (3, 1999)
    whole = collate_fns.default_collate_fn(examples(), own, max_length=2000)
    for key, value in whole.items():
        assert torch.equal(batch[key], value), key


@pytest.mark.parametrize("name", FAMILIES)
def test_the_model_takes_several_padded_rows(name: str) -> None:
    own = processor(name)
    dataset = PreTokenizedDatasetWrapper(examples(), own)
    batch = collate_fns.pad_collate_fn([dataset[index] for index in range(3)], own)
    inputs = {key: value for key, value in batch.items() if not key.startswith("n_")}
    model = toy.model(name).eval()
    encoded = [dataset.encoded(index) for index in range(3)]
    counts = torch.tensor([(sample.tensors["labels"][1:] != -100).sum() for sample in encoded], dtype=torch.float64)
    alone = torch.tensor([loss_alone(model, sample, own) for sample in encoded], dtype=torch.float64)
    with torch.no_grad():
        loss = model(**inputs, shift_labels=inputs["labels"]).loss.item()
    assert loss == pytest.approx(((alone * counts).sum() / counts.sum()).item(), abs=1e-5)


def pages(tmp_path: Path) -> Any:
    folder = real_processor("nemotron_parse")
    from transformers import AutoProcessor

    return AutoProcessor.from_pretrained(folder, trust_remote_code=True)


def test_nemotron_parse_trains_on_the_answer_alone(tmp_path: Path) -> None:
    own = pages(tmp_path)
    two = [
        {"conversation": [turn("user", picture(200, 300)), turn("assistant", answer)]}
        for answer in ("A title", "Rather more text than before")
    ]
    batch = collate_fns.nemotron_parse_collate_fn(two, own)
    assert COLLATE_FNS["NemotronParseProcessor"] is collate_fns.nemotron_parse_collate_fn
    assert len(batch["pixel_values"]) == 2
    assert batch["labels"].view(-1).shape == batch["decoder_input_ids"].reshape(-1).shape
    for row, answer in enumerate(("A title", "Rather more text than before")):
        labels = batch["labels"][row]
        assert own.tokenizer.decode(labels[labels != -100], skip_special_tokens=True).strip() == answer
        assert torch.equal(batch["decoder_input_ids"][row, 1:][labels[:-1] != -100], labels[:-1][labels[:-1] != -100])
    closed = {"conversation": [turn("user", picture()), turn("assistant", "A title</s>")]}
    labels = collate_fns.nemotron_parse_collate_fn([closed], own)["labels"]
    assert labels[0].tolist().count(own.tokenizer.eos_token_id) == 1


NO_PAGES = {
    "0 pictures": {"conversation": [turn("user", "Read it."), turn("assistant", "What?")]},
    "2 pictures": {"conversation": [turn("user", picture(), picture()), turn("assistant", "Both.")]},
    "2 answers": {"conversation": [turn("user", picture()), turn("assistant", "A"), turn("assistant", "B")]},
}


@pytest.mark.parametrize("said", NO_PAGES)
def test_what_is_no_page_is_replaced(said: str, tmp_path: Path) -> None:
    own = pages(tmp_path)
    good = {"conversation": [turn("user", picture()), turn("assistant", "A title")]}
    with pytest.raises(SkipSample, match=said) as caught:
        collate_fns.nemotron_parse_collate_fn([good, NO_PAGES[said]], own)
    assert (caught.value.reason, caught.value.where) == ("bad_row", "example 1 of the batch")
    wrapped = RobustDatasetWrapper([NO_PAGES[said], good])
    batch = wrapped.robust_collate(partial(collate_fns.nemotron_parse_collate_fn, processor=own))([wrapped[0]])
    labels = batch["labels"][0]
    assert own.tokenizer.decode(labels[labels != -100], skip_special_tokens=True).strip() == "A title"


def test_a_sample_that_is_too_long_for_its_batch_is_replaced() -> None:
    own = processor("qwen2_5_vl")
    samples = PreTokenizedDatasetWrapper([examples()[1], examples()[0]], own)
    width = len(samples[1]["input_ids"])
    collate = partial(collate_fns.pad_collate_fn, processor=own, max_length=width)
    with pytest.raises(SkipSample, match=f"a sample of .* tokens; wanted at most {width}") as caught:
        collate([samples[0]])
    assert caught.value.reason == "too_long"
    assert torch.equal(samples.robust_collate(collate)([samples[0]])["input_ids"][0], samples[1]["input_ids"][:-1])


def test_samples_that_do_not_fit_together_are_named() -> None:
    own = processor("qwen2_5_vl")
    ids = torch.tensor([1, 2, 3])
    whole = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids}
    for bad, said in (
        ({**whole, "labels": ids[:2]}, "labels of 2 tokens in sample 1; wanted 3"),
        ({"input_ids": ids, "labels": ids}, "samples without attention_mask"),
    ):
        with pytest.raises(ConfigError, match=said):
            collate_fns.pad_collate_fn([whole, bad], own)


@pytest.mark.parametrize("name", FAMILIES)
def test_media_of_every_family_reach_their_microbatch(name: str, tmp_path: Path) -> None:
    """Uneven pictures, and clips where the family takes them: each microbatch gets what its own samples have alone."""
    from lading.toy.corpus import draw_clip
    from lading.vlm.pp_media import VLM_PP_MEDIA_KEY, prepare_vlm_media_for_pp

    own = processor(name)
    talks = [*examples(), examples()[1]]
    if "video" in families.find(name).media:
        draw_clip(tmp_path / "clip.mp4", "red", "circle", frames=20)
        clip = {"type": "video", "video": str(tmp_path / "clip.mp4")}
        talks[3] = {"conversation": [turn("user", clip, "What?"), turn("assistant", "It moves.")]}
    batch = collate_fns.default_collate_fn(talks, own)
    chunks = prepare_vlm_media_for_pp(batch, 4, 4).get(VLM_PP_MEDIA_KEY, {})
    assert not [key for key in batch if key.startswith("n_")]
    for place, talk in enumerate(talks):
        alone = collate_fns.default_collate_fn([talk], own)
        for field, declared in families.find(name).fields.items():
            chunk = chunks[field][place] if field in chunks else None
            assert (chunk is None) == (field not in alone), (field, place)
            if chunk is not None:
                assert chunk.shape[declared.dim] == alone[field].shape[declared.dim], (field, place)
