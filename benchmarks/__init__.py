"""Ours and the reference, alternately, on the same inputs: `make bench`. See README.md beside this file."""
