"""The front door with the names of NeMo Automodel's `datasets.vlm`: change one prefix and carry on.

Modules here adapt arguments; the work is done in the rooms. Not every name of the original is here yet;
`docs/flow.md` says which are.
"""
