"""Clips that are heard as well as seen: frames and sound in turn, as Qwen3-Omni's own processor and model have it."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lading import toy
from lading.encode import Encoder
from lading.errors import SkipSample
from lading.loader import load_processor
from lading.media import video
from lading.media.geometry.sounds import interleave
from lading.packing import build_pack, collate_packs
from lading.records import Encoded, MediaPart
from lading.toy.corpus import draw_clip
from lading.vlm.collate_fns import _talks, qwen3_omni_collate_fn
from tests.support.alone import loss_alone, losses_packed
from tests.support.shared import real_processor


@given(st.lists(st.floats(0, 9), min_size=1, max_size=6), st.integers(1, 5), st.integers(1, 40))
def test_frames_and_sound_stand_as_a_walk_over_tokens_would_put_them(gaps: list[float], each: int, sounds: int) -> None:
    times = np.cumsum([0.0, *gaps]).tolist()
    seen = [time for time in times for _ in range(each)]
    walked: list[bool] = []
    frame = heard = 0
    while frame < len(seen) and heard < sounds:
        audible = seen[frame] > heard
        walked.append(audible)
        heard, frame = heard + audible, frame + (not audible)
    walked += [False] * (len(seen) - frame) + [True] * (sounds - heard)
    turns = interleave(times, each, sounds)
    assert [audible for audible, count in turns for _ in range(count)] == walked
    assert all(one[0] != other[0] for one, other in pairwise(turns))


def add_sound(path: Path, seconds: float) -> Path:
    """The same clip with a tone beside it."""
    import av

    louder = path.with_name("heard.mp4")
    with av.open(str(path)) as source, av.open(str(louder), "w") as target:
        picture = target.add_stream_from_template(source.streams.video[0])
        sound = target.add_stream("aac", rate=16_000, layout="mono")
        for packet in source.demux(source.streams.video[0]):
            if packet.dts is not None:
                packet.stream = picture
                target.mux(packet)
        tone = (np.sin(np.arange(int(16_000 * seconds)) / 7) * 0.4).astype(np.float32)
        for start in range(0, len(tone) - 1024, 1024):
            frame = av.AudioFrame.from_ndarray(tone[None, start : start + 1024], format="fltp", layout="mono")
            frame.sample_rate, frame.pts = 16_000, start
            target.mux(sound.encode(frame))
        target.mux(sound.encode(None))
    return louder


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clip") / "seen.mp4"
    draw_clip(path, "red", "circle", frames=32)
    return add_sound(path, 4.0)


def conversation(path: Path, **options: Any) -> list[dict[str, Any]]:
    part = {"type": "video", "video": str(path), **options}
    return [
        {"role": "user", "content": [part, {"type": "text", "text": "What do you hear?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "A hum."}]},
    ]


def encoded(path: Path, processor: Any) -> tuple[Encoder, Encoded]:
    encoder = Encoder.of(processor)
    return encoder, encoder.encode(_talks([conversation(path, use_audio_in_video=True)])[0])


def check(path: Path, processor: Any, model: Any) -> None:
    encoder, sample = encoded(path, processor)
    footprint = sample.document.media[0].footprint
    part = MediaPart(kind="video", reference=str(path), options={"use_audio_in_video": True})
    frames = torch.from_numpy(video.decode(part, footprint.frames)).permute(0, 3, 1, 2)
    messages = [
        {**turn, "content": [{k: v for k, v in p.items() if k in ("type", "text")} for p in turn["content"]]}
        for turn in conversation(path)
    ]
    own = processor(
        text=[processor.apply_chat_template(messages)],
        videos=[frames],
        audio=[video.decode_sound(part, 16_000)],
        fps=2 / footprint.seconds,
        do_sample_frames=False,
        use_audio_in_video=True,
        return_tensors="pt",
    )
    assert sample.tensors["input_ids"].tolist() == own["input_ids"][0].tolist()
    for name in ("pixel_values_videos", "video_grid_thw", "input_features", "feature_attention_mask"):
        assert torch.equal(sample.tensors[name], own[name]), name
    positions, _ = model.get_rope_index(
        input_ids=own["input_ids"],
        video_grid_thw=own["video_grid_thw"],
        attention_mask=own["attention_mask"],
        use_audio_in_video=True,
        audio_seqlens=own["feature_attention_mask"].sum(-1),
        second_per_grids=torch.tensor([footprint.seconds]),
    )
    facts = encoder.facts
    pack = build_pack([sample, sample], fields=facts.family.table, three_way=facts.three_way)
    assert torch.allclose(
        pack.tensors["position_ids"][1:, : sample.document.tokens], positions[:, 0].float(), atol=1e-4
    )
    batch = collate_packs([pack], fields=facts.family.table, pad_token=facts.pad_token)
    alone = loss_alone(model, sample, processor, use_audio_in_video=True)
    assert losses_packed(model, batch) == pytest.approx([alone, alone], abs=1e-5)


def test_tokens_positions_and_loss_are_the_models_own(clip: Path) -> None:
    processor = toy.processor("qwen3_omni")
    check(clip, processor, toy.model("qwen3_omni").eval())


def test_the_collate_function_hears_when_asked(clip: Path) -> None:
    processor = toy.processor("qwen3_omni")
    silent = qwen3_omni_collate_fn([{"conversation": conversation(clip)}], processor)
    heard = qwen3_omni_collate_fn([{"conversation": conversation(clip)}], processor, use_audio_in_video=True)
    pad = processor.tokenizer.convert_tokens_to_ids("<|audio_pad|>")
    assert "input_features" not in silent
    assert heard["n_audios_per_sample"].tolist() == [1]
    frames = int(heard["feature_attention_mask"].sum())
    assert int((heard["input_ids"] == pad).sum()) == (frames // 100) * 13 + math.ceil((frames % 100) / 8)


def test_a_clip_without_sound_is_named(tmp_path: Path) -> None:
    path = tmp_path / "silent.mp4"
    draw_clip(path, "red", "circle", frames=16)
    with pytest.raises(SkipSample, match="no sound track"):
        encoded(path, toy.processor("qwen3_omni"))


@pytest.mark.slow
@pytest.mark.xdist_group("real-media-qwen3_omni")
def test_the_real_processor_agrees(clip: Path) -> None:
    processor = load_processor(real_processor("qwen3_omni"))
    check(clip, processor, toy.fitted("qwen3_omni", processor).eval())
