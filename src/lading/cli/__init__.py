"""The command `lading`. Each command is one file; what they show is in `show`, how much they say in `speech`.

torch and transformers take seconds to load, so a command imports what needs them in its function, when it runs: help,
the version and mistakes on the command line wait for neither.
"""

import time

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    # The interpreter was at work before this line: its CPU time so far is how long ago the command was begun.
    began = time.monotonic() - time.process_time()
    from lading.cli.app import main as run

    run(began)
