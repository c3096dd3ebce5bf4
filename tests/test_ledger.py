import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import ExactnessError, Reason
from lading.ledger import Ledger
from lading.records import Cut, Dropped, SampleKey, Truncated


def key(index: int) -> SampleKey:
    return SampleKey(index=index, source="ab"[index % 2], where=f"f.jsonl:{index + 1}")


def ledger(samples: int) -> Ledger:
    return Ledger(sources=("a", "b"), source=np.arange(samples, dtype=np.int32) % 2)


events = st.lists(st.tuples(st.sampled_from(["trained", "dropped", "replaced"]), st.integers(0, 19)), max_size=60)


@given(events)
def test_totals_add_up_whatever_happens(happened: list[tuple[str, int]]) -> None:
    books = ledger(20)
    last: dict[int, str] = {}
    for what, index in happened:
        if what == "trained":
            books.trained([index])
        else:
            by = (key(0),) if what == "replaced" else ()
            books.dropped(Dropped(key=key(index), reason=Reason.CORRUPT_MEDIA, detail="d", by=by))
        last[index] = what
    books.check(finished=False)
    total = books.total()
    assert total["input"] == 20
    for fate in ("trained", "dropped", "replaced"):
        assert total[fate] == sum(what == fate for what in last.values())  # type: ignore[literal-required]
    assert total["pending"] == 20 - len(last)
    assert sum(total["reasons"].values()) == total["dropped"] + total["replaced"]


def test_a_sample_without_a_fate_is_found() -> None:
    books = ledger(3)
    books.trained([0, 1])
    with pytest.raises(ExactnessError, match="'pending': 1"):
        books.check()
    books.trained([2])
    books.check()


def test_repeats_are_counted_but_not_as_input() -> None:
    books = ledger(2)
    books.trained([0, 1])
    books.trained([0])
    books.check()
    assert books.repeats == 1


def test_placeholders_are_not_samples() -> None:
    books = ledger(2)
    books.trained([-1, 0, 1])
    books.check()


def test_truncated_samples_are_trained_on_and_counted_besides() -> None:
    one, two = ledger(4), ledger(4)
    for books in (one, two):
        for index, tokens in ((0, 90), (1, 70), (2, 65)):
            cut = Cut(messages=2, parts=1)
            books.truncated(Truncated(key=key(index), tokens=tokens, kept=60, cut=cut))
    one.trained([0, 3])
    two.trained([1])
    two.dropped(Dropped(key=key(2), reason=Reason.CORRUPT_MEDIA, detail="gone"))
    one.check(finished=False)
    one.merge(two)
    one.check()
    assert (one.total()["trained"], one.total()["truncated"], one.total()["tokens_cut"]) == (3, 2, 40)
    assert one.totals()["a"]["tokens_cut"] == 30
    assert [(entry["where"], entry["tokens"], entry["kept"]) for entry in one.truncations()] == [
        ("f.jsonl:1", 90, 60),
        ("f.jsonl:2", 70, 60),
    ]
    assert "a: 2 in = 1 trained + 0 replaced + 1 dropped (corrupt_media 1); 1 truncated by 30 tokens" in str(one)


def test_ranks_merge() -> None:
    one, two = ledger(4), ledger(4)
    for books in (one, two):
        books.dropped(Dropped(key=key(3), reason=Reason.MISSING_MEDIA, detail="gone"))
    one.trained([0])
    two.trained([1, 2])
    two.trained([0])
    one.merge(two)
    one.check()
    assert one.total()["trained"] == 3
    assert one.repeats == 1, "both ranks trained on sample 0"


def test_broken_names_can_be_written_down(tmp_path: Path) -> None:
    books = ledger(1)
    books.dropped(Dropped(key=key(0), reason=Reason.MISSING_MEDIA, detail="no file a\ud800.png"))
    books.save(str(tmp_path / "ledger.json"))
    assert json.loads((tmp_path / "ledger.json").read_text())["entries"][0]["detail"] == "no file a\ud800.png"


def test_the_file_is_readable(tmp_path: Path) -> None:
    books = ledger(3)
    books.trained([0])
    books.dropped(Dropped(key=key(1), reason=Reason.TOO_LONG, detail="9 tokens"))
    books.dropped(Dropped(key=key(2), reason=Reason.CORRUPT_MEDIA, detail="bad", by=(key(0),)))
    books.save(tmp_path / "deep" / "ledger.json")
    saved = json.loads((tmp_path / "deep" / "ledger.json").read_text())
    assert saved["total"]["input"] == 3
    assert [entry["reason"] for entry in saved["entries"]] == ["too_long", "corrupt_media"]
    assert saved["entries"][1]["by"] == ["a#0 (f.jsonl:1)"]
    assert "b: 1 in = 0 trained + 0 replaced + 1 dropped (too_long 1)" in str(books)
