"""The command `lading`. Each command is one file; what they show is in `show`, how much they say in `speech`."""

import sys

from lading.progress import Terminal, silent, task, watched_by

__all__ = ["main"]


def main() -> None:
    """Run the command line. Loading torch and transformers may already take long."""
    quiet = not {"-q", "--quiet"}.isdisjoint(sys.argv)
    with watched_by(silent if quiet else Terminal()), task("starting"):
        from lading.cli.app import main as run
    run()
