"""A sample's tokens in colour, for a terminal: the same as on the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.constrain import Constrain
from rich.rule import Rule
from rich.text import Text

from lading.ledger import Ledger
from lading.records import Finding, LengthTable
from lading.report.findings import by_sample
from lading.report.records import Gathered, TokensView

TRAINED = ("#06210f on #7fd6a0", "#06210f on #5cc083")
"""In turn, so that one token can be told from the next."""
GIVEN = ("#c9ced2 on #2b3036", "#c9ced2 on #3b4249")
LINE = 80
"""Columns of the line above a sample; a file or a pipe has no width that it could fill."""
MEDIUM = "#1c1038 on #b9a0ee"


def terminal(
    shown: Gathered, *, lengths: LengthTable, ledger: Ledger, findings: Sequence[Finding] = ()
) -> Iterator[RenderableType]:
    """What is printed: a legend, and for each sample its place, its numbers and its tokens."""
    yield Text.assemble(("trained on", TRAINED[0]), " ", ("given", GIVEN[0]), " ", ("media ×tokens", MEDIUM))
    found = by_sample(ledger, findings)
    for view in shown.samples:
        index = view.key.index
        tokens, labels = int(lengths.tokens[index]), int(lengths.label_tokens[index])
        counted = f"{tokens:,} tokens, {labels:,} trained on" if tokens else "not counted"
        place = view.key.where.replace("\\", "/").rsplit("/", 1)[-1]
        title = Text(f"{place}  {view.key.source} #{index}  {counted}", style="bold")
        yield Constrain(Rule(title, align="left", style="dim"), max(LINE, title.cell_len + 2))
        for finding in found.get(index, []):
            colour = "red" if finding.severity == "error" else "yellow"
            yield Text(f"{finding.kind}: {finding.detail}", style=colour)
        if view.tokens is not None:
            yield coloured(view.tokens, shown.texts)


def coloured(tokens: TokensView, texts: Mapping[int, str]) -> Text:
    """The tokens of a sample, as many lines as they have."""
    line = Text()
    places = zip(
        tokens.ids.tolist(), tokens.counts.tolist(), tokens.trained.tolist(), tokens.medium.tolist(), strict=True
    )
    for place, (token, count, trained, medium) in enumerate(places):
        text = _printable(texts[token])
        if medium >= 0:
            line.append(f"{text} ×{count:,}", style=MEDIUM)
            continue
        line.append(text, style=(TRAINED if trained else GIVEN)[place % 2])
    return line


def _printable(text: str) -> str:
    r"""Text that cannot move the cursor: a line's end is shown, and other control characters are written out.

    >>> _printable("a\n\x1b[2J")
    'a⏎\n\\x1b[2J'
    """
    shown = "".join(letter if letter == "\n" or letter.isprintable() else repr(letter)[1:-1] for letter in text)
    return shown.replace("\n", "⏎\n") or "∅"
