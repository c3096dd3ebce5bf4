import pytest

from lading.errors import ConfigError, ExactnessError, Reason, SkipSample
from lading.records import Dropped, SampleKey
from lading.samples.skip import SkipPolicy

KEY = SampleKey(index=3, source="s", where="d.jsonl:4")


def raises(error: Exception) -> object:
    raise error


def test_what_works_passes_through() -> None:
    assert SkipPolicy().attempt(KEY, lambda: 7) == 7


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (SkipSample(Reason.CORRUPT_MEDIA, found="a hole"), Reason.CORRUPT_MEDIA),
        (ZeroDivisionError("division by zero"), Reason.UNEXPECTED_ERROR),
    ],
)
def test_an_error_becomes_an_entry_or_is_raised(error: Exception, reason: Reason) -> None:
    entry = SkipPolicy().attempt(KEY, lambda: raises(error))
    assert isinstance(entry, Dropped)
    assert (entry.key, entry.reason) == (KEY, reason)
    with pytest.raises(SkipSample, match=r"\[d\.jsonl:4\]"):
        SkipPolicy(strict=True).attempt(KEY, lambda: raises(error))


@pytest.mark.parametrize("error", [ExactnessError(found="drift"), ConfigError(found="x"), MemoryError()])
def test_our_own_errors_are_never_swallowed(error: Exception) -> None:
    with pytest.raises(type(error)):
        SkipPolicy().attempt(KEY, lambda: raises(error))


def test_one_sample_never_takes_its_chunk_with_it() -> None:
    keys = [SampleKey(index=n, source="s", where=f"d.jsonl:{n}") for n in range(3)]

    def work(places: list[int]) -> list[int]:
        return [10 // (place - 1) for place in places]

    outcome = SkipPolicy().attempt_each(keys, lambda key: key.index, work)
    assert outcome[0] == -10
    assert isinstance(outcome[1], Dropped)
    assert (outcome[1].key, outcome[1].reason) == (keys[1], "unexpected_error")
    assert outcome[2] == 10
    with pytest.raises(ConfigError):
        SkipPolicy().attempt_each(keys, lambda key: key.index, lambda places: raises(ConfigError(found="x")))
