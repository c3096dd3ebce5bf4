"""What a chat template writes around texts that it does not look into.

A template is run with texts that may be written out, or joined to others, and nothing else: whoever asks how long such
a text is, compares it or takes it apart, ends the run. A run that comes to its end has therefore written what it writes
around any texts at all. Templates that have other ways to look at a text (macros, filters that read it by themselves)
are not run: of these, nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Template, nodes

Frame = tuple[str | int, ...]
"""What a template writes: its own words, and numbers of texts that come in between."""

FIRST = 0xF0000
"""Texts are written as characters from here on, which are nobody's."""
_ANY = re.compile(f"([{chr(FIRST)}-{chr(FIRST + 0xFFFD)}])")

NODES = (
    nodes.Add, nodes.And, nodes.Assign, nodes.Break, nodes.Compare, nodes.CondExpr, nodes.Const, nodes.Continue,
    nodes.Dict, nodes.Filter, nodes.For, nodes.Getattr, nodes.Getitem, nodes.If, nodes.Keyword, nodes.List, nodes.Name,
    nodes.NSRef, nodes.Neg, nodes.Not, nodes.Operand, nodes.Or, nodes.Output, nodes.Pair, nodes.Slice, nodes.Sub,
    nodes.Template, nodes.TemplateData, nodes.Test, nodes.Tuple,
)  # fmt: skip
"""What cannot look at a text but by an operator of the text's own."""
FILTERS = frozenset(
    ("capitalize", "count", "default", "first", "last", "length", "list", "lower", "rejectattr", "selectattr", "trim")
)
TESTS = frozenset(
    ("!=", "==", "boolean", "defined", "eq", "equalto", "even", "false", "iterable", "mapping", "ne", "none")
).union(("number", "odd", "sequence", "string", "true", "undefined"))
"""Filters and tests that look at a text by its own methods, or not at all."""
FUNCTIONS, METHODS = frozenset(("namespace", "raise_exception", "range")), frozenset(("get", "items"))
"""What may be called: of methods, those of a mapping, which can but compare a text."""


class Looked(Exception):
    """A template that looks into a text."""


class _Looks:
    """How often anybody looked. Some of jinja and of Python catch whatever is raised, and go on."""

    times = 0


def _looks(self: object, *_: object, **__: object) -> Any:
    _Looks.times += 1
    raise Looked


class Opaque(str):
    """A text of which nobody knows what it says."""

    __slots__ = ()

    def __str__(self) -> str:
        return self

    def __add__(self, other: object) -> str:
        return Opaque("".join((self, other))) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: object) -> str:
        return Opaque("".join((other, self))) if isinstance(other, str) else NotImplemented

    def __getattribute__(self, name: str) -> Any:
        return str if name == "__class__" else _looks(self)

    __bool__ = __contains__ = __eq__ = __format__ = __ge__ = __getitem__ = __gt__ = __hash__ = __iter__ = _looks
    __le__ = __len__ = __lt__ = __mod__ = __mul__ = __ne__ = __repr__ = __rmod__ = __rmul__ = _looks


def opaque(number: int) -> str:
    """The character that text `number` is written as.

    >>> hex(ord(opaque(2)))
    '0xf0002'
    """
    return chr(FIRST + number)


def frame(template: Template, source: str, messages: Sequence[Mapping[str, Any]], **variables: Any) -> Frame | None:
    """What a template writes of messages whose texts are `opaque` characters; `None` where it depends on the texts.

    >>> from jinja2 import Environment
    >>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    >>> said = [{"role": "user", "content": opaque(0)}, {"role": "assistant", "content": opaque(1)}]
    >>> frame(Environment().from_string(source), source, said)
    ('<user>', 0, '<assistant>', 1)
    >>> source = "{% for m in messages %}{{ m.content | trim }}{% endfor %}"
    >>> frame(Environment().from_string(source), source, said) is None
    True
    """
    watched, before = _watched(template, source), _Looks.times
    if watched is None or any(isinstance(own, str) and _ANY.search(own) for own in variables.values()):
        return None
    try:
        found = _joined(watched.generate(messages=[_veiled(own) for own in messages], **variables))
    except Looked:
        return None
    return found if _Looks.times == before else None


def _veiled(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _veiled(own) for name, own in value.items()}
    if isinstance(value, list):
        return [_veiled(own) for own in value]
    return Opaque(value) if isinstance(value, str) and _ANY.search(value) else value


def _joined(written: Iterator[str]) -> Frame | None:
    pieces: list[str | int] = []
    for item in written:
        # By itself a text is still opaque here; joined by something else than `+`, it is a string like any other.
        text = str.__add__(item, "")
        if type(item) is not Opaque and _ANY.search(text):
            return None
        for piece in _ANY.split(text):
            if _ANY.fullmatch(piece):
                pieces.append(ord(piece) - FIRST)
            elif piece and pieces and isinstance(pieces[-1], str):
                pieces[-1] += piece
            elif piece:
                pieces.append(piece)
    return tuple(pieces)


@cache
def _watched(template: Template, source: str) -> Template | None:
    """A template whose filters and tests cannot look at a text unnoticed; `None` if something else in it might."""
    around = template.environment.overlay()
    around.filters = {name: own if name in FILTERS else _looks for name, own in around.filters.items()}
    around.tests = {name: own if name in TESTS else _looks for name, own in around.tests.items()}
    tree = around.parse(source)
    harmless = not _ANY.search(source) and all(map(_harmless, tree.find_all(nodes.Node)))
    return around.from_string(source) if harmless else None


def _harmless(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Call):
        called = node.node
        by_name = isinstance(called, nodes.Name) and called.name in FUNCTIONS
        return by_name or (isinstance(called, nodes.Getattr) and called.attr in METHODS)
    if isinstance(node, nodes.Name):
        # What may be called by its name must be what it is called.
        return not (node.ctx == "store" and node.name in FUNCTIONS)
    if isinstance(node, (nodes.NSRef, nodes.Keyword)):
        return (node.attr if isinstance(node, nodes.NSRef) else node.key) not in METHODS
    if isinstance(node, nodes.Filter):
        # `"some string" | trim(text)` is the string's business.
        given = (*node.args, *(own.value for own in node.kwargs))
        return all(isinstance(own, nodes.Const) for own in given) and not (node.dyn_args or node.dyn_kwargs)
    if isinstance(node, nodes.Compare):
        # So is `text in "some string"`; in a list, the text itself is compared.
        sure = isinstance(node.expr, nodes.Const)
        return all(
            own.op not in ("in", "notin") or sure or isinstance(own.expr, (nodes.List, nodes.Tuple)) for own in node.ops
        )
    return isinstance(node, NODES)
