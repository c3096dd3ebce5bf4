"""The words of NeMo Automodel's YAML files: `_target_` names what is called, the other keys are its arguments."""

import argparse
import re
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import yaml


class Loader(yaml.SafeLoader):
    """YAML in which 1e-5 is a number, as NeMo takes it."""


Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?e[-+]?\d+$"), list("-+0123456789"))


def read(about: str | None, default: Path) -> dict[str, Any]:
    """The file that `-c` names, with what `--section.key value` sets."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--config", type=Path, default=default)
    known, rest = parser.parse_known_args()
    config: dict[str, Any] = yaml.load(known.config.read_text(encoding="utf-8"), Loader)
    for name, value in zip(rest[::2], rest[1::2], strict=True):
        *sections, key = name.removeprefix("--").split(".")
        node = config
        for section in sections:
            node = node[section]
        node[key] = yaml.load(value, Loader)
    return config


def built(value: Any, **more: Any) -> Any:
    """What a node describes, with more arguments; nodes within it first. What has no `_target_` stays as it is."""
    if isinstance(value, list):
        return [built(one) for one in value]
    if not isinstance(value, dict):
        return value
    keys = {key: built(own) for key, own in value.items() if key != "_target_"}
    return resolve_name(value["_target_"])(**keys, **more) if "_target_" in value else {**keys, **more}
