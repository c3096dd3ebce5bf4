"""A corpus seen through one processor: sample number → conversation, length or tensors.

samples     `Samples`: a corpus with everything that encodes its conversations; what is too long, cut to what fits
layouts     how the rows of each source are read, as configured or as some of them show
skip        the one guard around reading a sample: any error, and what takes too long, may become a named skip;
            an end to a worker that hangs where no alarm is heard
"""

from lading.samples.samples import Samples
from lading.samples.skip import SkipPolicy

__all__ = ["Samples", "SkipPolicy"]
