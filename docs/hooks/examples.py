"""The files of `examples/`, on a page of the site. In the repository, pages link to the files themselves."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = "reference/examples.md"
_LINK = re.compile(r"\]\((?:\.\./)+examples/([\w./-]*)\)")


def files() -> list[Path]:
    """Every example, the short ones of the top folder first."""
    found = [path for path in ROOT.glob("examples/**/*") if path.suffix in (".py", ".yaml")]
    return sorted(found, key=lambda path: (len(path.parts), path.name))


def page() -> str:
    """All of them, each under its name."""
    shown = ["# Examples", "The files of `examples/`, as they are. [What they have in common](../trainers/README.md)."]
    for path in files():
        name = path.relative_to(ROOT / "examples").as_posix()
        kind = {".py": "py", ".yaml": "yaml"}[path.suffix]
        shown += [f"## {name} {{#{_anchor(name)}}}", f"```{kind}\n{path.read_text(encoding='utf-8')}```"]
    return "\n\n".join(shown) + "\n"


def linked(text: str, place: str) -> str:
    """A page's text, its links to the files of `examples/` leading to their place in the site."""
    up = "../" * place.count("/")
    return _LINK.sub(lambda found: f"]({up}{PLACE}#{_anchor(found.group(1))})", text)


def _anchor(name: str) -> str:
    return re.sub(r"\W+", "-", name)
