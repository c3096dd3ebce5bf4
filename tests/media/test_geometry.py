"""Resize arithmetic equals transformers' own, for every size."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize as their_image
from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor
from transformers.models.qwen3_vl.video_processing_qwen3_vl import smart_resize as their_clip
from transformers.video_utils import VideoMetadata

from lading import toy
from lading.errors import SkipSample
from lading.media.geometry import ClipGrid, PatchGrid, smart_resize, smart_resize_clip
from lading.records import ImageSize, VideoSize

SIDE = st.integers(1, 6000)


@settings(max_examples=500)
@given(SIDE, SIDE, st.sampled_from([28, 32]), st.sampled_from([3136, 100_000]), st.sampled_from([200_000, 12_845_056]))
@example(1, 200, 28, 3136, 12_845_056)
@example(1, 201, 28, 3136, 12_845_056)
def test_pictures(height: int, width: int, factor: int, low: int, high: int) -> None:
    try:
        theirs = their_image(height, width, factor=factor, min_pixels=low, max_pixels=high)
    except ValueError:
        with pytest.raises(SkipSample, match="long side"):
            smart_resize(height, width, factor=factor, min_pixels=low, max_pixels=high)
        return
    assert smart_resize(height, width, factor=factor, min_pixels=low, max_pixels=high) == theirs


@settings(max_examples=500)
@given(st.integers(1, 800), SIDE, SIDE, st.sampled_from([28, 32]), st.sampled_from([4096, 131_072]))
def test_clips(frames: int, height: int, width: int, factor: int, low: int) -> None:
    bounds = {"temporal_factor": 2, "factor": factor, "min_pixels": low, "max_pixels": 12_582_912}
    try:
        theirs = their_clip(frames, height, width, **bounds)
    except ValueError:
        with pytest.raises(SkipSample):
            smart_resize_clip(frames, height, width, **bounds)
        return
    assert smart_resize_clip(frames, height, width, **bounds) == theirs


@settings(max_examples=300)
@given(st.integers(2, 5000), st.floats(1, 120), st.floats(0.2, 30), st.integers(2, 12), st.integers(8, 900))
def test_sampled_frames(frames: int, rate: float, fps: float, low: int, high: int) -> None:
    theirs = Qwen2VLVideoProcessor(fps=fps, min_frames=low, max_frames=high)
    metadata = VideoMetadata(total_num_frames=frames, fps=rate, width=64, height=64)
    # Theirs may ask for one frame more than the clip has; that one cannot be meant.
    expected = [frame for frame in theirs.sample_frames(metadata).tolist() if frame < frames]
    processor = type("Processor", (), {"video_processor": theirs})
    grid = ClipGrid.read(processor, fps=2.0)
    assert list(grid.footprints([VideoSize(frames=frames, height=64, width=64, fps=rate)])[0].frames) == expected


@pytest.mark.parametrize("cap", [False, True])
@pytest.mark.parametrize(("frames", "height", "width"), [(2, 40, 60), (5, 96, 128), (9, 200, 40), (30, 64, 300)])
def test_a_clips_footprint_is_what_the_processor_makes(frames: int, height: int, width: int, cap: bool) -> None:
    theirs = Qwen2VLVideoProcessor(
        size={"shortest_edge": 3136, "longest_edge": 50_000}, cap_pixels_per_frame=cap, max_video_tokens=200, fps=4.0
    )
    grid = ClipGrid.read(type("Processor", (), {"video_processor": theirs}), fps=2.0)
    footprint = grid.footprints([VideoSize(frames=frames, height=height, width=width, fps=8.0)])[0]
    clip = torch.zeros(len(footprint.frames), 3, height, width, dtype=torch.uint8)
    made = theirs(videos=[clip], do_sample_frames=False, return_tensors="pt")
    assert made["video_grid_thw"].tolist() == [list(footprint.grid)]
    assert len(made["pixel_values_videos"]) == footprint.rows


@settings(max_examples=200)
@given(SIDE, SIDE)
def test_a_pictures_tokens_are_what_the_processor_counts(height: int, width: int) -> None:
    processor = toy.processor("qwen2_5_vl")
    grid = PatchGrid.read(processor)
    try:
        counted = processor._get_num_multimodal_tokens(image_sizes=[(height, width)])
    except ValueError:
        with pytest.raises(SkipSample):
            grid.footprints([ImageSize(height=height, width=width)])[0]
        return
    footprint = grid.footprints([ImageSize(height=height, width=width)])[0]
    assert footprint.runs == tuple(counted["num_image_tokens"])
    assert footprint.rows == counted["num_image_patches"][0]


def test_a_fixed_number_of_frames_is_kept() -> None:
    theirs = Qwen2VLVideoProcessor(num_frames=6)
    grid = ClipGrid.read(type("Processor", (), {"video_processor": theirs}), fps=2.0)
    footprint = grid.footprints([VideoSize(frames=60, height=64, width=64, fps=30.0)])[0]
    assert len(footprint.frames) == 6
    assert footprint.frames == tuple(theirs.sample_frames(VideoMetadata(total_num_frames=60, fps=30.0)).tolist())


@pytest.mark.parametrize("size", [ImageSize(height=0, width=5), ImageSize(height=5, width=5000)])
def test_impossible_shapes_are_named(size: ImageSize) -> None:
    with pytest.raises(SkipSample) as caught:
        PatchGrid(patch=14, merge=2, min_pixels=3136, max_pixels=10**6).footprints([size])
    assert caught.value.reason == "impossible_shape"
