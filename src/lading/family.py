r"""A model family, declared: a frozen bundle of facts and a few optional hooks. Generic code acts on them.

>>> style = TurnStyle(opening="<|im_start|>{role}\n", closing="<|im_end|>")
>>> style.open("assistant")
'<|im_start|>assistant\n'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from lading.fields import MEDIA_KINDS, TOKEN_FIELDS, Field, MediaKind
from lading.records import Footprint, Role, Size


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnStyle:
    """How a chat template frames a turn. What lies between the assistant's `opening` and `closing` is trained on,
    the closing included: a model must learn to stop.
    """

    opening: str
    closing: str
    names: Mapping[Role, str] = field(default_factory=dict)
    """What the template calls a role, where it is not the role's own name."""

    def open(self, role: Role) -> str:
        """The text that introduces a turn of `role`."""
        return self.opening.format(role=self.names.get(role, role))


class Geometry(Protocol):
    """Resize arithmetic: from a medium's size to what it takes up, without its pixels."""

    def footprint(self, size: Size) -> Footprint:
        """What a medium of this size takes up. Raises `SkipSample` for a shape the model cannot take."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Medium:
    """How a family shows one kind of medium to its language model."""

    mark: str
    """What the chat template writes where the medium stands."""
    pad: str
    """The token that is repeated, once for each feature of the medium."""
    geometry: Callable[[Any], Geometry]
    """Reads the numbers out of a processor, once, at the border."""
    outline: Callable[[Footprint], str] | None = None
    """The text that replaces `mark`, each run of pads written once. `None`: the pad alone."""

    def text(self, footprint: Footprint) -> str:
        """What stands in place of the mark before pads are repeated."""
        return self.outline(footprint) if self.outline else self.pad


@dataclass(frozen=True, kw_only=True, slots=True)
class MRope:
    """Three positions for each token: time, height, width, as `get_rope_index` of the Qwen-VL models gives them."""

    merge: Callable[[Any], int]
    """Reads the vision tower's spatial merge size out of a processor."""
    tokens_per_second: float
    """Video time is measured in this many positions a second (`vision_config.tokens_per_second`)."""


Attention = Literal["positions", "mask"]
ATTENTIONS: tuple[Attention, ...] = get_args(Attention)
"""How documents of a pack are kept apart: by positions that restart, or by a dense mask."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """Everything that makes a model family differ from another. Law: it states facts and runs no loop over keys."""

    name: str
    title: str
    processors: tuple[str, ...]
    """Class names of the processors it belongs to."""
    models: tuple[str, ...]
    """Class names of the models it feeds."""
    turns: TurnStyle
    media: Mapping[MediaKind, Medium]
    fields: Mapping[str, Field]
    """The media tensors; token fields are the same for every family and need not be said."""
    positions: MRope | None = None
    """`None`: plain positions 0, 1, 2, … for each document."""

    def __post_init__(self) -> None:
        for name, declared in self.fields.items():
            assert declared.kind is None or declared.kind in self.media, f"{self.name}.{name}: no such medium declared"
        assert set(self.media) <= set(MEDIA_KINDS), f"{self.name}: unknown kind of medium"

    @property
    def table(self) -> Mapping[str, Field]:
        """All fields: the token fields and the family's own."""
        return {**TOKEN_FIELDS, **self.fields}
