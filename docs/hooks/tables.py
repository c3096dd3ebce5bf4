"""Tables made of what the code declares."""

from __future__ import annotations

from lading import families, toy
from lading.fields import MEDIA_KINDS

INTRODUCTION = """# Families

A family is what a model and its processor have to be told apart by: how turns are framed, what media become, how tokens
are numbered. It is found by the class of the processor, so in most cases nothing has to be said:

```python
import lading

processor = lading.toy.processor("qwen3_vl")  # yours: AutoProcessor.from_pretrained(…)
print(lading.families.read_off(processor).title)
```

`family="qwen3_vl"` (`--family qwen3_vl`) names it where the class does not tell. A processor that nobody declared is
read off itself, as long as it has a chat template, with a word in the log about what was found; pictures alone work
then. `toy:NAME` stands for a small processor made on the spot, without a network. [Adding one](../add-a-family.md) is
one file.
"""


def families_page() -> str:
    """Every family, from its own declaration."""
    lines = ["| name | model | processor class | media | toy |", "| --- | --- | --- | --- | --- |"]
    for family in families.all_families():
        classes = ", ".join(f"`{name}`" for name in family.processors)
        media = ", ".join(kind for kind in MEDIA_KINDS if kind in family.media)
        made = f"`toy:{family.name}`" if family.name in toy.recipes() else ""
        lines.append(f"| `{family.name}` | {family.title} | {classes} | {media} | {made} |")
    return f"{INTRODUCTION}\n" + "\n".join(lines) + "\n"
