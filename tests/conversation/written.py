"""The same conversations, written down in every format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lading.conversation import FORMATS
from lading.conversation.formats import NAMED, PREFERENCE
from lading.records import MediaPart, Message, Part, TextPart

Talk = Sequence[tuple[str, Sequence[str], str]]
"""Turns: a role, its pictures, and then its words."""

TALKS: dict[str, Talk] = {
    "a picture": [("user", ["ada.png"], "Who is this?"), ("assistant", [], "Ada.")],
    "text alone": [("user", [], "Anyone?"), ("assistant", [], "No.")],
    "two pictures": [("user", ["ada.png", "bob.png"], "Who are they?"), ("assistant", [], "Ada and Bob.")],
    "several turns": [
        ("user", ["ada.png"], "Who is this?"),
        ("assistant", [], "Ada."),
        ("user", [], "Since when?"),
        ("assistant", [], "1815."),
    ],
}


def messages_of(talk: Talk, folder: Any) -> tuple[Message, ...]:
    """What every format has to give."""
    return tuple(
        Message(
            role=role,  # type: ignore[arg-type]  # the words above are roles
            parts=(*_pictures(shown, folder), TextPart(text=said)),
        )
        for role, shown, said in talk
    )


def _pictures(names: Sequence[str], folder: Any) -> list[Part]:
    return [MediaPart(kind="image", reference=str(folder / name)) for name in names]


def pictures(talk: Talk) -> list[str]:
    return [name for _, shown, _ in talk for name in shown]


def sharegpt(talk: Talk) -> dict[str, Any]:
    names = {"user": "human", "assistant": "gpt"}
    turns = [{"from": names[role], "value": "<image>" * len(shown) + said} for role, shown, said in talk]
    return {"conversations": turns, "images": pictures(talk)}


def sharegpt_roles(talk: Talk) -> dict[str, Any]:
    turns = [{"role": role, "content": "<image>" * len(shown) + said} for role, shown, said in talk]
    return {"messages": turns, "images": pictures(talk)}


def llava(talk: Talk) -> dict[str, Any]:
    names = {"user": "human", "assistant": "gpt"}
    turns = [{"from": names[role], "value": "<image>\n" * len(shown) + said} for role, shown, said in talk]
    shown = pictures(talk)
    own = {"image": shown[0] if len(shown) == 1 else shown} if shown else {}
    return {"id": "000000033471", **own, "conversations": turns}


def openai(talk: Talk) -> dict[str, Any]:
    def content(shown: Sequence[str], said: str) -> list[dict[str, Any]]:
        media = [{"type": "image_url", "image_url": {"url": name, "detail": "high"}} for name in shown]
        return [*media, {"type": "text", "text": said}]

    return {"messages": [{"role": role, "content": content(shown, said)} for role, shown, said in talk]}


def _bare(talk: Talk) -> list[dict[str, Any]]:
    return [
        {"role": role, "content": [*({"type": "image"} for _ in shown), {"type": "text", "text": said}]}
        for role, shown, said in talk
    ]


def trl(talk: Talk) -> dict[str, Any]:
    return {"messages": _bare(talk), "images": pictures(talk)}


def trl_plain(talk: Talk) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": said} for role, _, said in talk], "images": pictures(talk)}


def prompt_completion(talk: Talk) -> dict[str, Any]:
    turns = _bare(talk)
    return {"prompt": turns[:-1], "completion": turns[-1:], "images": pictures(talk)}


def prompt_completion_text(talk: Talk) -> dict[str, Any] | None:
    (_, _, asked), (_, _, answered), *more = talk
    return None if more else {"prompt": asked, "completion": answered, "images": pictures(talk)}


def alpaca(talk: Talk) -> dict[str, Any]:
    marked = ["<image>" * len(shown) + said for _, shown, said in talk]
    before = [marked[place : place + 2] for place in range(0, len(marked) - 2, 2)]
    return {
        "instruction": marked[-2], "input": "", "output": marked[-1], "history": before, "images": pictures(talk),
    }  # fmt: skip


def question_answer(talk: Talk) -> dict[str, Any] | None:
    (_, shown, asked), (_, _, answered), *more = talk
    return None if more else {"image": list(shown), "question": asked, "answer": answered}


def cauldron(talk: Talk) -> dict[str, Any]:
    words = [said for _, _, said in talk]
    pairs = [{"user": words[place], "assistant": words[place + 1]} for place in range(0, len(words), 2)]
    return {"images": pictures(talk), "texts": [{**pair, "source": "us"} for pair in pairs]}


WRITERS: dict[str, tuple[str, Callable[[Talk], dict[str, Any] | None]]] = {
    "sharegpt": ("sharegpt", sharegpt),
    "sharegpt by role": ("sharegpt", sharegpt_roles),
    "llava": ("llava", llava),
    "openai": ("openai", openai),
    "trl": ("trl", trl),
    "trl without parts": ("trl", trl_plain),
    "prompt_completion": ("prompt_completion", prompt_completion),
    "prompt_completion as text": ("prompt_completion", prompt_completion_text),
    "alpaca": ("alpaca", alpaca),
    "question_answer": ("question_answer", question_answer),
    "cauldron": ("cauldron", cauldron),
}
"""What it is called here, what it is, and how to write it; a talk that cannot be said in it is `None`."""

assert {name for name, _ in WRITERS.values()} == set(FORMATS) - {own.name for own in (PREFERENCE, *NAMED)}, (
    "every format that rows are recognised by is under the contract"
)
