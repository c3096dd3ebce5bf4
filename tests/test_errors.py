import pickle

import pytest

from lading.errors import ConfigError, LadingError, MissingDependency, Reason, SkipSample, UnknownName


def test_a_message_says_found_wanted_consequence_and_where() -> None:
    error = LadingError(found="a cat", wanted="a dog", consequence="it meows", where="pets.json:3")
    assert str(error) == "found a cat; wanted a dog; it meows [pets.json:3]"


def test_an_unknown_name_offers_the_nearest() -> None:
    error = UnknownName(kind="option", name="pack_sise", known=["pack_size", "seed"])
    assert "did you mean 'pack_size'?" in str(error)


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
