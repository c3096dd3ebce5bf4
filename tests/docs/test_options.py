"""The page of all options is what the code says, and says something of every one of them."""

import inspect
from dataclasses import fields

import pytest

import lading
from docs.hooks import options
from tests.support.shared import ROOT


def test_the_page_is_what_the_code_says() -> None:
    kept = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert kept == options.page(), "python -m docs.hooks.options writes it again"


def test_every_option_has_its_line() -> None:
    named = [own.name for own in inspect.signature(lading.Loader).parameters.values() if own.name != "options"]
    named += [own.name for own in fields(lading.LoaderConfig)]
    lines = {line.split("`")[1]: line for line in options.page().splitlines() if line.startswith("| `")}
    assert list(lines) == named
    assert "| `int`, 1 or more | *required* |" in lines["pack_size"]
    assert '| `"repeat"`, `"drop"` | `\'repeat\'` |' in lines["last_step"]
    assert "| <code>str &#124; None</code> | `None` |" in lines["family"]


def test_an_option_without_a_sentence_is_refused() -> None:
    class Half:
        """It has two parameters, one of which is a riddle.

        - `one`: The first.
        """

        def __init__(self, one: int, two: int = 2) -> None: ...

    with pytest.raises(ValueError, match=r"found '' for two; wanted a whole sentence, in the list of Half"):
        list(options.parameters(Half))


def test_a_list_in_a_docstring_is_read() -> None:
    doc = """Do it.

        - `one`: The
          first.
        - `two`: The other.

        That is all.
    """
    assert options.listed_words(doc) == {"one": "The first.", "two": "The other."}
