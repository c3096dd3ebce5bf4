"""The former place of `lading.encode.processor_facts`; this name goes with the next release."""

import warnings

from lading.encode.processor_facts import ProcessorFacts as Border
from lading.encode.processor_facts import load_processor, read_layers, read_processor

__all__ = ["Border", "load_processor", "read_layers", "read_processor"]

warnings.warn("lading.loader.border is now lading.encode.processor_facts", DeprecationWarning, stacklevel=2)
