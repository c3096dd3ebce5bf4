"""Where the files of a row's media lie."""

from __future__ import annotations

from collections.abc import Iterator

from lading.doctor.kinds import Problem
from lading.doctor.reading import Read
from lading.media.opening import files_of, lies_below, name_of


def outside_media_folder(seen: Read) -> Iterator[Problem]:
    """A file outside the media folder, every link followed: everyday in one's own data, odd in that of strangers."""
    if seen.layout.media_dir is None or seen.layout.media_roots:
        return
    folder = [str(seen.layout.media_dir)]
    for part in seen.conversation.media:
        if not all(lies_below(path, folder) for path in files_of(part)):
            yield Problem("outside_media_folder", f"{part.kind} {name_of(part)}, outside {folder[0]}")
