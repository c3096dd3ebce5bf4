"""Pictures, frames and sounds, made small enough to stand in the page itself."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lading.errors import MissingDependency
from lading.records import AudioSize, Footprint, ImageSize, MediaPart, VideoSize
from lading.report.records import MediumView

if TYPE_CHECKING:
    from PIL import Image

FRAMES = 6
"""Frames that are shown of a clip."""
RATE = 16_000
"""Samples a second of a sound in the page."""
SIDES = ((250, 320), (1000, 200), (4000, 128))
"""With at most so many media in the page, how long the longer side of a picture may be."""
LEAST_SIDE = 80
QUALITY = 72


@dataclass(kw_only=True, slots=True)
class Budget:
    """How much the media of a page may take. Law: what is over it is left out, and says so."""

    side: int
    seconds: float
    """Of each sound, from its beginning."""
    left: int
    """Characters."""

    @classmethod
    def of(cls, media: int, characters: int = 11_000_000) -> Budget:
        """For a page of so many media: the more there are, the smaller each.

        >>> Budget.of(100).side, Budget.of(100_000).side
        (320, 80)
        """
        side = next((own for most, own in SIDES if media <= most), LEAST_SIDE)
        return cls(side=side, seconds=30.0 if media <= 250 else 8.0, left=characters)

    def take(self, view: MediumView) -> MediumView:
        """The medium, or that it is too much."""
        needed = sum(map(len, (*view.pictures, view.sound)))
        if needed > self.left:
            return replace(view, pictures=(), sound="", trouble="left out: the page holds enough media already")
        self.left -= needed
        return view


def medium_view(part: MediaPart, footprint: Footprint | None, budget: Budget) -> MediumView:
    """One medium, as the model is shown it; `footprint` is what it takes up, where that is known."""
    view = {"image": _image, "video": _video, "audio": _audio}[part.kind]
    return view(part, footprint, budget)


def name_of(part: MediaPart) -> str:
    """How to call a medium: the name of its file alone, since a report is handed round; else as messages call it.

    >>> name_of(MediaPart(kind="image", reference="/home/ada/a.png"))
    'a.png'
    >>> name_of(MediaPart(kind="image", reference="data:image/png;base64,iVBORw=="))
    '<data URL of 30 characters>'
    """
    from lading.media import opening

    reference = part.reference
    if isinstance(reference, (tuple, list)):
        return f"{len(reference)} frames"
    if isinstance(reference, (str, Path)) and not str(reference).startswith(opening.DATA_URL):
        return Path(reference).name[-80:]
    return opening.name_of(part)


def _image(part: MediaPart, footprint: Footprint | None, budget: Budget) -> MediumView:
    from lading.media import image

    size = image.measure(part)
    side = budget.side
    picture = image.decode(part, at_least=(min(side, size.height), min(side, size.width)))
    return MediumView(
        kind="image", name=name_of(part), facts=_facts(size, footprint), pictures=(_picture(picture, side),)
    )


def _video(part: MediaPart, footprint: Footprint | None, budget: Budget) -> MediumView:
    from PIL import Image

    from lading.media import video

    size = video.measure(part)
    used = footprint.frames if footprint is not None and footprint.frames else range(size.frames)
    shown = [used[place] for place in spread(len(used), FRAMES)]
    frames = video.decode(part, shown)
    pictures = tuple(_picture(Image.fromarray(frame), budget.side * 2 // 3) for frame in frames)
    sound = ""
    if size.sound is not None:
        sound = _sound(video.decode_sound(part, RATE), budget)
    facts = _facts(size, footprint)
    return MediumView(kind="video", name=name_of(part), facts=facts, pictures=pictures, sound=sound)


def _audio(part: MediaPart, footprint: Footprint | None, budget: Budget) -> MediumView:
    from lading.media import audio

    size = audio.measure(part)
    sound = _sound(audio.decode(part, RATE), budget)
    heard = f" (the first {budget.seconds:.0f} s are in the page)" if size.samples > budget.seconds * size.rate else ""
    return MediumView(kind="audio", name=name_of(part), facts=_facts(size, footprint) + heard, sound=sound)


def spread(total: int, most: int) -> list[int]:
    """At most so many places of `total`, evenly spread, the first and the last among them."""
    places: list[int] = np.linspace(0, total - 1, min(total, most)).round().astype(int).tolist()
    return places


def _facts(size: ImageSize | VideoSize | AudioSize, footprint: Footprint | None) -> str:
    if isinstance(size, AudioSize):
        facts = f"{size.samples / size.rate:.1f} s"
    elif isinstance(size, VideoSize):
        facts = f"{size.width}×{size.height}, {size.frames} frames"
        facts += f" at {size.fps:.3g} a second" if size.fps else ""
        facts += f", {len(footprint.frames)} used" if footprint is not None and footprint.frames else ""
    else:
        facts = f"{size.width}×{size.height}"
    if footprint is not None:
        facts += f" · {sum(footprint.runs):,} tokens"
        facts += "" if tuple(footprint.grid) == (1, 1, 1) else " · grid " + "×".join(map(str, footprint.grid))
    return facts


def _picture(picture: Image.Image, side: int) -> str:
    picture.thumbnail((side, side))
    data = io.BytesIO()
    picture.save(data, format="WEBP", quality=QUALITY, method=2)
    return _address("image/webp", data.getvalue())


def _sound(samples: NDArray[np.float32], budget: Budget) -> str:
    try:
        import soundfile
    except ImportError as error:
        raise MissingDependency(package="soundfile", purpose="sounds in the report") from error
    data = io.BytesIO()
    soundfile.write(data, samples[: int(budget.seconds * RATE)], RATE, format="MP3")
    return _address("audio/mpeg", data.getvalue())


def _address(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
