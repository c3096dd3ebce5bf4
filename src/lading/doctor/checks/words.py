"""What stands in the text of messages and should not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lading.doctor.kinds import Problem
from lading.doctor.reading import Read, shown
from lading.records import TextPart

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


class Markers:
    """Finds the markers of a chat template."""

    def __init__(self, markers: Sequence[str]) -> None:
        self.markers = tuple(markers)
        # The longest first, so that a marker is found whole.
        alternatives = "|".join(re.escape(marker) for marker in sorted(markers, key=len, reverse=True))
        self._pattern = re.compile(alternatives) if alternatives else None
        self._firsts = tuple({"<", "[", *(marker[0] for marker in markers if marker)})

    def __reduce__(self) -> tuple[object, ...]:
        return (Markers, (self.markers,))

    def possible(self, text: str) -> bool:
        """Whether a text has the first letter of any mark."""
        return any(first in text for first in self._firsts)

    def found(self, text: str) -> str | None:
        """The first marker in a text."""
        match = self._pattern.search(text) if self._pattern is not None else None
        return match.group() if match else None


def words(seen: Read, markers: Markers) -> Iterator[Problem]:
    """Each kind once, with the first place where it stands."""
    kinds = set()
    for place, text in _texts(seen):
        for problem in _problems(place, text, markers):
            if problem.kind not in kinds:
                kinds.add(problem.kind)
                yield problem


def _problems(place: int, text: str, markers: Markers) -> Iterator[Problem]:
    if control := _CONTROL.search(text):
        yield Problem("control_characters", f"U+{ord(control.group()):04X} in turn {place}")
    # Plain looks first: most text is ASCII without brackets, and patterns are slow.
    if not text.isascii() and (garbled := _GARBLED.search(text)):
        yield Problem("garbled_text", f"{_around(text, garbled)} in turn {place}")
    if markers.possible(text):
        yield from _marks(place, text, markers)


def _marks(place: int, text: str, markers: Markers) -> Iterator[Problem]:
    marker = markers.found(text)
    if marker is not None:
        yield Problem("template_marker", f"{marker} in turn {place}")
    if (foreign := _FOREIGN.search(text)) and foreign.group() != marker:
        yield Problem("foreign_mark", f"{shown(foreign.group())} in turn {place}")


def _texts(seen: Read) -> Iterator[tuple[int, str]]:
    for place, message in enumerate(seen.conversation.messages, start=1):
        for part in message.parts:
            if isinstance(part, TextPart):
                yield place, part.text


def _around(text: str, match: re.Match[str]) -> str:
    return shown(text[max(0, match.start() - 12) : match.end() + 12])
