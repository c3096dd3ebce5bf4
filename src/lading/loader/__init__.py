"""Wires the rooms for one family: corpus and processor in, batches out. It contains no algorithms.

    config    what the user may ask for, checked all at once
    border    a processor, read once into typed records
    skip      the one place where any error may become a named skip
    samples   sample number → conversation, length or tensors
    counting/ a corpus → its lengths, counted once and kept
    truncation  over-long samples, cut to what fits
    planning  counted lengths → the plan that the configuration asks for
    packs     pack number → pack, in a worker
    ahead     batches in their order, a `DataLoader` for each worker; reviving: when one dies
    watchdog  how long a sample may take; end_timer: the end of a worker that hears nothing
    helpers   other processes that do a job along with this one; children: how they are made
    epoch     one epoch as a rank lives it: where it stands, and its books; accounts: how those are opened
    ranks     which rank this process is; agreement: whether all made the same plan
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
