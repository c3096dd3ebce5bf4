"""Sources of which nothing can be trained on, each with its likely cause in one line.

A sample that is broken is dropped by name, and a run goes on. A source that is lost as a whole is no bad luck: a media
folder is named wrongly, or the rows are not what they are read as.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from pathlib import Path

from lading.errors import Reason, SkipSample
from lading.media.opening import files_of
from lading.records import Dropped, LengthTable
from lading.samples.samples import Samples

USUAL_FOLDERS = ("images", "image", "media", "data", "videos", "audio", "train", "..")
"""Folders beside a data file in which its media are looked for."""


def lost_sources(samples: Samples, table: LengthTable) -> list[str]:
    """A line for each source of which every sample was dropped; none where each gives something."""
    dropped: dict[str, list[Dropped]] = defaultdict(list)
    for entry in table.dropped:
        dropped[entry.key.source].append(entry)
    lines = []
    for source in samples.corpus.sources:
        own = dropped[source.config.name]
        if own and len(own) == len(source):
            reason, count = Counter(entry.reason for entry in own).most_common(1)[0]
            first = next(entry for entry in own if entry.reason == reason)
            cause = _elsewhere(samples, first) if reason == Reason.MISSING_MEDIA else ""
            lines.append(
                f"{source.config.name}: all {len(own):,} samples dropped ({count:,} {reason.value}); "
                f"{cause or first.detail}"
            )
    # A broken name may hold half a character, which no log can be written with.
    return [line.encode("utf-8", "backslashreplace").decode() for line in lines]


def _elsewhere(samples: Samples, entry: Dropped) -> str:
    """Where the missing file of a sample lies in fact, if it is in a usual place."""
    try:
        conversation = samples.read(entry.key)
    except SkipSample:
        return ""
    number = samples.corpus.locate(entry.key.index)[0]
    layout, beside = samples.layouts[number], samples.corpus.sources[number].config.file.parent
    folder = layout.media_dir or layout.opened_in or Path.cwd()
    missing = [Path(path) for part in conversation.media for path in files_of(part) if not os.path.exists(path)]
    for path in missing:
        inside = path.relative_to(folder) if path.is_relative_to(folder) else Path(path.name)
        # Paths of a meta file are seen from the working directory, unless it names a media folder.
        places = [base / place for base in (folder, beside) for place in ("", *USUAL_FOLDERS)]
        for found in (place / name for place in places for name in (inside, Path(path.name))):
            if os.path.isfile(found):  # a name that no file can have is none, and no error
                parent = os.path.normpath(str(found).removesuffix(str(inside)).removesuffix(path.name))
                return f"{path} is not there, but {found} is: media_dir={parent!r} (--media-dir {parent})?"
    return ""
