"""All resize arithmetic: how large a picture becomes, and how many patches and tokens that is.

pictures   the sizes processors give pictures and frames; size → footprint of a picture
clips      which frames of a clip are used; size → footprint of a clip
sounds     size → footprint of a sound, and of a clip that is heard
"""

from lading.media.geometry.clips import ClipGrid, StampedClipGrid
from lading.media.geometry.pictures import PatchGrid, smart_resize, smart_resize_clip
from lading.media.geometry.sounds import MelWindows, SoundingClips

__all__ = [
    "ClipGrid",
    "MelWindows",
    "PatchGrid",
    "SoundingClips",
    "StampedClipGrid",
    "smart_resize",
    "smart_resize_clip",
]
