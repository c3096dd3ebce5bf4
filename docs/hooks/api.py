"""The reference of the library, made of its docstrings.

Names are imported and asked for their signatures; the words under a record's fields are read from its source. The pages
are plain Markdown, and every name has an anchor of its own: `#lading.Loader`, `#lading.Loader.state_dict`.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

WIDTH = 100
VLM = ("datasets", "collate_fns", "neat_packing_vlm", "samplers", "pp_media")
METHODS = (classmethod, staticmethod, property, cached_property)


def pages() -> dict[str, str]:
    """The pages of the reference, by name."""
    return {
        "lading": _page("lading"),
        "vlm": _page("lading.vlm", *(f"lading.vlm.{name}" for name in VLM)),
        "verify": _page("lading.verify"),
        "records": _page("lading.records"),
        "errors": _page("lading.errors"),
    }


def _page(*names: str) -> str:
    first = import_module(names[0])
    parts = [f"# {names[0]}", markdown(first.__doc__ or "")]
    for name in names:
        module = import_module(name)
        if name != names[0]:
            parts += [f"## {name} {{#{name}}}", markdown(module.__doc__ or "")]
        for own in public_names(module):
            parts.append(_entry(f"{name}.{own}", _value(module, own), level=2 if len(names) == 1 else 3))
    return "\n\n".join(part for part in parts if part) + "\n"


def public_names(module: ModuleType) -> list[str]:
    """What a module offers: the names it lists, else those of functions and classes that it defines."""
    listed = vars(module).get("__all__")
    if listed is None:
        made_here = (
            name
            for name, value in vars(module).items()
            if (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__ == module.__name__
        )
        return sorted(name for name in made_here if not name.startswith("_"))
    return [name for name in listed if not name.startswith("_") and name != "logger"]


def _value(module: ModuleType, name: str) -> Any:
    # The names of the façade are loaded when they are asked for.
    return vars(module)[name] if name in vars(module) else module.__getattr__(name)


def _entry(name: str, value: Any, *, level: int) -> str:
    heading = f"{'#' * level} {name.rsplit('.', 1)[-1]} {{#{name}}}"
    if isinstance(value, ModuleType):
        inside = [_entry(f"{name}.{own}", _value(value, own), level=level + 1) for own in public_names(value)]
        return "\n\n".join([heading, markdown(value.__doc__ or ""), *inside])
    if inspect.isclass(value):
        return "\n\n".join(part for part in (heading, *_class(name, value, level)) if part)
    if inspect.isfunction(value):
        return "\n\n".join([heading, _fenced(signature(value, value.__name__)), markdown(_doc(value))])
    short = name.rsplit(".", 1)[-1]
    return f"{heading}\n\n" + _fenced(f"{short} = {shown(value)}")


def _class(name: str, value: type, level: int) -> Iterator[str]:
    yield _fenced(_head(value))
    yield markdown(_doc(value))
    if issubclass(value, Enum):
        yield "\n".join(f"- `{member.name}`: `{member.value!r}`" for member in value)
    elif is_dataclass(value):
        yield _fields(value)
    for own, member in vars(value).items():
        if not own.startswith("_") and (inspect.isfunction(member) or isinstance(member, METHODS)):
            yield _method(f"{name}.{own}", member, level + 1)


def _head(value: type) -> str:
    if issubclass(value, Enum):
        return f"class {value.__name__}(Enum)"
    if is_dataclass(value):
        # Its fields say it, with their words.
        return f"class {value.__name__}"
    try:
        return "class " + signature(value, value.__name__, arrow=False)
    except ValueError:
        return f"class {value.__name__}"


def _method(name: str, member: Any, level: int) -> str:
    own, short = name.rsplit(".", 2)[-2:]
    heading = f"{'#' * level} {own}.{short} {{#{name}}}"
    if isinstance(member, (property, cached_property)):
        function: Any = member.fget if isinstance(member, property) else member.func
        shown = f"{short}: {plain(inspect.signature(function).return_annotation)}"
    else:
        function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        shown = signature(function, short, bound=not isinstance(member, staticmethod))
    return "\n\n".join([heading, _fenced(shown), markdown(_doc(function))])


def _fields(value: type) -> str:
    said = field_words(value)
    lines = []
    for own in fields(value):
        default = "" if own.default is MISSING else f" = {shown(own.default)}"
        words = f": {inline(said[own.name])}" if own.name in said else ""
        lines.append(f"- `{own.name}: {plain(own.type)}{default}`{words}")
    return "\n".join(lines)


def field_words(value: type) -> dict[str, str]:
    """What stands under each field of a record, read from its source."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(value))).body
    assert isinstance(node, ast.ClassDef)
    found = {}
    for field, below in zip(node.body, node.body[1:], strict=False):
        said = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else None
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(said, str):
            found[field.target.id] = " ".join(said.split())
    return found


def signature(function: Callable[..., Any], name: str, *, bound: bool = False, arrow: bool = True) -> str:
    """A call as one would write it, over several lines where it is long."""
    found = inspect.signature(function)
    parameters = list(found.parameters.values())[1 if bound else 0 :]
    words = list(_words(parameters))
    answer = f" -> {plain(found.return_annotation)}" if arrow and found.return_annotation is not found.empty else ""
    line = f"{name}({', '.join(words)}){answer}"
    if len(line) <= WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){answer}"


def _words(parameters: list[inspect.Parameter]) -> Iterator[str]:
    kinds = inspect.Parameter
    starred = any(own.kind is kinds.VAR_POSITIONAL for own in parameters)
    for own in parameters:
        if own.kind is kinds.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        star = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(own.kind, "")
        kind = "" if own.annotation is own.empty else f": {plain(own.annotation)}"
        default = "" if own.default is own.empty else f"{' = ' if kind else '='}{shown(own.default)}"
        yield f"{star}{own.name}{kind}{default}"


def plain(annotation: Any) -> str:
    """An annotation as it is written in the code."""
    if isinstance(annotation, str):
        return annotation
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def shown(value: Any) -> str:
    """A default as it may stand on a page: what has an address in memory has no other name than its own."""
    if inspect.isfunction(value):
        return "…" if value.__name__ == "<lambda>" else value.__name__
    said = repr(value)
    return "…" if " at 0x" in said else said


def _doc(value: Any) -> str:
    # A record without words of its own would show its signature a second time.
    own = value.__doc__ or ""
    return "" if inspect.isclass(value) and own.startswith(f"{value.__name__}(") else own


def _fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def markdown(doc: str) -> str:
    """A docstring as Markdown: examples and drawings fenced, prose free of accidental HTML.

    >>> print(markdown('''Halve a number.
    ...
    ...     >>> half(4)
    ...     2
    ... '''))
    Halve a number.
    <BLANKLINE>
    ```pycon
    >>> half(4)
    2
    ```
    """
    shaped: list[str] = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(doc)) if doc.strip() else ():
        made = _block(block)
        kind = made.split("\n", 1)[0]
        if kind.startswith("```") and shaped and shaped[-1].startswith(f"{kind}\n"):
            # An example, or a drawing, with an empty line inside is still one.
            shaped[-1] = shaped[-1].removesuffix("```") + "\n" + made.removeprefix(f"{kind}\n")
        else:
            shaped.append(made)
    return "\n\n".join(shaped)


def _block(block: str) -> str:
    lines = block.splitlines()
    inside = textwrap.dedent(block)
    if inside.lstrip().startswith(">>>"):
        return f"```pycon\n{inside}\n```"
    aligned = len(lines) > 1 and all(re.match(r"\s*\S+ {2,}\S", line) for line in lines)
    if aligned or all(line.startswith("    ") for line in lines):
        return f"```text\n{inside}\n```"
    if ">>>" in block:
        before, example = re.split(r"(?m)^(?=\s*>>>)", block, maxsplit=1)
        return f"{_prose(before.rstrip())}\n\n{_block(example)}"
    return _prose(block)


def _prose(text: str) -> str:
    """`<image>` outside of code would be taken for HTML."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece.startswith("`") else piece.replace("<", "&lt;") for piece in pieces)


def inline(text: str) -> str:
    """A sentence as Markdown on one line."""
    return _prose(" ".join(text.split()))
