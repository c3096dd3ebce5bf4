"""Records → one HTML file that needs no network; the same tokens in colour for a terminal.

records    what the page shows of a sample: what it says, its tokens, its media
choose     which samples are shown, where there are more than a page holds
gather     the loader's samples → those records
findings   what is to be said of each sample, and like findings in groups
packs      packs → plain values for the page
tokens     an tokenised → its tokens, runs of a medium's collapsed
media      pictures, frames and sounds, made small
data       records → plain values for the page; charts: a plan's numbers, few enough to draw
html       plain values → the file
terminal   a sample's tokens in colour
page/      the page itself: HTML, CSS, and small JavaScript modules
"""

from lading.report.gather import LIMIT, gather
from lading.report.html import write
from lading.report.records import Gathered, MediumView, SampleView, TokensView, Turn
from lading.report.terminal import terminal

__all__ = ["LIMIT", "Gathered", "MediumView", "SampleView", "TokensView", "Turn", "gather", "terminal", "write"]
