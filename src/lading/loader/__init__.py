"""Wires the rooms for one family: corpus and processor in, batches out. It contains no algorithms.

    config    what the user may ask for, checked all at once
    border    a processor, read once into typed records
    skip      the one place where any error may become a named skip
    samples   sample number → conversation, length or tensors
    truncation  over-long samples, cut to what fits
    room      how much of a pack samples may fill beside a placeholder
    packs     pack number → pack, in a worker
    ahead     which worker makes which batch, so that heavy ones begin early; reviving: when one dies
    watchdog  how long a sample may take
    accounts  the ledger as an epoch begins
    ranks     which rank this process is
    state     the cursor
    loader    the class a training loop iterates over

For whoever brings a data set of their own (the front door `vlm` does):

    examples  rows → examples in the conversation form, lazily; mixture, preset: from meta files and the hub
    encoder   one example → tensors
    retry     replacing what fails, by a rule; journal: what workers replaced
    batches   examples → a padded batch; label_search, thought_prefix, page_parsing: what some of them need
    packed_*  packs as dictionaries, and batches of them
"""

from lading.loader.border import Border, load_processor, read_processor
from lading.loader.config import LoaderConfig
from lading.loader.loader import Loader
from lading.loader.samples import Samples

__all__ = ["Border", "Loader", "LoaderConfig", "Samples", "load_processor", "read_processor"]
