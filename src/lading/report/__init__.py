"""Records → one HTML file that needs no network; the same tokens in colour for a terminal.

records    what the page shows of a sample: what it says, its tokens, its media
gather     the loader's samples → those records: which are shown, their turns and tokens
media      pictures, frames and sounds, made small
findings   the findings of each sample, and like findings in groups
plan       a plan → plain values: charts, packs
html       records → plain values → the file
terminal   a sample's tokens in colour
page/      the page itself: HTML, CSS, and small JavaScript modules
"""

from lading.report.gather import LIMIT, gather
from lading.report.html import write
from lading.report.records import Gathered, MediumView, SampleView, TokensView, Turn
from lading.report.terminal import terminal

__all__ = ["LIMIT", "Gathered", "MediumView", "SampleView", "TokensView", "Turn", "gather", "terminal", "write"]
