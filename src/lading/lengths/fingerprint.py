"""Everything that the lengths of a data file depend on, in one fingerprint.

What is left out: the media files themselves. To look at each would cost as much as counting; a few are looked
at (`unchanged`), and whatever a file turns out to be when it is opened is compared with what was counted.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from datetime import date
from functools import cache, cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from lading.conversation import Layout, read_conversation
from lading.conversation.keys import Reading
from lading.encode.processor_facts import ProcessorFacts
from lading.errors import SkipSample
from lading.lengths.rows import Counted
from lading.records import Row, SampleKey
from lading.sources import Corpus
from lading.sources.corpus import Source

VERSION = 1
"""Of the cache's own format."""
COUNTING = (
    "conversation/",
    "encode/",
    "families/",
    "family.py",
    "fields.py",
    "lengths/",
    "media/",
    "private_names.py",
    "records/",
    "samples/",
    "sources/",
)
"""Our own code that has a say in a length: every folder and file of it exists (a test)."""
LIBRARIES = ("transformers", "tokenizers", "jinja2")
SOFTWARE = ("version", "code", *LIBRARIES, "encoder")
"""Facts that are another with another release, whoever's."""


def source_facts(source: Source, layout: Layout, *, timed: bool = True) -> dict[str, Any]:
    """A data file and how it is read. Its media folder is named as seen from the file: both may be moved together."""
    folder = layout.media_dir
    return {
        "data": source.file.fingerprint(timed=timed),
        "format": layout.format,
        "columns": dict(layout.columns),
        "tags": dict(layout.tags),
        "media_dir": os.path.relpath(folder, source.config.file.parent) if folder else None,
        # Only where they are not as usual: what was counted before anybody could name any is counted still.
        **({"reading": asdict(layout.reading)} if layout.reading != Reading() else {}),
        **({"media_roots": list(layout.media_roots)} if layout.media_roots else {}),
    }


class Fingerprints:
    """A fingerprint of every source of a corpus, the same for a copy: a run may carry on where its data came anew."""

    def __init__(self, corpus: Corpus, layouts: Sequence[Layout]) -> None:
        self._corpus, self._layouts = corpus, layouts

    @cached_property
    def by_source(self) -> dict[str, str]:
        """By the name of the source; found out when it is first asked for, because files are read for it."""
        return {
            source.config.name: digest(source_facts(source, layout, timed=False))
            for source, layout in zip(self._corpus.sources, self._layouts, strict=True)
        }


def processor_facts(facts: ProcessorFacts) -> dict[str, Any] | None:
    """A processor and its family; `None` for a processor that does not say what it is set to."""
    processor, family = facts.processor, facts.family
    try:
        settings = processor.to_dict()
    except AttributeError:
        return None
    tokenizer = processor.tokenizer
    template = processor.chat_template or tokenizer.chat_template
    # What the last call left behind is no part of a tokenizer; counting sets both anew.
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.backend_tokenizer.no_truncation()
    return {
        "version": VERSION,
        "code": _own_code(),
        **{name: version(name) for name in LIBRARIES},
        "encoder": facts.encoded_by,
        "processor": _name(type(processor)),
        "settings": digest(settings),
        "tokenizer": digest(tokenizer.backend_tokenizer.to_str()),
        "special_tokens": digest(tokenizer.special_tokens_map),
        "template": digest(template),
        **({"template_options": dict(facts.template_options)} if facts.template_options else {}),
        "today": str(date.today()) if "strftime_now" in str(template) else "",
        "family": family.name,
        "turns": digest([_facts(family.turns), family.system_as_text]),
        "media": {kind: digest([own.mark, own.pad, _maker(own.geometry)]) for kind, own in family.media.items()},
        "geometries": {kind: digest(_facts(own)) for kind, own in facts.geometries.items()},
    }


def digest(value: object) -> str:
    """A short name for any plain value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _facts(value: object) -> Any:
    """The numbers and names that a record was made of; functions and what it has learnt meanwhile are left out."""
    if is_dataclass(value) and not isinstance(value, type):
        return [_name(type(value)), {own.name: _facts(getattr(value, own.name)) for own in fields(value)}]
    if isinstance(value, (list, tuple)):
        return [_facts(item) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _facts(item) for key, item in value.items()}
    return value if isinstance(value, (str, int, float, type(None))) else None


def _maker(value: Any) -> Any:
    """A function by its name, and what it was given beforehand."""
    if isinstance(value, partial):
        return [_maker(value.func), [str(item) for item in value.args], {k: str(v) for k, v in value.keywords.items()}]
    return _name(value)


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


@cache
def _own_code() -> str:
    """Our own code: a version says nothing to those who work on it."""
    root = Path(__file__).parents[1]
    digested = hashlib.blake2b(digest_size=12)
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).as_posix().startswith(COUNTING):
            digested.update(path.read_bytes())
    return digested.hexdigest()


WITNESSES = 64
"""Rows of a source whose media are remembered."""


def remember(source: Source, layout: Layout, counted: Counted) -> dict[str, list[int]]:
    """The sizes of the media of a few rows, by row."""
    records = counted.records
    shown = records["row"][(records["images"] > 0) | (records["videos"] > 0) | (records["audios"] > 0)]
    if not len(shown):
        return {}
    chosen = np.unique(np.linspace(0, len(shown) - 1, WITNESSES).round().astype(int))
    return {str(row): _media_bytes(source, layout, row) for row in shown[chosen].tolist()}


def unchanged(source: Source, layout: Layout, remembered: Mapping[str, list[int]]) -> bool:
    """Whether those media are of the same sizes still."""
    return all(_media_bytes(source, layout, int(row)) == sizes for row, sizes in remembered.items())


def _media_bytes(source: Source, layout: Layout, row: int) -> list[int]:
    key = SampleKey(index=row, source=source.config.name, where=source.file.where(row))
    try:
        conversation = read_conversation(Row(key=key, value=source.file.read(row)), layout)
    except SkipSample:
        return []
    references = [part.reference for part in conversation.media]
    files = [path for own in references for path in (own if isinstance(own, tuple) else (own,))]
    return [_bytes(path) for path in files if isinstance(path, (str, Path))]


def _bytes(path: str | Path) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return -1
