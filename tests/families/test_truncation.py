"""The truncation clause of the contract, over every family: what is left of an over-long sample is what its processor
makes of the shorter conversation, and its media lose neither tokens nor pixels.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

from lading.fields import IGNORE_INDEX
from lading.lengths import count_lengths
from lading.loader import ProcessorFacts
from lading.records import Encoded
from lading.samples.samples import fit
from lading.tensors import split
from tests.families.talks import clip_bytes, own_output, sound_bytes
from tests.families.targets import TARGETS, facts_of
from tests.support.shorter import Turn, samples_of, shorter_talks

pytestmark = pytest.mark.parametrize("target", TARGETS)


def _write_media(facts: ProcessorFacts, folder: Path) -> list[dict[str, str]]:
    """Pictures of several shapes, and a clip or a sound where the family takes one."""
    for name, (width, height) in {"wide": (200, 60), "tall": (64, 150), "small": (80, 80)}.items():
        Image.new("RGB", (width, height), "teal").save(folder / f"{name}.png")
    more = {"type": "image", "image": "small.png"}
    if "video" in facts.geometries:
        (folder / "clip.mp4").write_bytes(clip_bytes(40))
        more = {"type": "video", "video": "clip.mp4"}
    elif "audio" in facts.geometries:
        (folder / "hum.wav").write_bytes(sound_bytes(1.3))
        more = {"type": "audio", "audio": "hum.wav"}
    return [{"type": "image", "image": "wide.png"}, {"type": "image", "image": "tall.png"}, more]


def _long_talk(media: list[dict[str, str]], *, shown: bool) -> list[Turn]:
    """Six turns and a question that nobody answers; with `shown`, an answer shows a picture."""
    wide, tall, more = media
    return [
        ("user", (wide, "What do you see in this picture?")),
        ("assistant", ("A wide and teal one.",)),
        ("user", ("And what is in the next?", more)),
        ("assistant", ("Something else.", tall, "This one is tall.", " It is teal too.") if shown else ("A thing.",)),
        ("user", (tall, "Which of them do you like?")),
        ("assistant", ("The last one, for its colour and its shape.",)),
        ("user", ("Why is that so, and would you say the same of any other colour?",)),
    ]


def _check_equal(encoded: Encoded, own: dict[str, torch.Tensor], facts: ProcessorFacts) -> None:
    assert encoded.tensors["input_ids"].tolist() == own["input_ids"][0].tolist()
    for name in facts.family.fields:
        assert name in encoded.tensors or name not in own
        if name in own:
            assert torch.equal(encoded.tensors[name], own[name])
    if facts.family.token_types:
        assert torch.equal(encoded.tensors[facts.family.token_types], own[facts.family.token_types][0])


@pytest.mark.parametrize("shown", [False, True], ids=["asked", "answered"])
def test_truncation_keeps_what_the_processor_makes_of_the_shorter_talk(
    target: tuple[str, str], shown: bool, tmp_path: Path
) -> None:
    facts = facts_of(target)
    samples = samples_of(facts, tmp_path, _long_talk(_write_media(facts, tmp_path), shown=shown))
    counted = count_lengths(samples)
    if counted.dropped:
        assert shown, counted.dropped
        pytest.skip(f"its template shows no picture in an answer: {counted.dropped[0].detail}")
    owns = [own_output(facts, talk) for talk in shorter_talks(samples.conversation(0))]
    assert len(owns) == (5 if shown else 3)
    lengths = [own["input_ids"].shape[1] for own in owns]
    for limit in sorted({length - less for length in lengths for less in (0, 1)}):
        fitting = next((own for own, length in zip(owns, lengths, strict=True) if length <= limit), None)
        cut, table = fit(samples, counted, limit=limit, too_long="truncate")
        if fitting is None:
            assert [entry.reason for entry in table.dropped] == ["too_long"]
            continue
        encoded = cut.encode(0, counted=int(table.tokens[0]))
        assert isinstance(encoded, Encoded)
        _check_equal(encoded, fitting, facts)
        assert bool((encoded.tensors["labels"] != IGNORE_INDEX).any())
        assert table.label_tokens[0] == int((encoded.tensors["labels"] != IGNORE_INDEX).sum())
        pads = torch.isin(encoded.tensors["input_ids"], torch.tensor(facts.tokeniser.pads))
        assert int(pads.sum()) == sum(sum(span.footprint.runs) for span in encoded.document.media)
        split(encoded.tensors, [encoded.document], facts.family.table)
