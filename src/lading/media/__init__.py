"""Reference → size (early, from the header) or pixels (late, in a worker). This room knows no token ids.

| file | gives |
| --- | --- |
| `geometry` | all resize arithmetic: size → footprint |
| `opening` | what may be opened, and for how long; any reference → something a decoder can read, or a named skip |
| `content` | what a file is, by its first bytes |
| `image`, `video`, `audio` | size and pixels of one medium |
| `pixels`, `raw` | the tensors of a sample: by the processor's classes, or in byte patches |
| `probe` | footprints by asking the processor, where its arithmetic is not written down here |
| `jpeg` | the pixels of an ordinary JPEG, without Pillow's decoder |
| `normalise` | byte patches → what the model expects |
| `placeholder` | the picture that keeps a vision tower busy when a batch has none |
"""

from __future__ import annotations

from collections.abc import Callable

from lading.fields import MediaKind
from lading.media import audio, image, video
from lading.records import MediaPart, Size

_SIZES: dict[MediaKind, Callable[[MediaPart], Size]] = {
    "image": image.measure,
    "video": video.measure,
    "audio": audio.measure,
}


def measure(part: MediaPart) -> Size:
    """The size of any medium, read from its header alone."""
    return _SIZES[part.kind](part)
