"""The reference of the command, made of the commands themselves."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import typer

INTRODUCTION = """# The command

This page is made of the commands themselves, when the site is built. `lading COMMAND --help` says the same.

Results go to the output stream (`--json` prints them for programs), everything else to the error stream. The exit
code is 0 where all is well, 1 where the answer is no (nothing to train on, packed is not unpacked …), and 2 where the
command could not do its work; a line says why.
"""


KINDS = {int: "N", float: "X", Path: "PATH"}
"""What stands for a value, by its type."""


def page() -> str:
    """Every command with its arguments and options, as Markdown."""
    from lading.cli.app import COMMANDS, app, command

    group: Any = typer.main.get_command(app)
    sections = [_section(group, ("lading",))]
    sections += [_section(command(name), ("lading", name)) for name in COMMANDS]
    return "\n\n".join([INTRODUCTION.strip(), *sections]) + "\n"


def _section(command: Any, path: tuple[str, ...]) -> str:
    parts = [f"## {' '.join(path)} {{#{'-'.join(path)}}}", inspect.cleandoc(command.help or "")]
    arguments = [own for own in command.params if own.param_type_name == "argument"]
    options = [own for own in command.params if own.param_type_name == "option" and not own.hidden]
    parts.append(f"```sh\n{_usage(path, arguments, options)}\n```")
    if arguments:
        parts.append(_table("argument", arguments))
    if options:
        parts.append(_table("option", options))
    return "\n\n".join(parts)


def _usage(path: tuple[str, ...], arguments: list[Any], options: list[Any]) -> str:
    if len(path) == 1:
        return f"{path[0]} [OPTIONS] COMMAND"
    words = [*path, *(_place(own) for own in arguments)]
    words += [f"{own.opts[0]} {_kind(own)}".strip() for own in options if own.required]
    return " ".join([*words, "[OPTIONS]"])


def _table(kind: str, own: list[Any]) -> str:
    lines = [f"| {kind} | | default |", "| --- | --- | --- |"]
    lines += [f"| {_names(one, kind)} | {_escaped(one.help or '')} | {_default(one)} |" for one in own]
    return "\n".join(lines)


def _names(own: Any, kind: str) -> str:
    if kind == "argument":
        return f"`{_place(own)}`"
    # The long name first, whatever the order in which they were declared.
    names = ", ".join(f"`{name}`" for name in sorted(own.opts, key=len, reverse=True))
    return f"{names} {_kind(own)}".strip()


def _place(own: Any) -> str:
    return str(own.name).upper()


def _kind(own: Any) -> str:
    """What stands behind an option: nothing behind a flag."""
    if own.is_flag or own.count:
        return ""
    return own.metavar or KINDS.get(own.type_descriptor.annotation, "NAME")


def _default(own: Any) -> str:
    if own.required:
        return "*required*"
    # A flag that is off says nothing, and neither does an option that is not there.
    return "" if own.default in (None, False, 0) and not _counts(own) else f"`{own.default}`"


def _counts(own: Any) -> bool:
    """Whether 0 is a number here and not a flag that is off."""
    return own.param_type_name == "option" and not own.is_flag and not own.count and own.default == 0


def _escaped(text: str) -> str:
    return re.sub(r"([|<>*])", r"\\\1", " ".join(text.split()))
