"""A processor, read once into typed records. Inside, nothing asks an object what it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lading import families, toy
from lading.addresses import refuse_address
from lading.encode.gigatoken import GigatokenEncoder, gigatoken_encoder, installed_version
from lading.encode.template import NO_OPTIONS, Renderer, generation_finder, has_generation_blocks
from lading.encode.text_encoder import tokenizer_encoder
from lading.encode.tokeniser import Tokeniser
from lading.errors import ConfigError, UnknownName
from lading.family import (
    READ_OFF,
    TOKENIZERS,
    Attention,
    Family,
    Geometry,
    LayerSight,
    Medium,
    RawMedia,
    ThreeWay,
    TokenizerChoice,
)
from lading.fields import MediaKind
from lading.media.raw import agrees
from lading.progress import bars_like_ours, task
from lading.records import Conversation


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessorFacts:
    """Everything the rooms need to know of a processor."""

    processor: Any
    family: Family
    tokeniser: Tokeniser
    geometries: Mapping[MediaKind, Geometry]
    three_way: ThreeWay | None
    pad_token: int
    raw: RawMedia | None = None
    """How its media are made in bytes, where that gives what the processor itself would."""
    choice: TokenizerChoice = "auto"
    """Which tokenizer was asked for."""
    template_options: Mapping[str, Any] = field(default_factory=dict)
    """What the chat template is handed besides the conversation."""

    @property
    def encoded_by(self) -> str:
        """What encodes most texts, and its version; `tokenizers` encodes the others."""
        fast = isinstance(self.tokeniser.encode_texts, GigatokenEncoder)
        return f"gigatoken {installed_version()}" if fast else "tokenizers"

    def __reduce__(self) -> tuple[object, ...]:
        # A worker reads the processor again: that is cheap, and compiled templates cannot be pickled.
        family = None if self.family.name == READ_OFF else self.family.name
        return (read_processor, (self.processor, family, self.choice, self.template_options))


def load_processor(name: str | os.PathLike[str] | Any) -> Any:
    """A processor from a folder, a hub id or `toy:NAME`; an object is taken as it is."""
    if isinstance(name, (str, os.PathLike)):
        refuse_address(name, wanted="a processor")
    if isinstance(name, os.PathLike):
        name = f"{Path(name).absolute()}"
    if not isinstance(name, str):
        return name
    if name.startswith(toy.PREFIX):
        with task("making the processor"):
            return toy.processor(name.removeprefix(toy.PREFIX))
    if (name.startswith((".", "/")) or name.count("/") > 1) and not Path(name).is_dir():
        # transformers would take it for a hub id, and ask the network for it, for minutes.
        raise ConfigError(found=f"no folder {name}", wanted="a processor folder, a hub id, or toy:NAME")
    from transformers import AutoProcessor
    from transformers.utils import logging as bars

    switches = (bars.is_progress_bar_enabled, bars.disable_progress_bar, bars.enable_progress_bar)
    try:
        with task("reading the processor"), bars_like_ours(*switches):
            return AutoProcessor.from_pretrained(name)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError, RuntimeError) as error:
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConfigError(
            found=f"{name!r}, which transformers cannot load as a processor ({first_line})",
            wanted="a folder, a hub id, or toy:NAME with NAME one of " + ", ".join(families.BUILT_IN),
            consequence="nothing was counted",
        ) from error


def read_processor(
    processor: Any,
    family: str | None = None,
    choice: TokenizerChoice = "auto",
    template_options: Mapping[str, Any] = NO_OPTIONS,
) -> ProcessorFacts:
    """Read a processor for its family, found by the processor's class name unless it is given."""
    if choice not in TOKENIZERS:
        raise UnknownName(kind="tokenizer", name=str(choice), known=TOKENIZERS, where="Loader")
    kind = type(processor).__name__
    tokenizer = _tokenizer(processor)
    chosen = families.find(family) if family else families.read_off(processor)
    if tokenizer.pad_token_id is None:
        raise ConfigError(
            found=f"no pad token on the tokenizer of {kind}",
            wanted="one, so that padding is not mistaken for text",
            consequence="set tokenizer.pad_token",
        )
    media = _known_media(tokenizer, chosen)
    template = processor.chat_template or tokenizer.chat_template
    tokeniser = _tokeniser(tokenizer, chosen, media, template, choice, template_options, where=kind)
    geometries = {kind: medium.geometry(processor) for kind, medium in media.items()}
    return ProcessorFacts(
        processor=processor,
        family=chosen,
        tokeniser=tokeniser,
        geometries=geometries,
        three_way=_three_way(processor, chosen),
        pad_token=tokenizer.pad_token_id,
        raw=_raw(processor, chosen, geometries),
        choice=choice,
        template_options=template_options,
    )


def _tokeniser(
    tokenizer: Any,
    family: Family,
    media: Mapping[MediaKind, Medium],
    template: str,
    choice: TokenizerChoice,
    options: Mapping[str, Any],
    *,
    where: str,
) -> Tokeniser:
    special = tokenizer.special_tokens_map
    render = Renderer(template, special, where=where, system_as_text=family.system_as_text, options=options)
    exact_encoder = tokenizer_encoder(tokenizer)
    fast_encoder = gigatoken_encoder(tokenizer, exact_encoder) if choice == "auto" else None
    return Tokeniser(
        render=render,
        encode_texts=fast_encoder or exact_encoder,
        turns=family.turns,
        media=media,
        pads=tuple({int(tokenizer.convert_tokens_to_ids(medium.pad)) for medium in media.values()}),
        token_types=family.token_types,
        find_spoken=_spoken_finder(template, tokenizer, family, options),
    )


def read_layers(family: Family, model_config: Any, attention: Attention) -> Mapping[str, LayerSight] | None:
    """What the kinds of layers of a model see, where a mask must say it; `None` where one mask is right for all."""
    if family.layers is None or attention == "positions":
        return None
    if model_config is None:
        raise ConfigError(
            found=f"attention={attention!r} for {family.title} without model_config",
            wanted="the model's configuration (model.config), which knows its windows",
            consequence="its layers need masks of more than one kind, or windows; attention='positions' needs none",
        )
    layers = family.layers(model_config.get_text_config())
    if attention == "varlen" and any(layer.both_ways for layer in layers.values()):
        raise ConfigError(
            found=f"attention='varlen' for {family.title}, whose pictures are seen both ways",
            wanted="attention='positions' or 'mask'",
            consequence="boundaries of documents cannot say that; a picture's tokens would see only the past",
        )
    return layers


def _tokenizer(processor: Any) -> Any:
    try:
        return processor.tokenizer
    except AttributeError as error:
        raise ConfigError(
            found=f"a {type(processor).__name__} without a tokenizer",
            wanted="a whole processor, as AutoProcessor.from_pretrained gives it",
        ) from error


def _raw(processor: Any, family: Family, geometries: Mapping[MediaKind, Geometry]) -> RawMedia | None:
    raw = family.raw(processor) if family.raw is not None else None
    return raw if raw is not None and agrees(raw, processor, family.tensors, geometries) else None


def _three_way(processor: Any, family: Family) -> ThreeWay | None:
    if family.positions is None:
        return None
    return ThreeWay(
        merge=family.positions.merge(processor),
        tokens_per_second=family.positions.tokens_per_second,
        fractional=family.positions.fractional,
        after=family.positions.after,
    )


def _spoken_finder(
    template: str, tokenizer: Any, family: Family, options: Mapping[str, Any]
) -> Callable[[Conversation, str], list[tuple[int, int]]] | None:
    """For a family that nobody declared, a template that says itself what the assistant says is believed."""
    if family.name != READ_OFF or not has_generation_blocks(template):
        return None
    return generation_finder(
        template,
        tokenizer.special_tokens_map,
        closing=family.turns.closing,
        system_as_text=family.system_as_text,
        options=options,
    )


def _known_media(tokenizer: Any, family: Family) -> Mapping[MediaKind, Medium]:
    """The media whose pads the tokenizer knows. An older model of a family may lack some; with none it is another's."""

    def known(token: str) -> bool:
        found = tokenizer.convert_tokens_to_ids(token)
        return found is not None and found != tokenizer.unk_token_id

    media = {kind: medium for kind, medium in family.media.items() if known(medium.pad)}
    if family.media and not media:
        pads = " or ".join(repr(medium.pad) for medium in family.media.values())
        raise ConfigError(found=f"a tokenizer without {pads}", wanted=f"a tokenizer of {family.title}")
    return media
