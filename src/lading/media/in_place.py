"""A picture's pixels where Pillow keeps them, without a copy.

Pillow keeps red, green, blue and an unused byte for each pixel. numpy's view of a picture is a copy without the fourth
byte; but torch's resize kernel works on four bytes at a time, and would only put it back.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL import Image


class _ArrowArray(ctypes.Structure):
    """The C interface of Arrow, by which Pillow lends its memory (docs of Arrow: "the C data interface")."""


_ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_ArrowArray))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def pixels_of(picture: Image.Image) -> NDArray[np.uint8]:
    """The pixels [height, width, 4] of an RGB picture, the fourth without a meaning; or [height, width, 3], copied.

    >>> from PIL import Image
    >>> pixels_of(Image.new("RGB", (2, 1), (1, 2, 3)))[..., :3].tolist()
    [[[1, 2, 3], [1, 2, 3]]]
    """
    try:
        _, lent = picture.__arrow_c_array__()
    except (AttributeError, ValueError):
        # A Pillow older than 11.2 has no such thing, and a picture of many megabytes is not kept in one piece.
        return np.array(picture)
    array = ctypes.cast(_pointer(lent, b"arrow_array"), ctypes.POINTER(_ArrowArray)).contents
    memory: Any = (ctypes.c_uint8 * (picture.width * picture.height * 4)).from_address(
        array.children[0].contents.buffers[1]
    )
    memory.lent = lent  # as long as anybody looks at the pixels, they are kept
    return np.frombuffer(memory, dtype=np.uint8).reshape(picture.height, picture.width, 4)
