"""A chunk of rows, checked: in this process or in another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.conversation import Layout
from lading.doctor.checks import CHECKS, WELL_KNOWN, Markers, words
from lading.doctor.duplicates import SHOWN_FILES, path_digest, sample_digest
from lading.doctor.kinds import KINDS, Problem
from lading.doctor.media import Verdict, examine_medium
from lading.doctor.reading import Read, kind_of, read
from lading.encode.encoder import Encoder
from lading.encode.processor_facts import ProcessorFacts
from lading.encode.template import left_out_thoughts
from lading.errors import ConfigError, SkipSample
from lading.media.opening import DATA_URL, name_of
from lading.records import Dropped, ImageSize, MediaPart
from lading.samples.samples import Samples
from lading.samples.skip import SkipPolicy
from lading.sources import Corpus

REMEMBERED = 100_000
"""Media whose verdict a process keeps; the rows of a picture usually stand together."""
SLIM = 4
"""Shapes up to so many times as long as wide are not distorted by any resize."""
DISTORTED = 2.0
"""A resize that changes the ratio of width to height by this factor or more is a finding."""


@dataclass(kw_only=True, slots=True)
class CheckedRows:
    """What was found in a chunk of rows."""

    rows: range
    problems: list[tuple[int, Problem]] = field(default_factory=list)
    samples: NDArray[np.uint64]
    """A digest of each row's conversation; 0: it has none that could be trained on."""
    files: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of each file that the chunk shows: digest of its name → digest of what is in it, and the first row with it."""
    shown: int = 0
    """Media that the chunk shows, each as often as it is shown."""

    @property
    def media(self) -> NDArray[np.void]:
        """The files as `SHOWN_FILES`."""
        return np.array([(path, *rest) for path, rest in self.files.items()], dtype=SHOWN_FILES)


class RowChecker:
    """The job: rows → what is wrong with each. Pickling carries the settings; each process remembers its own media."""

    def __init__(
        self,
        corpus: Corpus,
        layouts: tuple[Layout, ...],
        facts: ProcessorFacts | None,
        pack_size: int | None = None,
        deep: bool = False,
        seconds: float | None = None,
    ) -> None:
        self.corpus, self.layouts, self.facts = corpus, layouts, facts
        self.pack_size, self.deep, self.seconds = pack_size, deep, seconds
        self._policy = SkipPolicy(decode_seconds=seconds)
        self._markers = Markers(WELL_KNOWN if facts is None else _special_tokens(facts))
        self._known: dict[tuple[str, str, str], Verdict] = {}
        self.samples = None if facts is None else Samples(corpus=corpus, encoder=Encoder(facts=facts), layouts=layouts)
        """What the processor makes of the rows."""

    def __reduce__(self) -> tuple[object, ...]:
        return (RowChecker, (self.corpus, self.layouts, self.facts, self.pack_size, self.deep, self.seconds))

    def __call__(self, rows: range) -> CheckedRows:
        """Check these rows."""
        checked = CheckedRows(rows=rows, samples=np.zeros(len(rows), dtype=np.uint64))
        sound = [index for index in rows if self._check_row(index, checked)]
        if sound and self.samples is not None:
            for index, problem in _lengths(self.samples, sound, self.pack_size):
                checked.problems.append((index, problem))
                checked.samples[index - rows.start] = 0
        return checked

    def _check_row(self, index: int, checked: CheckedRows) -> bool:
        """Add what is found in a row; whether it is no error."""
        key = self.corpus.key(index)
        seen = self._policy.attempt(key, lambda: read(self.corpus, self.layouts, index))
        if not isinstance(seen, Read):
            checked.problems.append((index, _unforeseen(seen) if isinstance(seen, Dropped) else seen))
            return False
        media = seen.conversation.media
        verdicts = [self._medium(index, part) for part in media]
        found = self._policy.attempt(key, lambda: list(self._row_problems(seen)))
        problems = [_unforeseen(found)] if isinstance(found, Dropped) else found
        # Two broken pictures in a row are one broken row, reported by the first.
        first: dict[str, Problem] = {}
        for problem in (*problems, *(problem for verdict in verdicts for problem in verdict.problems)):
            first.setdefault(problem.kind, problem)
        checked.problems += [(index, problem) for problem in first.values()]
        checked.shown += len(verdicts)
        for part, verdict in zip(media, verdicts, strict=True):
            if verdict.content and isinstance(part.reference, str):
                checked.files.setdefault(path_digest(part.reference), (verdict.content, index))
        if any(KINDS[kind].severity == "error" for kind in first):
            return False
        checked.samples[index - checked.rows.start] = sample_digest(seen.conversation)
        return True

    def _left_out(self, seen: Read) -> Iterator[Problem]:
        """Thoughts that the chat template does not write."""
        if self.facts is not None and any(message.thought for message in seen.conversation.messages):
            try:
                text = self.facts.tokeniser.render(seen.conversation)
            except ConfigError as error:  # it reads none: the run would not start
                yield Problem("disobeyed_key", f"{error.found}; {error.wanted}")
                return
            except SkipSample:
                return  # that is found with the lengths
            if count := left_out_thoughts(text, seen.conversation):
                yield Problem("thought_left_out", f"{count} of its thoughts")

    def _row_problems(self, seen: Read) -> Iterator[Problem]:
        yield from self._left_out(seen)
        for check in CHECKS:
            yield from check(seen)
        yield from words(seen, self._markers)

    def _medium(self, index: int, part: MediaPart) -> Verdict:
        """The verdict on a medium: each file is examined once."""
        # A data URL is the picture itself: remembered names would be as large as all pictures.
        if not isinstance(part.reference, str) or part.reference.startswith(DATA_URL):
            return self._examined(index, part)
        name = (part.kind, part.reference, repr(part.options))
        if name not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[name] = self._examined(index, part)
        return self._known[name]

    def _examined(self, index: int, part: MediaPart) -> Verdict:
        found = self._policy.attempt(self.corpus.key(index), lambda: examine_medium(part, deep=self.deep))
        if isinstance(found, Dropped):
            return Verdict(problems=(_unforeseen(found),))
        if self.facts is None or found.problems:
            return found
        return replace(found, problems=tuple(_distortion(part, found, self.facts)))


def _unforeseen(dropped: Dropped) -> Problem:
    return Problem(kind_of(dropped.reason), dropped.detail.removeprefix("found "))


def _special_tokens(facts: ProcessorFacts) -> tuple[str, ...]:
    """What the tokenizer takes for a marker wherever it stands."""
    tokenizer: Any = facts.processor.tokenizer
    added = tokenizer.added_tokens_decoder.values()
    return tuple(dict.fromkeys(token.content for token in added if token.special))


def _lengths(samples: Samples, indices: Sequence[int], pack_size: int | None) -> Iterator[tuple[int, Problem]]:
    """Samples that the loader would refuse for what the processor makes of them."""
    for index, length in zip(indices, samples.measure(indices), strict=True):
        if isinstance(length, Dropped):
            detail = length.detail.removesuffix(f" [{length.key.where}]").removeprefix("found ")
            yield index, Problem(kind_of(length.reason), detail)
        elif pack_size is not None and length.tokens > pack_size:
            yield index, Problem("too_long", f"{length.tokens:,} tokens where a pack holds {pack_size:,}")


def _distortion(part: MediaPart, verdict: Verdict, facts: ProcessorFacts) -> Iterator[Problem]:
    """A picture that the resize makes much wider or higher than it is."""
    size = verdict.size
    if not isinstance(size, ImageSize) or "image" not in facts.geometries:
        return
    short, long = sorted((size.height, size.width))
    if short < 1 or long <= SLIM * short:
        return
    try:
        _, height, width = facts.geometries["image"].footprints([size])[0].grid
    except SkipSample:
        # The whole sample is refused for it, by name, when it is counted.
        return
    change = (width / height) / (size.width / size.height)
    if height * width > 1 and max(change, 1 / change) >= DISTORTED:
        detail = f"{name_of(part)} of {size.width}×{size.height} pixels becomes {width}×{height} patches"
        yield Problem("distorted_picture", detail)
