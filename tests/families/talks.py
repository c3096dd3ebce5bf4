"""Talks with media, and what transformers makes of one by itself: the truth the contract compares with."""

from __future__ import annotations

import io
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import soundfile
import torch
from PIL import Image

from lading.loader import Border
from lading.media import audio, video
from lading.media.probe import metadata
from lading.records import Conversation, MediaPart, Message, SampleKey, TextPart
from lading.tokenise.render import messages_for_template
from lading.toy.drawing import draw_clip


def picture(width: int, height: int, colour: str) -> MediaPart:
    return MediaPart(kind="image", reference=Image.new("RGB", (width, height), colour))


def make_talk(index: int, *messages: tuple[str, tuple[object, ...]]) -> Conversation:
    turns = tuple(
        Message(
            role=role,  # type: ignore[arg-type]
            parts=tuple(TextPart(text=part) if isinstance(part, str) else part for part in parts),  # type: ignore[misc]
        )
        for role, parts in messages
    )
    return Conversation(key=SampleKey(index=index, source="contract", where=f"talk {index}"), messages=turns)


@cache
def sound_bytes(seconds: float) -> bytes:
    buffer = io.BytesIO()
    samples = np.sin(np.arange(int(16_000 * seconds)) / 9).astype(np.float32) * 0.3
    soundfile.write(buffer, samples, 16_000, format="WAV")
    return buffer.getvalue()


@cache
def clip_bytes(frames: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.mp4"
        draw_clip(path, "red", "circle", frames=frames)
        return path.read_bytes()


def _opened(part: MediaPart) -> object:
    return Image.open(part.reference) if isinstance(part.reference, (str, Path)) else part.reference


def own_output(border: Border, talk: Conversation) -> dict[str, torch.Tensor]:
    """What transformers makes of a talk by itself, from the pictures to the tensors."""
    messages = messages_for_template(talk.messages, system_as_text=border.family.system_as_text)
    media = {kind: iter([part for part in talk.media if part.kind == kind]) for kind in ("image", "audio")}
    for message in messages:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "image":
                part["image"] = _opened(next(media["image"]))
            if part["type"] == "audio":
                part["audio"] = audio.decode(next(media["audio"]), 16_000)
    if any(part.kind == "video" for part in talk.media):
        return _own_with_clips(border, talk, messages)
    return border.processor.apply_chat_template(  # type: ignore[no-any-return]
        messages, tokenize=True, return_dict=True, return_tensors="pt", chat_template=template_of(border)
    )


def _own_with_clips(border: Border, talk: Conversation, messages: list[dict[str, object]]) -> dict[str, torch.Tensor]:
    """The same for clips, which transformers would decode with another library: the chosen frames are handed over."""
    text = border.processor.apply_chat_template(messages, chat_template=template_of(border))
    clips = [part for part in talk.media if part.kind == "video"]
    chosen = [border.geometries["video"].footprints([video.measure(clip)])[0].frames for clip in clips]
    pictures = [_opened(part) for part in talk.media if part.kind == "image"]
    omni = {"fps": len(chosen[0]) / video.measure(clips[0]).frames * 8.0} if border.family.name == "qwen3_omni" else {}
    first = border.processor.tokenizer.bos_token
    return border.processor(  # type: ignore[no-any-return]
        text=[text],
        images=[pictures] if pictures else None,
        videos=[torch.from_numpy(video.decode(c, f)).permute(0, 3, 1, 2) for c, f in zip(clips, chosen, strict=True)],
        video_metadata=[metadata(video.measure(c), f) for c, f in zip(clips, chosen, strict=True)],
        do_sample_frames=False,
        return_tensors="pt",
        add_special_tokens=not (first and text.startswith(first)),
        **omni,
    )


def template_of(border: Border) -> str:
    return str(border.processor.chat_template or border.processor.tokenizer.chat_template)
