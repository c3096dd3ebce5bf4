"""The command `lading`. Each command is one file; what they show is in `show`."""

from lading.cli.app import main

__all__ = ["main"]
