"""`python -m lading.cli` is the command too."""

from lading.cli.app import main

main()
