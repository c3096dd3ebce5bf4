"""All options of the `Loader` on one page, made of the code: `python -m docs.hooks.options` writes `docs/options.md`.

The page is kept in the repository, so that it can be read where the site is not built; a test fails when it is not
what the code says. The sentences are those of the code: in the list of `Loader`'s docstring for its own parameters, and
below each field of `LoaderConfig`.
"""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from docs.hooks.api import field_words, inline, plain, shown
from lading.loader import Loader, LoaderConfig
from lading.loader.config import CHOICES, LEAST

PAGE = Path(__file__).parents[1] / "options.md"
HEAD = "| name | type | default | what it does |\n| --- | --- | --- | --- |"
NEEDED = "*required*"
INTRODUCTION = """# All options of the Loader

Every parameter of `lading.Loader`, with its type, its default and what it does. All but the first two are given by
name; one that does not exist is an error, which names the nearest that does.

```python
import lading

meta = lading.toy.write_corpus("corpus", samples=40)
loader = lading.Loader(meta, "toy:qwen2_5_vl", pack_size=512, attention="varlen", too_long="truncate", num_workers=2)
```

Image resolution (`min_pixels`, `max_pixels`), fps and the chat template are no options here: they are
[the processor's](limits.md#image-resolution-and-frame-rate). Learning rate, gradient accumulation and the like are
[the trainer's](trainers/README.md).
"""


def page() -> str:
    """The whole page, as Markdown."""
    own = "\n".join([HEAD, *parameters(Loader)])
    options = "\n".join([HEAD, *_options()])
    return (
        f"{INTRODUCTION}\n## The data and the model\n\n{own}\n"
        f"\n## Packs, batches and workers\n\nChecked all at once, and every mistake is reported.\n\n{options}\n"
        "\nThis page is made of the code by `python -m docs.hooks.options`; what it says is said there.\n"
    )


def parameters(owner: type) -> Iterator[str]:
    """The parameters that a class has of its own, with the sentences of its docstring's list."""
    said = listed_words(owner.__doc__ or "")
    for own in inspect.signature(owner).parameters.values():
        if own.kind is not inspect.Parameter.VAR_KEYWORD:
            default = NEEDED if own.default is own.empty else _code(shown(own.default))
            yield _line(own.name, _code(plain(own.annotation)), default, said, f"the list of {owner.__name__}")


def _options() -> Iterator[str]:
    said = field_words(LoaderConfig)
    for own in fields(LoaderConfig):
        default = NEEDED if own.default is MISSING else _code(shown(own.default))
        yield _line(own.name, _kind(own.name, own.type), default, said, "the words below a field of LoaderConfig")


def _kind(name: str, annotation: Any) -> str:
    """What an option may be: one of a few names, a whole number from some other up, or what its annotation says."""
    if name in CHOICES:
        return ", ".join(_code(f'"{choice}"') for choice in CHOICES[name])
    return f"`int`, {LEAST[name]} or more" if name in LEAST else _code(plain(annotation))


def _line(name: str, kind: str, default: str, said: Mapping[str, str], place: str) -> str:
    sentence = said.get(name, "")
    if not sentence.endswith("."):
        raise ValueError(f"found {sentence!r} for {name}; wanted a whole sentence, in {place}")
    return f"| `{name}` | {kind} | {default} | {inline(sentence)} |"


def listed_words(doc: str) -> dict[str, str]:
    """What the list of a docstring says of each name: `- 'name': Words.`, over several lines where they are long."""
    found = re.findall(r"^- `(\w+)`: (.*(?:\n  .*)*)", inspect.cleandoc(doc), re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in found}


def _code(text: str) -> str:
    """Code in a table, where a bar would end the cell."""
    return f"<code>{html.escape(text).replace('|', '&#124;')}</code>" if "|" in text else f"`{text}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
