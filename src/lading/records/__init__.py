"""The nouns that travel between rooms: frozen, keyword-only, slotted. Each docstring states one law.

    Row → Conversation → Encoded → Pack → Batch → Microbatch
                 Footprint ↗   LengthTable → PackPlan ↗

Importing this module never reaches torch: planning starts fast.
"""

from lading.records.batches import Batch, Document, Encoded, LazyInputs, LazyPixels, Microbatch, Pack, held
from lading.records.lengths import COLUMNS, Dropped, Length, LengthTable, Truncated, UnreadKey, column_type
from lading.records.media import AudioSize, Footprint, ImageSize, MediumSpan, PixelScale, Size, VideoSize
from lading.records.plans import COSTS, TOO_LONG, TYPICAL_WORK, PackPlan, TooLong, Work
from lading.records.samples import (
    REASONING_KEYS,
    Conversation,
    Cut,
    Finding,
    MediaPart,
    Message,
    Part,
    Reference,
    Role,
    Row,
    SampleKey,
    Severity,
    TextPart,
)

__all__ = [
    "COLUMNS",
    "COSTS",
    "REASONING_KEYS",
    "TOO_LONG",
    "TYPICAL_WORK",
    "AudioSize",
    "Batch",
    "Conversation",
    "Cut",
    "Document",
    "Dropped",
    "Encoded",
    "Finding",
    "Footprint",
    "ImageSize",
    "LazyInputs",
    "LazyPixels",
    "Length",
    "LengthTable",
    "MediaPart",
    "MediumSpan",
    "Message",
    "Microbatch",
    "Pack",
    "PackPlan",
    "Part",
    "PixelScale",
    "Reference",
    "Role",
    "Row",
    "SampleKey",
    "Severity",
    "Size",
    "TextPart",
    "TooLong",
    "Truncated",
    "UnreadKey",
    "VideoSize",
    "Work",
    "column_type",
    "held",
]
