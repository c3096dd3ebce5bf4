r"""A model family, declared: a frozen bundle of facts and a few optional hooks. Generic code acts on them.

>>> style = TurnStyle(opening="<|im_start|>{role}\n", closing="<|im_end|>")
>>> style.open("assistant")
'<|im_start|>assistant\n'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, get_args

from lading.fields import MEDIA_KINDS, TOKEN_FIELDS, Field, MediaKind
from lading.records import TYPICAL_WORK, Footprint, MediaPart, PixelScale, Role, Size, Work


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnStyle:
    """How a chat template frames a turn. What lies between the assistant's `opening` and `closing` is trained on,
    the closing included: a model must learn to stop.
    """

    opening: str
    closing: str
    names: Mapping[Role, str] = field(default_factory=dict)
    """What the template calls a role, where it is not the role's own name."""
    openings: Mapping[Role, str] = field(default_factory=dict)
    """The opening of a role, written out, where `opening` does not fit it."""
    system_in_first_turn: bool = False
    """Whether the template has no system turn and writes what it says into the first turn that follows."""
    unsaid: tuple[str, ...] = ()
    """What a template writes in front of an answer that the assistant does not say (an empty thought): not trained."""

    def open(self, role: Role) -> str:
        """The text that introduces a turn of `role`."""
        return self.openings.get(role, self.opening.replace("{role}", self.names.get(role, role)))


class Geometry(Protocol):
    """Resize arithmetic: from the sizes of a sample's media to what they take up, without their pixels."""

    def footprints(self, sizes: Sequence[Size]) -> list[Footprint]:
        """What media of these sizes take up in one sample. Raises `SkipSample` for a shape the model cannot take."""
        ...


TensorMaker = Callable[[Any, str, Sequence[MediaPart], Sequence[Footprint]], dict[str, Any]]
"""(processor, rendered text, media in reading order, their footprints) → the media tensors of one sample."""


class RawMedia(Protocol):
    """Media tensors whose pixels are bytes still, and how those become what the model expects."""

    @property
    def scales(self) -> Mapping[str, PixelScale]:
        """By the name of the tensor."""
        ...

    def tensors(
        self,
        processor: Any,
        text: str,
        parts: Sequence[MediaPart],
        footprints: Sequence[Footprint],
        *,
        draft: bool = False,
    ) -> dict[str, Any]:
        """As a `TensorMaker`; with `draft`, large JPEGs are decoded at a fraction of their size."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Medium:
    """How a family shows one kind of medium to its language model."""

    mark: str
    """What the chat template writes where the medium stands."""
    pad: str
    """The token that is repeated, once for each feature of the medium."""
    geometry: Callable[[Any], Geometry]
    """Reads the numbers out of a processor, once, when it is first seen."""

    def text(self, footprint: Footprint) -> str:
        """What stands in place of the mark before pads are repeated: the footprint's own text, or the pad alone."""
        return self.pad if footprint.text is None else footprint.text


@dataclass(frozen=True, kw_only=True, slots=True)
class MRope:
    """Three positions for each token: time, height, width, as `get_rope_index` of the Qwen-VL models gives them."""

    merge: Callable[[Any], int]
    """Reads the vision tower's spatial merge size out of a processor."""
    tokens_per_second: float
    """Video time is measured in this many positions a second (`vision_config.tokens_per_second`)."""
    fractional: bool = False
    """Whether video time may fall between positions; else it is rounded down."""
    after: Literal["side", "last"] = "side"
    """Text goes on behind a medium's longer `side`, or behind the `last` position it used."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreeWay:
    """The numbers of `MRope`, read out of a processor."""

    merge: int
    tokens_per_second: float
    fractional: bool = False
    after: Literal["side", "last"] = "side"


READ_OFF: Final = "default"
"""The name of a family that nobody declared: it was read off a processor."""

Pixels = Literal["auto", "model", "uint8"]
PIXELS: tuple[Pixels, ...] = get_args(Pixels)
"""What pixels are when they leave the loader: bytes that scale themselves where the batch is used, where the family
allows it; what the model expects; or bytes that are scaled by a call of one's own."""

TokenizerChoice = Literal["auto", "exact"]
TOKENIZERS: tuple[TokenizerChoice, ...] = get_args(TokenizerChoice)
"""What encodes text: `gigatoken`, where it makes the same ids as the tokenizer itself; or the tokenizer alone."""

Attention = Literal["positions", "mask", "varlen"]
ATTENTIONS: tuple[Attention, ...] = get_args(Attention)
"""How documents of a pack are kept apart: by positions that restart, by a dense mask, or by their boundaries."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerSight:
    """What a token sees in one kind of layer, within its document: the past, or the last `window` of it, and, with
    `both_ways`, all of the picture it belongs to.
    """

    window: int | None = None
    both_ways: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Tower:
    """The shape of a transformer, as far as work goes. Of experts, those that a token is sent to are counted."""

    hidden: int
    layers: int
    feed_forward: int
    keys: int | None = None
    """Width of keys, where it is not that of the hidden states; values are as wide."""
    gated: bool = True
    """Whether the feed-forward has three matrices, not two."""
    vocabulary: int = 0
    window: int | None = None
    """Patches that see each other in layers with windows."""
    full_layers: int | None = None
    """How many layers have no window; `None`: all."""
    tile: int | None = None
    """Patches of a tile, where what is counted are tiles."""

    def linear(self) -> float:
        """Operations of one token or patch in all layers, without attention."""
        projections = 2 * self.hidden**2 + 2 * self.hidden * (self.keys or self.hidden)
        return 2.0 * self.layers * (projections + (3 if self.gated else 2) * self.hidden * self.feed_forward)

    def pair(self, layers: int | None = None) -> float:
        """Operations of attention for one pair."""
        return 4.0 * self.hidden * (self.layers if layers is None else layers)


def work(language: Tower, vision: Tower) -> Work:
    """What a model of these shapes computes for a token, a squared token, a patch and a pair of patches.

    >>> small = Tower(hidden=2, layers=1, feed_forward=4, gated=False)
    >>> work(small, small)
    Work(token=64.0, pair=4.0, patch=64.0, patch_pair=8.0)
    """
    token = language.linear() + 2.0 * language.hidden * language.vocabulary
    pair = language.pair() / 2  # a token sees only what is before it
    if vision.tile is not None:
        return Work(token=token, pair=pair, patch=vision.tile * (vision.linear() + vision.tile * vision.pair()))
    full = vision.layers if vision.full_layers is None else vision.full_layers
    windows = (vision.window or 0) * vision.pair(vision.layers - full)
    return Work(token=token, pair=pair, patch=vision.linear() + windows, patch_pair=vision.pair(full))


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
    tensors: TensorMaker
    """Turns the media of a sample into tensors."""
    raw: Callable[[Any], RawMedia | None] | None = None
    """Reads out of a processor how the same is done in bytes, where that is known: faster, and needed for `pixels` of
    "auto" and "uint8"."""
    positions: MRope | None = None
    """`None`: plain positions 0, 1, 2, … for each document."""
    token_types: str | None = None
    """The input that says what each token is (0 text, 1 image, 2 video, 3 audio), where the model needs one."""
    layers: Callable[[Any], Mapping[str, LayerSight]] | None = None
    """For a model whose layers see differently: reads each kind of layer out of the model's text configuration. One
    dense mask for all would take the place of its windows; it needs one for each kind."""
    work: Work = TYPICAL_WORK
    """What the model computes: the shape of one that was published, since only ratios matter."""
    system_as_text: bool = False
    """Whether the chat template wants a system message as a string, not as a list of parts."""
    changed_by: Mapping[MediaKind, MediaKind] = field(default_factory=dict)
    """A kind of medium that the model encodes otherwise where another kind is in the batch, whoever's that is."""
    short_context: int | None = None
    """For a model with two sets of rotary factors: the tokens of the longest document that has the short set, in the
    model that was published. A longer one gives the long set to every document of its batch."""

    table: Mapping[str, Field] = field(init=False, repr=False)
    """All fields: the token fields and the family's own."""

    def __post_init__(self) -> None:
        types = {self.token_types: Field(axis="token")} if self.token_types else {}
        object.__setattr__(self, "table", {**TOKEN_FIELDS, **types, **self.fields})
        for name, declared in self.fields.items():
            assert not declared.kinds or set(declared.kinds) & set(self.media), f"{self.name}.{name}: no such medium"
        assert set(self.media) <= set(MEDIA_KINDS), f"{self.name}: unknown kind of medium"
