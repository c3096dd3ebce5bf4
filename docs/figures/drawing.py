"""What the figures have in common: SVG written by hand, legible on a light page and on a dark one."""

from __future__ import annotations

from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent
STYLE = """
text { fill: #3d4752; font: 13px system-ui, sans-serif }
.faint { fill: #68727d } .line { stroke: #68727d; stroke-width: 1 } .idle { fill: #68727d; opacity: .18 }
.one { fill: #3f72b5 } .two { fill: #d98a2b } .three { fill: #2b9a83 } .four { fill: #a1519f } .paper { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #d5dbe2 } .faint { fill: #9aa5b1 } .line { stroke: #9aa5b1 } .idle { fill: #9aa5b1; opacity: .22 }
  .one { fill: #6d9bdc } .two { fill: #e5a552 } .three { fill: #45b59d } .four { fill: #c27fc0 }
  .paper { fill: #1e2129 }
}
"""


def svg(width: int, height: int, *, title: str, parts: list[str]) -> str:
    """A whole picture. Colours are classes, so that the reader's system chooses those of the night."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def text(x: float, y: float, words: str, *, anchor: str = "start", faint: bool = False, size: int = 13) -> str:
    """A line of text."""
    name = ' class="faint"' if faint else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{name} style="font-size: {size}px">{escape(words)}</text>'
    )


def box(x: float, y: float, width: float, height: float, name: str, tip: str = "") -> str:
    """A filled rectangle of a class of colour; `tip` shows while the pointer rests on it."""
    inside = f"<title>{escape(tip)}</title>" if tip else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" class="{name}">{inside}</rect>'


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    """A thin line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="line"/>'


def legend(x: float, y: float, names: dict[str, str]) -> list[str]:
    """What each colour means: words by class."""
    parts = []
    for name, words in names.items():
        parts += [box(x, y - 10, 12, 12, name), text(x + 18, y, words)]
        x += 34 + 7.2 * len(words)
    return parts


def write(name: str, picture: str) -> None:
    """Put a figure into its place."""
    (FOLDER / name).write_text(picture, encoding="utf-8")
