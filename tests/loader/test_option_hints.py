"""Options of other libraries: none is one of ours, and each says what it is here."""

import inspect
from dataclasses import fields

import lading
from lading.errors import misspelt
from lading.loader import option_hints
from tests.cli.test_commands import lading as run


def test_the_table_and_the_options_are_strangers() -> None:
    own = {field.name for field in fields(lading.LoaderConfig)}
    named = [name for names in option_hints._MEANT.values() for name in names]
    assert len(named) == len(set(named)), "a name stands twice"
    assert not set(named) & (own | set(option_hints.LOADER_ONLY))


def test_the_arguments_of_the_loader_itself_are_known() -> None:
    parameters = inspect.signature(lading.Loader).parameters.values()
    assert tuple(own.name for own in parameters if own.kind is not own.VAR_KEYWORD) == option_hints.LOADER_ONLY


def test_what_is_named_as_an_option_is_one() -> None:
    own = {field.name for field in fields(lading.LoaderConfig)} | set(option_hints.LOADER_ONLY)
    other = {
        "len(loader)",
        "loader.steps(epochs=…, accumulate=…)",
        "open_corpus(meta, dataset_names=[…])",
        "lading.vlm",
    }
    other |= {"pin_memory()", "to(device)", "loader.state_dict()", "load_state_dict()", '"varlen"'}
    other |= {"num_samples", "sample_ratio"}
    for meant in option_hints._MEANT:
        for word in meant.split("`")[1::2]:
            assert word in other or word.partition("=")[0] in own, word


def test_the_command_offers_no_other_option() -> None:
    asked = ["plan", "x.jsonl", "--processor", "toy:qwen2_5_vl", "--pack-size", "64"]
    assert misspelt("--packing", ["--placing"]) is None
    other, near = run(*asked, "--packing", "1"), run(*asked, "--placin", "balanced")
    assert (other.returncode, near.returncode) == (2, 2)
    assert "No such option: --packing" in other.stderr
    assert "--placing" not in other.stderr
    assert "--placing" in near.stderr
