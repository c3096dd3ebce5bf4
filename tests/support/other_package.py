"""A package of somebody else's, with families of its own: installed as far as Python can tell."""

from __future__ import annotations

from pathlib import Path

PACKAGE = """
from dataclasses import replace

import torch

from lading.families.qwen2_5_vl import FAMILY as QWEN
from lading.fields import Field
from lading.media.pixels import patch_tensors


def with_depth(processor, text, parts, footprints):
    made = patch_tensors(processor, text, parts, footprints)
    if "pixel_values" in made:  # a row for each patch, and one for each picture, both told by the patches themselves
        grids = made["image_grid_thw"]
        made["berth_depth"] = made["pixel_values"].sum(dim=1, keepdim=True)
        made["berth_scale"] = grids.prod(dim=1)
    return made


def with_noise(processor, text, parts, footprints):
    made = with_depth(processor, text, parts, footprints)
    if "pixel_values" in made:
        made["berth_noise"] = torch.zeros(len(made["pixel_values"]))
    return made


OWN = {"berth_depth": Field(axis="image_patch"), "berth_scale": Field(axis="image")}
FAMILY = replace(
    QWEN, name="berth", title="Berth", processors=("BerthProcessor",), models=(), raw=None,
    fields={**QWEN.fields, **OWN}, tensors=with_depth,
)
FORGETFUL = replace(
    FAMILY, name="forgetful", title="Forgetful", processors=("ForgetfulProcessor",), tensors=with_noise
)
"""


def install(folder: Path) -> Path:
    """Write the package and what an installer writes beside it; with the folder on the path, it is installed."""
    (folder / "berth.py").write_text(PACKAGE)
    record = folder / "berth-0.1.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: berth\nVersion: 0.1\n")
    (record / "entry_points.txt").write_text("[lading.families]\nberth = berth:FAMILY\nforgetful = berth:FORGETFUL\n")
    return folder
