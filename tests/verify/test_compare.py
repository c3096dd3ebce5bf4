"""Every pair of documents is tried, in both directions."""

from hypothesis import given
from hypothesis import strategies as st

from lading.verify.compare import groups


@given(st.integers(0, 70))
def test_every_document_is_changed_while_each_other_is_not(documents: int) -> None:
    passes = list(groups(documents))
    for one in range(documents):
        for other in range(documents):
            if one != other:
                assert any(one in group and other not in group for group in passes)
    assert len(passes) <= 2 * max(0, documents - 1).bit_length()
