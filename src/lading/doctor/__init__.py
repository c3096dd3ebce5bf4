"""An examination of a corpus before any GPU time: what is wrong, where, and what would happen in training.

kinds     every kind of finding, its severity, and what follows from it
opening   a corpus in which files that cannot be opened are findings, too
reading   a row → its conversation, or the problem for which it is refused
checks    what a row says: its turns, text and columns, a function for each check
media     one medium: whether it is there, whole, and what its name says
duplicates  samples and media that are there twice
rows      a chunk of rows, checked by this process or another, with a processor where there is one
examine   all of it, in parallel
findings  what was found
clean     a copy without what was found

    >>> from lading.doctor import KINDS, examine
    >>> KINDS["truncated_picture"].training
    'Its end is missing: the sample is lost, late in the run if its header is whole.'
"""

from lading.doctor.clean import write_clean
from lading.doctor.examine import examine
from lading.doctor.findings import Findings
from lading.doctor.kinds import KINDS, Kind
from lading.doctor.opening import open_for_examination

__all__ = ["KINDS", "Findings", "Kind", "examine", "open_for_examination", "write_clean"]
