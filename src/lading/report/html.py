"""Plain values → one file: the page's own HTML, CSS and JavaScript, and the data in it.

The page fetches nothing, and could not: its security policy names the hash of its one script, and allows pictures
and sounds only from inside it. Texts of a corpus are data, never markup: every `<` in them is written as an escape, and
the page puts them on the screen as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from lading.cache import replacing
from lading.ledger import Ledger
from lading.plan import PlanStats
from lading.records import Finding, LengthTable, PackPlan
from lading.report.data import report_data
from lading.report.records import Gathered

MODULES = (
    "dom", "data", "sources", "theme", "charts", "tokens", "sample", "list", "filters", "samples", "pack", "packs",
    "plan", "groups", "ledger", "keys", "main",
)  # fmt: skip
"""Each may use those before it."""


def write(
    path: str | Path,
    *,
    stats: PlanStats,
    lengths: LengthTable,
    plan: PackPlan,
    ledger: Ledger,
    shown: Gathered | None = None,
    findings: Sequence[Finding] = (),
    losses: Sequence[float] = (),
    title: str = "lading report",
) -> int:
    """Write the report; `shown` are the samples in it (see `gather`). Returns its size in bytes."""
    data, media = report_data(
        stats=stats,
        lengths=lengths,
        plan=plan,
        ledger=ledger,
        shown=shown or Gathered(),
        findings=findings,
        losses=losses,
    )
    # A broken file name may hold half a character; it is written as its escape, which JSON reads back.
    page = render(title, data, media).encode("utf-8", errors="backslashreplace")
    with replacing(Path(path)) as file:
        return file.write(page)


def render(title: str, data: Any, media: list[str]) -> str:
    """The page as text."""
    from jinja2 import Environment

    script = bundle()
    template = Environment(autoescape=True).from_string(_read("page.html"))
    return template.render(
        title=title,
        style=_read("page.css"),
        script=script,
        script_hash=_hash(script),
        data=as_json(data),
        media=as_json(media),
    )


def as_json(value: Any) -> str:
    r"""JSON that may stand inside a page: nothing in it can end the element it stands in.

    >>> print(as_json(["</script>"]))
    ["\u003c/script>"]
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def bundle() -> str:
    """The page's modules in one script, each in a scope of its own: they are many files, and the page must be one."""
    return "\n" + "\n".join(_module(name, _read(f"{name}.js")) for name in MODULES)


def _module(name: str, source: str) -> str:
    r"""A module as a constant that holds what it exports.

    >>> print(_module("b", 'import { one } from "./a.js";\nexport const two = one + one;'))
    const module_b = (() => {
    const { one } = module_a;
    const two = one + one;
    return { two };
    })();
    """
    exported = re.findall(r"^export (?:const|class|function) (\w+)", source, flags=re.MULTILINE)
    inside = re.sub(r'^import (\{[^}]*\}) from "\./(\w+)\.js";', r"const \1 = module_\2;", source, flags=re.MULTILINE)
    inside = re.sub(r"^export (?=const|class|function)", "", inside, flags=re.MULTILINE)
    return f"const module_{name} = (() => {{\n{inside}\nreturn {{ {', '.join(exported)} }};\n}})();"


def _read(name: str) -> str:
    return (files("lading.report") / "page" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
