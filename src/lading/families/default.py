"""A family for a processor that nobody declared, read off the processor itself.

Nothing is guessed from one look: turn markers are what the chat template writes around words it was given, and what the
rows of a tensor count is seen by showing the processor two blank pictures, alone and together. What cannot be told
apart this way is refused. The result is as exact as a declared family, and slower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any

from lading.errors import ConfigError
from lading.family import READ_OFF, Family, Medium, TurnStyle
from lading.fields import Field, MediaKind
from lading.media.pixels import processor_tensors
from lading.media.probe import Answer, Probe
from lading.private_names import image_processing, processor_options
from lading.records import ImageSize, Role, Size

WORDS = ("quayone", "quaytwo", "quaythree", "quayfour", "quayfive")
"""Words a template is asked to write. They are in no template."""
TOKEN_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids")
SIZES = (ImageSize(height=64, width=96), ImageSize(height=300, width=130))


def derive(processor: Any) -> Family:
    """The family of a processor with a chat template."""
    turns = derive_turns(partial(_rendered, processor))
    shown = _show_pictures(processor)
    media: dict[MediaKind, Medium] = {}
    if shown is not None:
        media["image"] = Medium(
            mark=shown.mark,
            pad=shown.pad,
            geometry=lambda own: Probe(kind="image", pad=shown.pad, ask=_asker(own, shown)),
        )
    types = next((name for name in TOKEN_INPUTS[2:] if shown is not None and name in shown.alone[0]), None)
    return Family(
        name=READ_OFF,
        title=f"{type(processor).__name__} (not declared)",
        processors=(type(processor).__name__,),
        models=(),
        turns=turns,
        media=media,
        fields=shown.fields if shown is not None else {},
        tensors=processor_tensors,
        token_types=types,
    )


def describe(family: Family) -> str:
    """What was assumed, in one line."""
    turns, media = family.turns, ", ".join(f"{kind} at {medium.mark!r}" for kind, medium in family.media.items())
    fields = ", ".join(f"{name} by {field.axis}" for name, field in family.fields.items())
    return (
        f"answers between {turns.open('assistant')!r} and {turns.closing!r}; media: {media or 'none'};"
        f" tensors: {fields or 'none'}; plain positions for each document"
    )


def derive_turns(render: Callable[..., str]) -> TurnStyle:
    """The markers a template writes around turns.

    >>> def template(*roles, prompt=False):
    ...     turns = [f"[{role}]{word}[/]" for role, word in zip(roles, WORDS)]
    ...     return "".join(turns) + ("[assistant]" if prompt else "")
    >>> style = derive_turns(template)
    >>> style.open("assistant"), style.open("user"), style.closing
    ('[assistant]', '[user]', '[/]')
    """
    talk = render("user", "assistant", "user", "assistant")
    _, to_answer, to_question, _, after = _around(talk, 4)
    closing = _common(to_question, after)
    asked = _around(render("user"), 1)[1]
    prompt = _around(render("user", prompt=True), 1)[1].removeprefix(asked)
    opening = prompt if prompt and to_answer.endswith(prompt) else to_answer.removeprefix(asked)
    if not closing.rstrip() or not opening:
        raise ConfigError(
            found=f"a chat template that writes {to_answer!r} before an answer and {after!r} behind it",
            wanted="markers on both sides",
            consequence="what the assistant says could not be told from the rest; declare a family",
        )
    openings: dict[Role, str] = {"assistant": opening, "user": to_question.removeprefix(closing)}
    with_system = render("system", "user", "assistant")
    if WORDS[0] in with_system:
        openings["system"] = with_system.partition(WORDS[0])[0]
    # A space behind an opening may depend on what follows it: a picture often has none in front.
    openings = {role: text.rstrip(" ") for role, text in openings.items()}
    return TurnStyle(opening="<{role}>", closing=closing.rstrip(), openings=openings)


def _around(text: str, words: int) -> list[str]:
    """What stands before, between and behind the first so many words."""
    pieces = []
    for word in WORDS[:words]:
        before, found, text = text.partition(word)
        if not found:
            raise ConfigError(
                found="a chat template that leaves words of a message out", wanted="one that writes what is said"
            )
        pieces.append(before)
    return [*pieces, text]


def _common(one: str, other: str) -> str:
    return "".join(first for first, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _rendered(processor: Any, *roles: str, prompt: bool = False) -> str:
    template = processor.chat_template or processor.tokenizer.chat_template
    if not template:
        raise ConfigError(
            found=f"a {type(processor).__name__} without a chat template",
            wanted="one, or a declared family",
            consequence="set processor.chat_template",
        )
    messages = [
        {"role": role, "content": [{"type": "text", "text": word}]} for role, word in zip(roles, WORDS, strict=False)
    ]
    return str(processor.apply_chat_template(messages, chat_template=template, add_generation_prompt=prompt))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shown:
    """What a processor made of two blank pictures, alone and together."""

    mark: str
    pad: str
    alone: tuple[Mapping[str, Any], ...]
    fields: Mapping[str, Field]


def _show_pictures(processor: Any) -> _Shown | None:
    # Seen at once: a processor without an image token takes no pictures.
    mark = getattr(processor, "image_token", None)
    if mark is None:
        return None
    alone = tuple(_processed(processor, mark, [size]) for size in SIZES)
    together = _processed(processor, mark, SIZES)
    names = [name for name in together if name not in TOKEN_INPUTS]
    fields = {
        name: _field(name, [_shape(name, own, together) for own in alone], together[name].shape) for name in names
    }
    ids = together["input_ids"][0].tolist()
    pad = max((token for token in processor.image_token_ids if token is not None), key=ids.count)
    return _Shown(mark=mark, pad=processor.tokenizer.convert_ids_to_tokens(pad), alone=alone, fields=fields)


def _shape(name: str, own: Mapping[str, Any], together: Mapping[str, Any]) -> Sequence[int]:
    """A tensor that a picture does not have (no crops, say) is one without rows."""
    return own[name].shape if name in own else (0, *together[name].shape[1:])


def _processed(processor: Any, mark: str, sizes: Sequence[ImageSize]) -> Mapping[str, Any]:
    blanks = [[_blank(size) for size in sizes]]
    made: Mapping[str, Any] = processor(text=[mark * len(sizes)], images=blanks, return_tensors="pt")
    return made


def _blank(size: ImageSize) -> Any:
    from PIL import Image

    return Image.new("RGB", (size.width, size.height))


def _field(name: str, alone: Sequence[Sequence[int]], together: Sequence[int]) -> Field:
    """What grew when two pictures were shown together instead of alone."""
    first, second = alone
    axes = [dim for dim, size in enumerate(together) if size == first[dim] + second[dim]]
    others = [
        dim for dim, size in enumerate(together) if size == max(first[dim], second[dim]) != min(first[dim], second[dim])
    ]
    if len(together) == 1 and list(together) == list(first) == list(second) == [1]:
        return Field(axis="image_group")
    if len(axes) != 1 or len(others) > 1:
        raise ConfigError(
            found=f"{name} of shapes {[list(shape) for shape in (*alone, together)]} for two pictures and both",
            wanted="one axis that grows with the pictures",
            consequence="its rows could not be told apart; declare a family",
        )
    whole = first[axes[0]] == second[axes[0]] == 1
    return Field(axis="image" if whole else "image_patch", dim=axes[0], stretch=others[0] if others else None)


def _asker(processor: Any, shown: _Shown) -> Callable[[tuple[Size, ...]], Answer]:
    options, process = processor_options(processor)["images_kwargs"], image_processing(processor)
    ragged = [
        (name, field) for name, field in shown.fields.items() if field.unit == "patch" or field.stretch is not None
    ]

    def rows(size: ImageSize) -> int:
        if not ragged:
            return 1
        name, field = ragged[0]
        made = _processed(processor, shown.mark, [size])
        return int(made[name].shape[field.dim if field.stretch is None else field.stretch]) if name in made else 0

    def ask(sizes: tuple[Size, ...]) -> Answer:
        own = [size for size in sizes if isinstance(size, ImageSize)]
        _, texts = process([[_blank(size) for size in own]], **options)
        return texts, [rows(size) for size in own]

    return ask
