"""What can go wrong, drawn once.

    LadingError
    ├── ConfigError            what was asked for cannot be done
    │   ├── UnknownName        an option, family or column that does not exist (with the one it misspells)
    │   └── MissingDependency  an optional package is needed here; the message says what to install
    ├── CorpusError            a whole file of the corpus cannot be read
    ├── SkipSample             one sample cannot be trained on; it carries a `Reason` and ends in the ledger
    ├── TooManyFailures        samples kept failing after planning; the bound was reached
    ├── MissingPrivateName     another package no longer has a private name that is used of it
    └── ExactnessError         a promise of ours does not hold (a counted length differs from the encoded one …)

Every message says what was found, what was wanted, what follows from it, and where:

    >>> str(ConfigError(found="pack size 0", wanted="a positive number of tokens", where="LoaderConfig"))
    'found pack size 0; wanted a positive number of tokens [LoaderConfig]'
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable
from enum import StrEnum

ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
"""What the system says of a file that is not there, or cannot be. Whatever else it says, the file may be there."""


class Reason(StrEnum):
    """Why a sample was dropped or replaced. The value is what ledgers and JSON show."""

    MALFORMED_JSON = "malformed_json"
    BAD_ROW = "bad_row"
    UNKNOWN_ROLE = "unknown_role"
    EMPTY_CONVERSATION = "empty_conversation"
    NO_ASSISTANT_TURN = "no_assistant_turn"
    MARKS_WITHOUT_MEDIA = "marks_without_media"
    MEDIA_WITHOUT_MARKS = "media_without_marks"
    MISSING_MEDIA = "missing_media"
    CORRUPT_MEDIA = "corrupt_media"
    DECODE_TIMEOUT = "decode_timeout"
    UNSUPPORTED_MEDIA = "unsupported_media"
    FORMAT_NOT_ALLOWED = "format_not_allowed"
    OUTSIDE_MEDIA_ROOTS = "outside_media_roots"
    IMPOSSIBLE_SHAPE = "impossible_shape"
    PLACEHOLDER_IN_TEXT = "placeholder_in_text"
    TEMPLATE_REFUSED = "template_refused"
    TOOL_CALLS = "tool_calls"
    NO_LABEL_TOKENS = "no_label_tokens"
    TOO_LONG = "too_long"
    LAST_STEP = "last_step"
    BEYOND_MAX_PACKS = "beyond_max_packs"
    UNEXPECTED_ERROR = "unexpected_error"


class LadingError(Exception):
    """The root: `except lading.LadingError` catches everything this library raises on purpose."""

    def __init__(self, *, found: str, wanted: str = "", consequence: str = "", where: str = "") -> None:
        self.found, self.wanted, self.consequence, self.where = found, wanted, consequence, where
        clauses = [f"found {found}"]
        clauses += [f"wanted {wanted}"] if wanted else []
        clauses += [consequence] if consequence else []
        super().__init__("; ".join(clauses) + (f" [{where}]" if where else ""))

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling, and errors come back from worker processes.
        return (_rebuild, (type(self), self.__dict__.copy()))


def _rebuild(kind: type[LadingError], state: dict[str, object]) -> LadingError:
    names = ("found", "wanted", "consequence", "where")
    error = kind.__new__(kind)
    LadingError.__init__(error, **{name: str(state[name]) for name in names})
    error.__dict__.update(state)
    return error


class ConfigError(LadingError, ValueError):
    """What was asked for cannot be done; nothing was read or written."""


class UnknownName(ConfigError):
    """A name that does not exist, with the one that it misspells, or a hint at what may be meant."""

    def __init__(self, *, kind: str, name: str, known: Iterable[str], where: str = "", hint: str = "") -> None:
        options = sorted(known)
        meant = None if hint else misspelt(name, options)
        hint = hint if meant is None else f"did you mean {meant!r}?"
        super().__init__(found=f"{kind} {name!r}", wanted=f"one of {', '.join(options)}", consequence=hint, where=where)


def misspelt(name: str, known: Iterable[str]) -> str | None:
    """The known name that this one misspells: by a letter, two neighbours that changed places, or how words are joined.

    Long names may have two such faults, numbers none. A name that is merely like another may mean another thing.

    >>> misspelt("batchsize", ["batch_size"]), misspelt("pack_sise", ["pack_size"]), misspelt("qwen2_vl", ["qwen3_vl"])
    ('batch_size', 'pack_size', None)
    >>> misspelt("packing", ["placing"]), misspelt("max_steps", ["last_step"]), misspelt("max_pixels", ["pixels"])
    (None, None, None)
    """
    plain = _plain(name)
    faults = {other: _faults(plain, _plain(other)) for other in known}
    near = min(faults, key=faults.__getitem__, default=None)
    most = 2 if len(plain) >= LONG_NAME else int(len(plain) >= SHORT_NAME)
    return near if near is not None and faults[near] <= most else None


SHORT_NAME, LONG_NAME = 4, 10
"""Letters from which on a name may have one fault, and two."""
_DIGITS = re.compile(r"\D+")


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _faults(name: str, other: str) -> int:
    """Letters to add, leave out, exchange or change places with their neighbours; many, where numbers differ."""
    if _DIGITS.sub("", name) != _DIGITS.sub("", other) or abs(len(name) - len(other)) > 2:
        return len(name) + len(other)
    rows = [list(range(len(other) + 1))]
    for place, letter in enumerate(name, start=1):
        row = [place]
        for spot, own in enumerate(other, start=1):
            least = min(rows[-1][spot] + 1, row[-1] + 1, rows[-1][spot - 1] + (letter != own))
            if place > 1 and spot > 1 and (letter, name[place - 2]) == (other[spot - 2], own):
                least = min(least, rows[-2][spot - 2] + 1)
            row.append(least)
        rows.append(row)
    return rows[-1][-1]


class MissingDependency(ConfigError, ImportError):
    """An optional package is needed for this, and is not installed."""

    def __init__(self, *, package: str, purpose: str) -> None:
        super().__init__(
            found=f"no package {package!r}",
            wanted=f"it installed, for {purpose}",
            consequence=f"run: pip install {package}",
        )


class CorpusError(LadingError):
    """A file of the corpus cannot be read as a whole, so none of its samples can be named."""


class SkipSample(LadingError):
    """One sample cannot be trained on. Raised by any room, counted by the loader, bounded by its policy."""

    def __init__(self, reason: Reason, *, found: str, wanted: str = "", where: str = "") -> None:
        super().__init__(found=found, wanted=wanted, where=where)
        self.reason = reason

    def at(self, where: str) -> SkipSample:
        """The same refusal, with its place."""
        return SkipSample(self.reason, found=self.found, wanted=self.wanted, where=where)


class TooManyFailures(LadingError):
    """Samples that had been counted and planned kept failing; the loader's bound was reached."""


class MissingPrivateName(LadingError):
    """Another package, in the version that is installed, lacks a name that is used of it and was never public."""


class ExactnessError(LadingError, AssertionError):
    """A promise of this library does not hold. It is our error, never the user's."""
