"""Well-known data sets of the hub → examples, with pictures opened (their header alone) and sound beside."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lading.media import audio
from lading.media.opening import corrupt_as_skip, open_picture, readable
from lading.records import Conversation, MediaPart, Message, Part, Row
from lading.sources.hub import LOAD_OPTIONS, open_hub
from lading.vlm.example_form import to_example
from lading.vlm.examples import Example, Examples

if TYPE_CHECKING:
    from PIL import Image

_ORIENTATION = 0x0112
_RATE = "sampling_rate"


def open_preset(
    path_or_dataset: Any,
    split: str,
    options: Mapping[str, Any],
    *,
    read: Callable[..., Conversation],
    columns: Sequence[str],
    own: Sequence[str],
    sound: bool = False,
) -> Examples:
    """The examples of a data set; `own` are the options that its `read` takes (and, with sound, a sampling rate)."""
    loading = {name: options[name] for name in LOAD_OPTIONS if name in options}
    rows = open_hub(path_or_dataset, split, columns=columns, options=loading)
    asked = {name: options[name] for name in own if name in options}
    rate = asked.pop(_RATE, None) or rows.sampling_rates.get("audio")
    return Examples(rows=rows, read=PresetReader(read=partial(read, **asked), sound=sound, rate=rate))


@dataclass(frozen=True, kw_only=True, slots=True)
class PresetReader:
    """Rows of a well-known data set → examples media ready to be looked at."""

    read: Callable[[Row], Conversation]
    sound: bool = False
    """Whether the recording, decoded, goes beside the conversation: `audio`, as (samples [T], rate)."""
    rate: int | None = None
    """Samples a second; `None` for the recording's own."""

    def __call__(self, row: Row) -> Example:
        """One example."""
        conversation = self.read(row)
        beside = {"audio": self._sound(conversation.media[0])} if self.sound else {}
        return {**to_example(_with_pictures(conversation)), **beside}

    def _sound(self, part: MediaPart) -> tuple[NDArray[np.float32], int]:
        rate = self.rate or audio.measure(part).rate
        return audio.decode(part, rate), rate


def _with_pictures(conversation: Conversation) -> Conversation:
    messages = tuple(
        Message(role=message.role, parts=tuple(_opened(part) for part in message.parts))
        for message in conversation.messages
    )
    return replace(conversation, messages=messages)


def _opened(part: Part) -> Part:
    from PIL import Image

    if not isinstance(part, MediaPart) or part.kind != "image" or isinstance(part.reference, Image.Image):
        return part
    return replace(part, reference=lazy_picture(part))


def lazy_picture(part: MediaPart) -> Image.Image:
    """A picture whose header is read and whose pixels are not, until somebody looks at them.

    One that EXIF turns is turned, for which it must be decoded; the others wait. The file is not kept open: a list of
    many such pictures would use up the process's file handles.
    """
    from PIL import Image, ImageOps

    source = readable(part)
    errors = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)
    with corrupt_as_skip(part, *errors):
        picture = open_picture(part, io.BytesIO(Path(source).read_bytes()) if isinstance(source, str) else source)
        # Asking a PNG without the field in its header would decode it all, only to look behind the pixels.
        unturned = picture.format == "PNG" and "exif" not in picture.info
        if not unturned and picture.getexif().get(_ORIENTATION, 1) != 1:
            return ImageOps.exif_transpose(picture)
    return picture
