"""Records → one HTML file that needs no network."""

from lading.report.page import write

__all__ = ["write"]
