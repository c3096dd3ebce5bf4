"""lading: conversations with images, video and sound → balanced, packed, resumable training batches.

     sources → conversation → encode → lengths → plan → packing → microbatch
       Row      Conversation   Encoded  LengthTable PackPlan Pack, Batch Microbatch      (loader runs them, in workers)
                     media: sizes early, pixels late

A run, with what it prints (the corpus and the processor are made on the spot):

    >>> import tempfile, pathlib, lading
    >>> meta = lading.toy.write_corpus(pathlib.Path(tempfile.mkdtemp()), samples=40)
    >>> model = lading.toy.model("qwen2_5_vl")
    >>> loader = lading.Loader(meta, "toy:qwen2_5_vl", pack_size=512)
    >>> for batch in loader:
    ...     loss = model(**batch).loss
    ...     loss.backward()
    >>> print(str(loader.ledger).splitlines()[-1])
    all: 40 in = 40 trained + 0 replaced + 0 dropped

Names are loaded when they are first used, so `import lading.plan` reaches neither torch nor transformers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lading import attention, families, toy
    from lading.errors import ConfigError, CorpusError, ExactnessError, LadingError, Reason, SkipSample, TooManyFailures
    from lading.family import Family, Medium, MRope, TurnStyle
    from lading.fields import Field
    from lading.ledger import Ledger
    from lading.loader import Loader, LoaderConfig, load_processor
    from lading.media.normalise import PixelNormaliser
    from lading.packing import trained_only, weighted_loss
    from lading.plan import PlanStats, make_plan, plan_stats
    from lading.records import Batch, Conversation, LengthTable, Pack, PackPlan
    from lading.sources import Corpus, open_corpus

__version__ = "0.1.0"

_HOMES = {
    "lading.packing": ("trained_only", "weighted_loss"),
    "lading.errors": (
        "ConfigError",
        "CorpusError",
        "ExactnessError",
        "LadingError",
        "Reason",
        "SkipSample",
        "TooManyFailures",
    ),
    "lading.family": ("Family", "MRope", "Medium", "TurnStyle"),
    "lading.fields": ("Field",),
    "lading.ledger": ("Ledger",),
    "lading.loader": ("Loader", "LoaderConfig", "load_processor"),
    "lading.media.normalise": ("PixelNormaliser",),
    "lading.plan": ("PlanStats", "make_plan", "plan_stats"),
    "lading.records": ("Batch", "Conversation", "LengthTable", "Pack", "PackPlan"),
    "lading.sources": ("Corpus", "open_corpus"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_ROOMS = ("attention", "families", "toy")

__all__ = [
    "Batch",
    "ConfigError",
    "Conversation",
    "Corpus",
    "CorpusError",
    "ExactnessError",
    "Family",
    "Field",
    "LadingError",
    "Ledger",
    "LengthTable",
    "Loader",
    "LoaderConfig",
    "MRope",
    "Medium",
    "Pack",
    "PackPlan",
    "PixelNormaliser",
    "PlanStats",
    "Reason",
    "SkipSample",
    "TooManyFailures",
    "TurnStyle",
    "attention",
    "families",
    "load_processor",
    "make_plan",
    "open_corpus",
    "plan_stats",
    "toy",
    "trained_only",
    "weighted_loss",
]


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return import_module(f"lading.{name}")
    if name in _HOME_OF:
        value: object = import_module(_HOME_OF[name]).__dict__[name]
        return value
    raise AttributeError(f"module 'lading' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
