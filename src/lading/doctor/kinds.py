"""What can be found: every kind once, with its severity and what would happen in training.

An error costs the sample (or the run); a warning is trained on, but perhaps not as its author meant; a notice is only
worth knowing, and never makes the doctor fail. Where the loader
refuses a sample for the same thing, a kind has the name of the loader's `Reason`; where that name covers several faults
(`bad_row`, `corrupt_media`), there is a kind for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lading.records.samples import Severity

LOST = "The sample is left out of training."


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """One kind of finding. Law: `name` is unique, and `training` says what happens if nothing is done."""

    name: str
    severity: Severity
    training: str


def _table(*kinds: Kind) -> Mapping[str, Kind]:
    return {kind.name: kind for kind in kinds}


def _error(name: str, training: str = LOST) -> Kind:
    return Kind(name=name, severity="error", training=training)


def _warning(name: str, training: str) -> Kind:
    return Kind(name=name, severity="warning", training=training)


def _notice(name: str, training: str) -> Kind:
    return Kind(name=name, severity="notice", training=training)


KINDS = _table(
    # Files
    _error("missing_file", "The run does not start: a data file is not there."),
    _error("unreadable_file", "The run does not start: a data file cannot be read as a whole."),
    _error("empty_file", "The data set adds nothing; a run on it alone does not start."),
    _error("unknown_format", "The run does not start: the first rows of a data set fit no format."),
    # Rows
    _error(
        "disobeyed_key",
        "The run does not start: a key says how to train, and is not obeyed. `--ignore-key` trains without it.",
    ),
    _error(
        "preference_row",
        "The run does not start: which of two answers is better is no loss over tokens. `--preference chosen` trains on"
        " the chosen one.",
    ),
    _warning("thought_left_out", "The sample is trained on without the thought: the chat template leaves it out."),
    _notice("unread_key", "The sample is trained on; nobody reads what stands under this key."),
    _error("malformed_json"),
    _error("not_utf8", "The sample is left out of training: its bytes are not UTF-8, so nobody knows its text."),
    _error("not_an_object"),
    _error("unreadable_row"),
    _error(
        "unknown_columns",
        "The sample is left out: no column of it is known to hold a conversation. Where the first rows of a data set"
        " are all like this, the run does not start.",
    ),
    _warning(
        "unread_media_column", "The sample is trained on as text alone: the column that holds its media is not read."
    ),
    # Turns
    _error("empty_conversation"),
    _error("bad_message", "The sample is left out: a message lacks its role or content, or they are of another type."),
    _error("tool_calls", "The sample is left out: the chat template writes no tools."),
    _error("unknown_role", "The sample is left out; a tag in the meta file (user_tag …) can declare the role."),
    _error("no_assistant_turn", "The sample is left out: there is nothing to train on."),
    _warning(
        "repeated_role", "Two turns of one role follow each other; some chat templates refuse that, others join them."
    ),
    _warning("assistant_first", "The model learns an answer to nothing; some chat templates refuse that."),
    _warning("system_in_middle", "A system turn behind others: some chat templates refuse it, others move or drop it."),
    _warning("unanswered_turn", "The last question is read, but nothing is learnt from it."),
    _warning("empty_answer", "The model learns to end its turn at once."),
    _warning("empty_question", "The model learns an answer to an empty message."),
    # Text
    _error("half_character", "The sample is left out: a lone surrogate cannot be tokenised."),
    _warning(
        "garbled_text", "The model learns to read and write broken characters (a file was decoded wrongly before)."
    ),
    _warning("control_characters", "The model sees characters that nobody types (NUL and the like)."),
    _warning("template_marker", "The model sees a turn, or its end, where the author wrote text."),
    _warning("foreign_mark", "The mark of another format stays as text: no picture is shown in its place."),
    _error("placeholder_in_text"),
    # Media and marks
    _error("marks_without_media"),
    _error("media_without_marks"),
    _error("missing_media"),
    _error("empty_media"),
    _error("unsupported_media", "The sample is left out: the family takes no such medium (or it is not on disk)."),
    _error(
        "format_not_allowed",
        "The sample is left out: a file is opened only as a usual picture, clip or sound, whatever its name ends in.",
    ),
    _notice(
        "outside_media_folder",
        "The sample is trained on; its file lies outside the media folder, links followed, which media_roots can"
        " forbid.",
    ),
    _error("outside_media_roots", "The sample is left out: the file is outside the folders that media may come from."),
    _error("unreadable_medium"),
    _error("decode_timeout", "The sample is given up after the loader's decode_seconds, every time it comes."),
    _error("undecodable_media", "The header is fine, but decoding fails: the sample is lost in the middle of the run."),
    _warning("misnamed_media", "It is read by its content; tools that go by the name will stumble."),
    # Pictures
    _error("corrupt_picture"),
    _error("truncated_picture", "Its end is missing: the sample is lost, late in the run if its header is whole."),
    _warning("animated_picture", "Only its first frame is seen."),
    _warning(
        "deep_picture", "More than eight bits: 65535 becomes white, so that a scan of twelve bits is nearly black."
    ),
    _warning("tiny_picture", "It is blown up to the model's smallest size: the model sees a blur."),
    _warning("huge_picture", "Decoding it takes long and much memory, only to be scaled down."),
    _warning("extreme_shape", "Families squash such a thread, or refuse it (Qwen-VL beyond 200:1)."),
    _error("impossible_shape", "The sample is left out: the family's resize refuses the shape."),
    _warning("distorted_picture", "The family's resize changes the shape: things look twice as wide, or more."),
    # Clips and sounds
    _error("corrupt_clip"),
    _error(
        "truncated_clip", "The header is fine, but its end is missing: the sample is lost in the middle of the run."
    ),
    _error("empty_clip", "The sample is left out: the clip has no frames, or no clock."),
    _warning("short_clip", "A clip of one frame is a picture: nothing moves."),
    _error("corrupt_sound"),
    _error("empty_sound", "There is nothing to hear."),
    # With a processor
    _error("template_refused", "The sample is left out: the chat template refuses it, or leaves a turn out."),
    _error("no_label_tokens", "The sample is left out: no token of it would be learnt."),
    _error("too_long", "The sample is left out (or cut, with too_long='truncate')."),
    # The corpus as a whole
    _warning("duplicate_sample", "It is trained on twice, and may stand in training and validation data at once."),
    _warning(
        "duplicate_media", "The same content under two names; it may stand in training and validation data at once."
    ),
    _error("unexpected_error"),
)

NUMBERS = {name: number for number, name in enumerate(KINDS)}
"""The bit of each kind in a row's mask."""
assert len(KINDS) <= 64, "a row's mask has 64 bits"


def mask(severity: Severity) -> int:
    """The bits of all kinds of a severity."""
    return sum(1 << NUMBERS[name] for name, kind in KINDS.items() if kind.severity == severity)


@dataclass(frozen=True, slots=True)
class Problem:
    """What a check says: a kind's name, and what was found."""

    kind: str
    detail: str
