"""A chunk of rows, looked at: in this process or in another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lading.conversation import Layout
from lading.doctor.checks import CHECKS
from lading.doctor.checks.exact import bent, lengths, special_tokens
from lading.doctor.checks.media import Verdict, examine_medium
from lading.doctor.checks.words import WELL_KNOWN, Markers, words
from lading.doctor.digests import path_digest, sample_digest
from lading.doctor.kinds import KINDS, Problem
from lading.doctor.reading import Read, kind_of, read
from lading.encode import Encoder
from lading.loader import ProcessorFacts, Samples
from lading.media.opening import DATA_URL
from lading.records import Dropped, MediaPart
from lading.samples.skip import SkipPolicy
from lading.sources import Corpus

REMEMBERED = 100_000
"""Media whose verdict a process keeps; the rows of a picture usually stand together."""

TWINS = np.dtype([("path", np.uint64), ("content", np.uint64), ("row", np.int64)])
"""A medium in a file: digests of its name and of what is in it, and the row that shows it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Looked:
    """What was found in a chunk."""

    rows: range
    problems: list[tuple[int, Problem]]
    samples: NDArray[np.uint64]
    """A digest of each row's conversation; 0: it has none that could be trained on."""
    media: NDArray[np.void]
    """Of each file that the chunk shows, the first row that does (`TWINS`)."""
    shown: int
    """Media that the chunk shows, each as often as it is shown."""


class Look:
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
        self._markers = Markers(WELL_KNOWN if facts is None else special_tokens(facts))
        self._known: dict[tuple[str, str, str], Verdict] = {}
        self.samples = None if facts is None else Samples(corpus=corpus, encoder=Encoder(facts=facts), layouts=layouts)
        """What the processor makes of the rows."""

    def __reduce__(self) -> tuple[object, ...]:
        return (Look, (self.corpus, self.layouts, self.facts, self.pack_size, self.deep, self.seconds))

    def __call__(self, rows: range) -> Looked:
        """Look at these rows."""
        chunk = _Chunk(self, rows)
        for index in rows:
            chunk.look_at(index)
        chunk.ask_the_processor()
        return chunk.result()

    def medium(self, index: int, part: MediaPart) -> Verdict:
        """The verdict on a medium: each file is looked at once."""
        # A data URL is the picture itself: remembered names would be as large as all pictures.
        if not isinstance(part.reference, str) or part.reference.startswith(DATA_URL):
            return self._examined(index, part)
        name = (part.kind, part.reference, repr(part.options))
        if name not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[name] = self._examined(index, part)
        return self._known[name]

    def read(self, index: int) -> Read | Problem:
        """What a row says; what nobody foresaw is a problem by that name."""
        found = self._policy.attempt(self.corpus.key(index), lambda: read(self.corpus, self.layouts, index))
        return _unforeseen(found) if isinstance(found, Dropped) else found

    def checked(self, index: int, seen: Read, verdicts: Sequence[Verdict]) -> list[Problem]:
        """What is wrong with what a row says and shows."""
        found = self._policy.attempt(self.corpus.key(index), lambda: list(self._checks(seen)))
        problems = [_unforeseen(found)] if isinstance(found, Dropped) else found
        for verdict in verdicts:
            problems += verdict.problems
        # Two broken pictures in a row are one broken row, reported by the first.
        first: dict[str, Problem] = {}
        for problem in problems:
            first.setdefault(problem.kind, problem)
        return list(first.values())

    def _checks(self, seen: Read) -> Iterator[Problem]:
        for check in CHECKS:
            yield from check(seen)
        yield from words(seen, self._markers)

    def _examined(self, index: int, part: MediaPart) -> Verdict:
        found = self._policy.attempt(self.corpus.key(index), lambda: examine_medium(part, deep=self.deep))
        if isinstance(found, Dropped):
            return Verdict(problems=(_unforeseen(found),))
        if self.facts is None or found.problems:
            return found
        return Verdict(problems=tuple(bent(part, found, self.facts)), size=found.size, content=found.content)


class _Chunk:
    """What is gathered while the rows of a chunk are looked at."""

    def __init__(self, look: Look, rows: range) -> None:
        self.look, self.rows = look, rows
        self.problems: list[tuple[int, Problem]] = []
        self.samples = np.zeros(len(rows), dtype=np.uint64)
        self.sound: list[int] = []
        """Rows in which no error was found so far."""
        self.files: dict[int, tuple[int, int]] = {}
        self.shown = 0

    def look_at(self, index: int) -> None:
        seen = self.look.read(index)
        if isinstance(seen, Problem):
            self.problems.append((index, seen))
            return
        verdicts = [self.look.medium(index, part) for part in seen.conversation.media]
        found = self.look.checked(index, seen, verdicts)
        self.problems += [(index, problem) for problem in found]
        self.shown += len(verdicts)
        for part, verdict in zip(seen.conversation.media, verdicts, strict=True):
            if verdict.content and isinstance(part.reference, str):
                self.files.setdefault(path_digest(part.reference), (verdict.content, index))
        if not any(KINDS[problem.kind].severity == "error" for problem in found):
            self.samples[index - self.rows.start] = sample_digest(seen.conversation)
            self.sound.append(index)

    def ask_the_processor(self) -> None:
        if self.look.samples is None or not self.sound:
            return
        refused = list(lengths(self.look.samples, self.sound, self.look.pack_size))
        self.problems += refused
        for index, _ in refused:
            self.samples[index - self.rows.start] = 0

    def result(self) -> Looked:
        media = np.array([(path, *rest) for path, rest in self.files.items()], dtype=TWINS)
        return Looked(rows=self.rows, problems=self.problems, samples=self.samples, media=media, shown=self.shown)


def _unforeseen(dropped: Dropped) -> Problem:
    return Problem(kind_of(dropped.reason), dropped.detail.removeprefix("found "))
