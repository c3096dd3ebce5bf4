"""`lading --version`: what is installed, for a report of a fault."""

from __future__ import annotations

import platform

import typer

import lading

PACKAGES = ("torch", "transformers")
"""Packages that decide what comes out. They are not loaded for it."""


def print_versions(wanted: bool) -> None:
    """Print the versions, one a line, and end the command."""
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    typer.echo(f"lading {lading.__version__}")
    typer.echo(f"python {platform.python_version()}")
    for package in PACKAGES:
        try:
            typer.echo(f"{package} {version(package)}")
        except PackageNotFoundError:
            typer.echo(f"{package} is not installed")
    raise typer.Exit()
