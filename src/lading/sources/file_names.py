"""What the files of a copy of a corpus are called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SEPARATORS = "/\\"


def file_names(wanted: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """A name for each file: what is wanted, without what leads to another folder or cannot be written as a name, and
    with a number before it where another has it. Upper and lower case are the same to some file systems.

    >>> file_names(["vqa/train.jsonl", "a.jsonl", "A.jsonl"], taken=["meta.json"])
    ['vqa-train.jsonl', 'a.jsonl', '2-A.jsonl']
    """
    met = {name.casefold() for name in taken}
    names = []
    for number, asked in enumerate(wanted):
        name = "".join(sign if sign.isprintable() and sign not in SEPARATORS else "-" for sign in asked)
        while name.casefold() in met:
            name = f"{number}-{name}"
        met.add(name.casefold())
        names.append(name)
    return names
