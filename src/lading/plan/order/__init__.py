"""Packs → (step, rank): alike in cost within a step, random from step to step. A name chooses the way."""

from lading.plan.order.place import PLACINGS, Placed, order_packs, order_random

__all__ = ["PLACINGS", "Placed", "order_packs", "order_random"]
