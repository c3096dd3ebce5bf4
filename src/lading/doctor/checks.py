"""The checks of what a row says: the turns, their text, columns that nobody reads, and where the files of media lie.

Each is a function of a row that could be read. To add one: write it, put it into `CHECKS`, and give each kind it finds
a line in `lading.doctor.kinds`. Media are checked in `lading.doctor.media`, what needs a processor in
`lading.doctor.rows`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from lading.conversation.keys import REJECTED_KEYS, given, kind_of, obeyed_by
from lading.conversation.layout import MEDIA_COLUMNS, MESSAGE_COLUMNS
from lading.doctor.kinds import Problem
from lading.doctor.media import named_content
from lading.doctor.reading import Read, shown
from lading.fields import MediaKind
from lading.media.content import HEAD, MEDIUM, content_of
from lading.media.opening import files_of, lies_below, name_of
from lading.records import MediaPart, TextPart

TAKE_TURNS = ("user", "assistant")
"""Roles that do not follow themselves. Several tools may answer one after the other."""
USUAL_COLUMNS: Mapping[str, MediaKind] = {name: kind for kind, names in MEDIA_COLUMNS.items() for name in names}
"""Columns that are read for media, if a format reads any."""
WELL_KNOWN = (
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_sep|>", "<|im_middle|>", "<|im_user|>", "<|im_assistant|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>", "<|audio_pad|>", "<|media_pad|>"),
    *("<start_of_turn>", "<end_of_turn>", "<|turn>", "<turn|>", "<bos>", "<eos>", "<start_of_image>", "<end_of_image>"),
    *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|end_of_text|>"),
    *("[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>"),
    *("<IMG_CONTEXT>", "<end_of_utterance>", "<fake_token_around_image>", "<|endofprompt|>", "<|eom_id|>"),
)
"""Markers of chat templates, for when no processor says which are its own."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_HIGH = "[\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
"""A byte from 80 to BF, as those who take UTF-8 for Latin-1 or Windows-1252 read it."""
_GARBLED = re.compile(
    "\ufffd"  # what a decoder writes for what it cannot read
    f"|[ÂÃ]{_HIGH}"  # é as Ã©
    f"|â[\x80-\x9f€][{_HIGH[1:-1]}]"  # ’ as â€™
    f"|ðŸ{_HIGH}|ð\x9f{_HIGH}"  # pictures of faces
    f"|(?:[ÐÑ]{_HIGH}){{3}}"  # Cyrillic
)
_FOREIGN = re.compile(
    r"(?<!\w)<(?:image|video|audio)>"  # ours, but beside typed media, where it is a word; or in other letters
    r"|<\|(?:image|video|audio)(?:_\d+)?\|>"
    r"|<(?:image|video|audio)[ _-]?(?:\d+|placeholder|here|token)>"
    r"|<(?:images|videos|audios|speech)>"
    r"|<img>[^<>\n]{0,300}</img>"
    r"|(?-i:\[IMG\])",
    re.IGNORECASE,
)


def order(seen: Read) -> Iterator[Problem]:
    """Roles that stand where they do not belong."""
    roles = [message.role for message in seen.conversation.messages]
    speakers = [role for role in roles if role != "system"]
    if speakers[0] == "assistant":
        yield Problem("assistant_first", f"{speakers[0]} speaks first")
    if "system" in roles[1:]:
        yield Problem("system_in_middle", f"system as turn {roles.index('system', 1) + 1} of {len(roles)}")
    for place, (one, other) in enumerate(pairwise(roles), start=1):
        if one == other and one in TAKE_TURNS:
            yield Problem("repeated_role", f"{one} in turns {place} and {place + 1}")
            break
    if speakers[-1] == "user":
        yield Problem("unanswered_turn", f"the last of {len(roles)} turns is a question")


def emptiness(seen: Read) -> Iterator[Problem]:
    """Messages without text and without a medium."""
    kinds = {"user": "empty_question", "assistant": "empty_answer"}
    found = set()
    for place, message in enumerate(seen.conversation.messages, start=1):
        kind = kinds.get(message.role)
        if kind is None or kind in found:
            continue
        if not any(isinstance(part, MediaPart) or part.text.strip() for part in message.parts):
            found.add(kind)
            yield Problem(kind, f"turn {place} is empty")


def unread(seen: Read) -> Iterator[Problem]:
    """A column of media, files or bytes, in a row that shows no medium of their kind.

    Where the row does show some, such a column is taken for a note (where a picture came from, say).
    """
    shows = {part.kind for part in seen.conversation.media}
    for name, value in seen.value.items():
        if name in MESSAGE_COLUMNS or name in seen.layout.columns.values():
            continue
        kind = _media_kind(value)
        if kind is not None and USUAL_COLUMNS.get(name, kind) not in shows:
            yield Problem("unread_media_column", f"column {name!r} with {_described(value)}")


def _media_kind(value: Any) -> MediaKind | None:
    """What media a value names or holds, if it does."""
    kinds = {_kind_of_one(one) for one in (value if isinstance(value, (list, tuple)) else [value])}
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of_one(value: Any) -> MediaKind | None:
    if isinstance(value, Mapping):
        # As `datasets` stores media.
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes):
        return MEDIUM.get(content_of(value[:HEAD]) or "")
    if not isinstance(value, str) or len(value) > 1000 or "\n" in value or "://" in value[:16] or "." not in value:
        return None
    return MEDIUM.get(named_content(value) or "")


def _described(value: Any) -> str:
    """The value for a message; of bytes only what they are."""
    if isinstance(value, (list, tuple)) and not all(isinstance(one, str) for one in value):
        return f"{_described(value[0])} (and {len(value) - 1} more)" if len(value) > 1 else _described(value[0])
    if isinstance(value, Mapping):
        return _described(value.get("bytes") or value.get("path"))
    return f"{len(value):,} bytes of {content_of(value[:HEAD])}" if isinstance(value, bytes) else shown(str(value))


def unobeyed(seen: Read) -> Iterator[Problem]:
    """What a row says about training that a run does not do unless it is asked to, and keys that nobody reads."""
    media = {name for name, value in seen.value.items() if _media_kind(value) is not None}  # said by `unread`
    unknown = [key for key in seen.conversation.unread if kind_of(key) == "unread" and key not in media]
    how_to_train = [key for key in seen.conversation.unread if kind_of(key) == "how_to_train"]
    weights = {message.weight for message in seen.conversation.messages if message.role == "assistant"} - {0.0, 1.0}
    disobeyed = [f"{key}: {obeyed_by(key)}" for key in how_to_train]
    disobeyed += [f"a weight of {min(weights):g}: loss_weights=True, and a loss that uses it"] if weights else []
    if disobeyed:
        yield Problem("disobeyed_key", ", ".join(disobeyed))
    if unknown:
        yield Problem("unread_key", ", ".join(unknown))
    if seen.layout.format == "preference" or any(given(seen.value.get(name)) for name in REJECTED_KEYS):
        yield Problem("preference_row", "a chosen and a rejected answer")


def outside_media_folder(seen: Read) -> Iterator[Problem]:
    """A file outside the media folder, every link followed: usual in one's own data, not in a stranger's."""
    if seen.layout.media_dir is None or seen.layout.media_roots:
        return
    folder = [str(seen.layout.media_dir)]
    for part in seen.conversation.media:
        if not all(lies_below(path, folder) for path in files_of(part)):
            yield Problem("outside_media_folder", f"{part.kind} {name_of(part)}, outside {folder[0]}")


CHECKS: tuple[Callable[[Read], Iterator[Problem]], ...] = (
    order,
    emptiness,
    unread,
    unobeyed,
    outside_media_folder,
)
"""Checks of a row by itself; `words` is beside them, because it needs the markers."""


class Markers:
    """The markers of a chat template, as a search over texts."""

    def __init__(self, markers: Sequence[str]) -> None:
        # The longest first, so that a marker is found whole.
        alternatives = "|".join(re.escape(marker) for marker in sorted(markers, key=len, reverse=True))
        self._pattern = re.compile(alternatives) if alternatives else None
        self._firsts = tuple({"<", "[", *(marker[0] for marker in markers if marker)})

    def possible(self, text: str) -> bool:
        """Whether a text has the first letter of any marker or media mark."""
        return any(first in text for first in self._firsts)

    def found(self, text: str) -> str | None:
        """The first marker in a text."""
        match = self._pattern.search(text) if self._pattern is not None else None
        return match.group() if match else None


def words(seen: Read, markers: Markers) -> Iterator[Problem]:
    """Each kind once, with the first place where it stands."""
    kinds = set()
    for place, message in enumerate(seen.conversation.messages, start=1):
        texts = (part.text for part in message.parts if isinstance(part, TextPart))
        for problem in (problem for text in texts for problem in _text_problems(place, text, markers)):
            if problem.kind not in kinds:
                kinds.add(problem.kind)
                yield problem


def _text_problems(place: int, text: str, markers: Markers) -> Iterator[Problem]:
    if control := _CONTROL.search(text):
        yield Problem("control_characters", f"U+{ord(control.group()):04X} in turn {place}")
    # Cheap tests first: most text is ASCII without brackets, and patterns are slow.
    if not text.isascii() and (garbled := _GARBLED.search(text)):
        around = text[max(0, garbled.start() - 12) : garbled.end() + 12]
        yield Problem("garbled_text", f"{shown(around)} in turn {place}")
    if not markers.possible(text):
        return
    marker = markers.found(text)
    if marker is not None:
        yield Problem("template_marker", f"{marker} in turn {place}")
    if (foreign := _FOREIGN.search(text)) and foreign.group() != marker:
        yield Problem("foreign_mark", f"{shown(foreign.group())} in turn {place}")
