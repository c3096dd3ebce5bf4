"""A corpus → its length table, each data file counted once and kept.

For every source: what was kept is read, what is missing is counted (by this process or by several), and what was
counted is kept, bit by bit, so that an interrupted count goes on where it was.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.addresses import refuse_writing_to_address
from lading.cache import Cache, cache_folders
from lading.conversation import Layout
from lading.conversation.keys import kind_of
from lading.errors import ConfigError, Reason
from lading.lengths.fingerprint import SOFTWARE, digest, processor_facts, remember, source_facts, unchanged
from lading.lengths.gc_freeze import gc_freeze
from lading.lengths.rows import Counted, merge
from lading.lengths.store import Store
from lading.progress import Advance, task
from lading.records import COLUMNS, Conversation, Dropped, LengthTable, UnreadKey, column_type
from lading.samples.samples import Samples
from lading.sources.corpus import Source
from lading.workers.pool import ProcessPool

logger = logging.getLogger(__name__)

Chunk = tuple[list[int], list[int]]
"""Rows of a file, and the numbers of their samples."""
CHUNK = 256
"""Samples that are tokenised together."""
KEPT_EVERY = 2.0
"""Seconds of counting that an interruption may cost."""
ASKED_AGAIN = frozenset(
    (
        Reason.MISSING_MEDIA,
        Reason.CORRUPT_MEDIA,
        Reason.OUTSIDE_MEDIA_ROOTS,
        Reason.DECODE_TIMEOUT,
        Reason.IMPOSSIBLE_SHAPE,
        Reason.UNEXPECTED_ERROR,
    )
)
"""Refusals that may be over although the data file is the same: what was missing may be there now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """The lengths of a corpus, how many samples of each source were counted just now, and where each is kept."""

    table: LengthTable
    fresh: tuple[int, ...]
    folders: tuple[Path | None, ...]


def count_lengths(
    samples: Samples,
    progress: Advance | None = None,
    *,
    workers: int = 0,
    cache: Cache = None,
    again: bool = False,
) -> LengthTable:
    """The length table of a whole corpus, counted by so many processes (0 and 1: by this one).

    With `cache`, lengths are kept (in the usual place, or in the folder it names), and what is kept is not counted,
    unless `again`. `progress` is told how many samples more are known; without one, whoever watches is.
    """
    return Counting(samples=samples, workers=workers, cache=cache, again=again, progress=progress).run().table


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """What a corpus uses of one source."""

    source: Source
    layout: Layout
    first: int
    """The number of its first sample."""
    rows: NDArray[np.int64]
    """The rows that are used, ascending, each once."""
    indices: NDArray[np.int64]
    """A sample of each of these rows."""

    @classmethod
    def of(cls, source: Source, layout: Layout, first: int) -> Share:
        """What is used of a source that begins at sample `first`."""
        every = np.arange(len(source), dtype=np.int64)
        rows, places = (every, every) if source.chosen is None else np.unique(source.chosen, return_index=True)
        return cls(source=source, layout=layout, first=first, rows=rows, indices=first + places)

    def chunks(self, asked: NDArray[np.bool_]) -> Iterator[Chunk]:
        """The rows that are asked for, as many at a time as are counted together."""
        rows, indices = self.rows[asked], self.indices[asked]
        for start in range(0, len(rows), CHUNK):
            yield rows[start : start + CHUNK].tolist(), indices[start : start + CHUNK].tolist()


@dataclass(frozen=True, kw_only=True, slots=True)
class Counting:
    """How a corpus is counted."""

    samples: Samples
    workers: int = 0
    """Processes that count; with 0 or 1, this one alone."""
    cache: Cache = True
    again: bool = False
    """Whether everything is counted, whatever was kept."""
    progress: Advance | None = None
    """Told how many samples more are known; without one, whoever watches (`lading.progress`) is."""

    def run(self) -> Count:
        """Count what is not known yet."""
        corpus, shares = self.samples.corpus, []
        for source, layout, end in zip(corpus.sources, self.samples.layouts, corpus.ends, strict=True):
            shares.append(Share.of(source, layout, first=end - len(source)))
        facts = processor_facts(self.samples.facts) if self.cache else None
        if self.cache and facts is None:
            logger.warning("lengths are not kept: the processor does not say what it is set to")
        stores = [self._store(share, facts) for share in shares]
        _say_why_again(shares, stores)
        with (
            gc_freeze(),
            ProcessPool(partial(count_chunk, self.samples), self.workers) as pool,
            task("counting", len(corpus), progress=self.progress) as advance,
        ):
            done = [self._counted(share, store, pool, advance) for share, store in zip(shares, stores, strict=True)]
        return Count(
            table=_table(self.samples, shares, [counted for counted, _ in done]),
            fresh=tuple(fresh for _, fresh in done),
            folders=tuple(store.place if store else None for store in stores),
        )

    def _counted(
        self, share: Share, store: Store | None, pool: ProcessPool[Chunk, Counted], advance: Advance
    ) -> tuple[Counted, int]:
        """The lengths of a source, and how many of its rows were counted for it."""
        kept, parts = self._kept(share, store)
        known = merge([kept, parts])
        _, found = known.places(share.rows)
        strict = self.samples.policy.strict
        again = [row for row, own in known.refused.items() if strict or own.reason in ASKED_AGAIN]
        asked = ~found | np.isin(share.rows, again)
        advance(len(share.source) - int(asked.sum()))
        keeper = _Keeper(store)
        for piece in pool.map(share.chunks(asked), math.ceil(asked.sum() / CHUNK)):
            keeper.add(piece)
            advance(len(piece))
        fresh = merge(keeper.pieces)
        news = {row for row, own in fresh.refused.items() if known.refused.get(row) != own}
        if store is not None and (news or len(parts) or len(fresh) > len(fresh.refused)):
            known = merge([known, fresh])
            keeper.seal(known, share)
        return known if store is not None else fresh, len(fresh)

    def _kept(self, share: Share, store: Store | None) -> tuple[Counted, Counted]:
        """What was counted to the end before, and what an interrupted count left."""
        if store is None:
            return Counted(), Counted()
        kept, notes = store.read()
        changed = not unchanged(share.source, share.layout, notes.get("witnesses", {}))
        if changed:
            logger.warning("media of %s changed since they were counted; it is counted again", share.source.config.name)
        if changed or self.again:
            # An interrupted count must not go on with half of the old.
            store.forget()
            return Counted(), Counted()
        return kept, store.read_parts()

    def _store(self, share: Share, facts: dict[str, Any] | None) -> Store | None:
        config = share.source.config
        named = None if self.cache is True or not self.cache else Path(self.cache)
        if named is not None:
            refuse_writing_to_address(named)
        # A data set of the hub has no place of its own: its lengths are kept where a folder was named for them.
        if not self.cache or facts is None or not (named or config.file.exists()):
            return None
        facts = {**facts, **source_facts(share.source, share.layout)}
        name = f"{config.file.stem}-{digest(facts)}"
        *also, folder = [own / name for own in ([named] if named else cache_folders(config.file))]
        about = {"file": config.file.name, "rows": len(share.source.file), "facts": facts}
        store = Store(folder=folder, also=tuple(also), about=about, file=str(config.file))
        try:
            if store.place == folder:
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if named is not None:
                raise ConfigError(
                    found=f"a folder {named} that cannot be written to ({error.strerror})",
                    wanted="one for counted lengths",
                ) from error
            logger.warning("lengths are not kept: %s cannot be written to (%s)", folder, error.strerror)
            return None
        return store


def _say_why_again(shares: Sequence[Share], stores: Sequence[Store | None]) -> None:
    """Name what differs from the last count of the same files: nothing is counted again in silence."""
    sources: dict[tuple[str, ...], list[str]] = {}
    for share, store in zip(shares, stores, strict=True):
        if store is not None and (differs := tuple(store.counted_otherwise())):
            sources.setdefault(differs, []).append(share.source.config.name)
    for differs, names in sources.items():
        # Where only the software is another, nobody expects that a corpus is counted again.
        level = logging.WARNING if set(differs) <= set(SOFTWARE) else logging.INFO
        logger.log(level, "counted again, since other than last time: %s (%s)", ", ".join(differs), ", ".join(names))


def count_chunk(samples: Samples, chunk: Chunk) -> Counted:
    """The lengths of the rows of one chunk: the job of each process that counts."""
    rows, indices = chunk
    found: dict[str, list[int]] = {}

    def note(conversation: Conversation) -> None:
        for key in set(conversation.unread):
            found.setdefault(key, []).append(conversation.key.index)

    answers = samples.measure(indices, note)
    # A row that is refused may be asked again; it is counted when it can be used.
    refused = {index for index, answer in zip(indices, answers, strict=True) if isinstance(answer, Dropped)}
    found = {key: left for key, having in found.items() if (left := [own for own in having if own not in refused])}
    place = dict(zip(indices, rows, strict=True)) if found else {}
    unread = {key: (len(having), place[having[0]]) for key, having in found.items()}
    return Counted.of(rows, answers, unread)


class _Keeper:
    """Collects what is counted, and keeps it every few seconds."""

    def __init__(self, store: Store | None) -> None:
        self.store = store
        self.pieces: list[Counted] = []
        self._kept, self._time = 0, time.monotonic()

    def add(self, piece: Counted) -> None:
        self.pieces.append(piece)
        if self.store is not None and time.monotonic() - self._time > KEPT_EVERY:
            self._write(self.store.write_part, merge(self.pieces[self._kept :]))
            self._kept, self._time = len(self.pieces), time.monotonic()

    def seal(self, counted: Counted, share: Share) -> None:
        if self.store is not None:
            self._write(self.store.seal, counted, self._notes(counted, share))

    @staticmethod
    def _notes(counted: Counted, share: Share) -> dict[str, Any]:
        return {"witnesses": remember(share.source, share.layout, counted), "unread": dict(counted.unread)}

    def _write(self, write: Callable[..., None], *what: Any) -> None:
        # A full disk is no reason to stop: the lengths are known, they are only not kept.
        try:
            write(*what)
        except OSError as error:
            logger.warning("lengths are not kept: %s", error)
            self.store = None


def _table(samples: Samples, shares: Sequence[Share], counted: Sequence[Counted]) -> LengthTable:
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in COLUMNS}
    dropped: list[Dropped] = []
    unread: list[UnreadKey] = []
    for share, own in zip(shares, counted, strict=True):
        chosen = share.source.chosen
        rows = share.rows if chosen is None else chosen
        whole = chosen is None and len(own) == len(rows)
        places = slice(None) if whole else own.places(rows)[0]
        for name, pieces in columns.items():
            pieces.append(own.records[name][places])
        for place in np.flatnonzero(columns["tokens"][-1] == 0).tolist():
            refusal = own.refused[int(rows[place])]
            key = samples.corpus.key(share.first + place)
            dropped.append(Dropped(key=key, reason=refusal.reason, detail=refusal.detail))
        unread += _unread_keys(share, own)
    sizes = [len(share.source) for share in shares]
    return LengthTable.of(
        sources=[share.source.config.name for share in shares],
        source=np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
        dropped=dropped,
        unread=unread,
        # The lengths of a single source stay memory-mapped.
        **{name: pieces[0] if len(pieces) == 1 else _joined(name, pieces) for name, pieces in columns.items()},
    )


def _unread_keys(share: Share, counted: Counted) -> list[UnreadKey]:
    """The keys of a source that nobody reads, said through `logging`: harmless ones quietly."""
    name = share.source.config.name
    found = [
        UnreadKey(source=name, key=key, kind=kind_of(key), count=count, where=share.source.file.where(row))
        for key, (count, row) in sorted(counted.unread.items())
    ]
    for level, kinds in ((logging.WARNING, ("unread", "how_to_train")), (logging.INFO, ("harmless",))):
        listed = [f"{own.key} ({own.count:,}, first {own.where})" for own in found if own.kind in kinds]
        if listed:
            text = ", ".join(listed).encode("utf-8", "backslashreplace").decode()
            logger.log(level, "%s: nobody reads %s", name, text)
    return found


def _joined(name: str, pieces: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=column_type(name)), *pieces])
