"""`python -m lading.cli` is the command too."""

from lading.cli import main

main()
