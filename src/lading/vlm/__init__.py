"""The front door with the names of NeMo Automodel's `datasets.vlm`: change one prefix and carry on.

Modules here adapt arguments; the work is done in the rooms. `docs/coming-from-automodel.md` says where each name lives
and what is better here.
"""
