import pickle

import pytest

from lading.errors import ConfigError, LadingError, MissingDependency, Reason, SkipSample, UnknownName, misspelt


def test_a_message_says_found_wanted_consequence_and_where() -> None:
    error = LadingError(found="a cat", wanted="a dog", consequence="it meows", where="pets.json:3")
    assert str(error) == "found a cat; wanted a dog; it meows [pets.json:3]"


def test_an_unknown_name_offers_the_nearest() -> None:
    error = UnknownName(kind="option", name="pack_sise", known=["pack_size", "seed"])
    assert "did you mean 'pack_size'?" in str(error)


KNOWN = ["pack_size", "batch_size", "last_step", "placing", "pixels", "seed", "epoch", "num_workers", "qwen2_5_vl"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("pack_sise", "pack_size"),
        ("packsize", "pack_size"),
        ("pakc-size", "pack_size"),
        ("Seed", "seed"),
        ("num_wrokres", "num_workers"),
        ("qwen25-vl", "qwen2_5_vl"),
        ("quen2_5_vl", "qwen2_5_vl"),
        ("max_steps", None),
        ("packing", None),
        ("max_pixels", None),
        ("qwen2_vl", None),
        ("qwen3_5_vl", None),
        ("sad", None),
        ("", None),
    ],
)
def test_only_the_same_thing_misspelt_is_offered(name: str, meant: str | None) -> None:
    assert misspelt(name, KNOWN) == meant
    assert misspelt(name, []) is None
    hint = f"did you mean {meant!r}?" if meant else ""
    assert UnknownName(kind="option", name=name, known=KNOWN).consequence == hint


def test_a_hint_is_given_instead() -> None:
    error = UnknownName(kind="option", name="pack_sise", known=["pack_size"], hint="look elsewhere")
    assert error.consequence == "look elsewhere"


@pytest.mark.parametrize(
    "error",
    [
        SkipSample(Reason.TOO_LONG, found="9 tokens", wanted="8", where="a.jsonl:1"),
        ConfigError(found="x", wanted="y"),
        UnknownName(kind="family", name="qven", known=["qwen"]),
        MissingDependency(package="av", purpose="reading video"),
    ],
)
def test_errors_cross_process_borders(error: LadingError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert copy.__dict__ == error.__dict__
