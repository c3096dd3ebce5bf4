"""Pictures and clips of coloured shapes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lading.toy.texts import COLOURS

if TYPE_CHECKING:
    from PIL import Image

FRAME = (128, 96)
RATE = 8


def draw_picture(path: Path, colour: str, shape: str, *, width: int, height: int) -> None:
    """Draw one shape and save it; the ending of the name decides the format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _shape(colour, shape, width, height, 0.5).save(path)


def draw_clip(path: Path, colour: str, shape: str, *, frames: int) -> None:
    """Encode a clip in which the shape moves from left to right."""
    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=RATE)
        stream.width, stream.height = FRAME
        stream.pix_fmt = "yuv420p"
        for number in range(frames):
            picture = _shape(colour, shape, *FRAME, 0.2 + 0.6 * number / frames)
            frame = av.VideoFrame.from_ndarray(np.asarray(picture), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def _shape(colour: str, shape: str, width: int, height: int, across: float) -> Image.Image:
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (width, height), (245, 245, 240))
    pen = ImageDraw.Draw(picture)
    reach = min(width, height) // 3
    x, y = int(width * across), height // 2
    box = (x - reach, y - reach, x + reach, y + reach)
    if shape == "circle":
        pen.ellipse(box, fill=COLOURS[colour])
    elif shape == "square":
        pen.rectangle(box, fill=COLOURS[colour])
    else:
        pen.polygon([(x, y - reach), (x + reach, y + reach), (x - reach, y + reach)], fill=COLOURS[colour])
    return picture
