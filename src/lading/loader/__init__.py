"""The loop: corpus and processor in, balanced and packed batches out. It runs the rooms and contains no algorithms.

config     what the user may ask for, checked all at once
loader     the class that a training loop iterates over
planning   counted lengths → the plan that the configuration asks for, and what to warn of
packs      pack number → pack → batch, in a worker
epoch      one epoch of a rank: how far it is trained, and its ledger
ranks      which share of the data this process trains on, and whether all ranks made the same plan
state      the cursor
option_hints  what options of other libraries are called here
"""

import warnings

from lading.encode.processor_facts import ProcessorFacts, load_processor, read_processor
from lading.loader.config import LoaderConfig
from lading.loader.loader import Loader
from lading.samples import Samples

__all__ = ["Loader", "LoaderConfig", "ProcessorFacts", "Samples", "load_processor", "read_processor"]


def __getattr__(name: str) -> object:
    """A former name, which goes with the next release."""
    if name != "Border":
        raise AttributeError(f"module 'lading.loader' has no attribute {name!r}")
    warnings.warn("lading.loader.Border is now lading.loader.ProcessorFacts", DeprecationWarning, stacklevel=2)
    return ProcessorFacts
