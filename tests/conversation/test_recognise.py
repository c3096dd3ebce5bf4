from typing import Any

import pytest

from lading.conversation import Layout, recognise
from lading.errors import CorpusError
from tests.conversation.written import TALKS, WRITERS, llava, sharegpt_roles, trl_plain

TEXT = {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]}


@pytest.mark.parametrize("name", WRITERS)
def test_one_row_with_a_picture_is_enough(name: str) -> None:
    row = WRITERS[name][1](TALKS["a picture"])
    assert row is not None
    found = recognise([row], Layout())
    assert (found.format.name, found.also) == (WRITERS[name][0], ())


def test_text_among_pictures_changes_nothing() -> None:
    found = recognise([TEXT] * 12 + [llava(TALKS["a picture"])], Layout())
    assert (found.format.name, found.fitting, found.looked) == ("llava", 13, 13)
    assert recognise([TEXT], Layout()).format.name == "sharegpt"


def test_a_row_without_its_mark_makes_no_other_format() -> None:
    rows = [sharegpt_roles(TALKS["a picture"])] * 3 + [trl_plain(TALKS["a picture"])]
    assert recognise(rows, Layout()).format.name == "sharegpt"


def test_columns_and_tags_of_ones_own() -> None:
    row = {"dialog": [{"who": "Q", "says": "Hi"}, {"who": "A", "says": "Ho"}]}
    layout = Layout(columns={"messages": "dialog"}, tags={"role_tag": "who", "content_tag": "says"})
    assert recognise([row], layout).format.name == "sharegpt"
    asked = {"q": "Hi", "a": "Ho"}
    assert recognise([asked], Layout(columns={"prompt": "q", "response": "a"})).format.name == "alpaca"
    assert recognise([asked], Layout(columns={"prompt": "q", "completion": "a"})).format.name == "prompt_completion"
    assert recognise([asked], Layout(columns={"question": "q", "answer": "a"})).format.name == "question_answer"


@pytest.mark.parametrize(
    "odd",
    [{"messages": "[" * 50_000}, {"messages": [{"role": "user", "content": [{"type": ["image"]}]}]}],
)
def test_an_odd_row_is_left_to_whoever_reads_it(odd: dict[str, Any]) -> None:
    assert recognise([odd, llava(TALKS["a picture"])], Layout()).format.name == "llava"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"mesages": []}, "nearest is sharegpt, which lacks a column 'messages' or 'conversations' or 'conversation'"),
        ({"messages": [{"role": "user"}]}, "lacks a content in every message ('content' or 'value')"),
        ({"prompt": "a", "reply": "b"}, "nearest is prompt_completion, which lacks a column 'compl"),
        ({"question": "a", "answers": ["b"]}, "nearest is question_answer, which lacks text in column 'answer'"),
        ({"texts": ["a"]}, "nearest is cauldron, which lacks a user and an assistant in every pair"),
        ({"pixels": 1}, "none is near"),
        ({}, "found columns (none)"),
        ({f"c{number}": 1 for number in range(30)}, "c11 …;"),
    ],
)
def test_what_is_nearest(row: dict[str, Any], said: str) -> None:
    with pytest.raises(CorpusError) as caught:
        recognise([row], Layout())
    assert said in str(caught.value)
