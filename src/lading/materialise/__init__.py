"""A plan entry → one `Pack`, by an `encode(i)` this room is given. It chooses no samples."""

from lading.materialise.pack import append_untrained, build_pack
from lading.materialise.positions import document_positions, pack_positions

__all__ = ["append_untrained", "build_pack", "document_positions", "pack_positions"]
