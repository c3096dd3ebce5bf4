"""All resize arithmetic: how large a picture becomes, and how many patches and tokens that is.

resize     the sizes processors give pictures and frames
frames     which frames of a clip are used
pictures   size → footprint of a picture
clips      size → footprint of a clip
sounds     size → footprint of a sound
"""

from lading.media.geometry.clips import ClipGrid, StampedClipGrid
from lading.media.geometry.pictures import PatchGrid
from lading.media.geometry.resize import smart_resize, smart_resize_clip
from lading.media.geometry.sounding import SoundingClips
from lading.media.geometry.sounds import MelWindows

__all__ = [
    "ClipGrid",
    "MelWindows",
    "PatchGrid",
    "SoundingClips",
    "StampedClipGrid",
    "smart_resize",
    "smart_resize_clip",
]
