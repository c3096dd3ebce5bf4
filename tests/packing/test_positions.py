"""Positions equal `get_rope_index` of the model itself, document by document."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lading import toy
from lading.packing.pack import ThreeWay, document_positions, pack_positions
from lading.records import Document, Footprint, MediumSpan, SampleKey

MODEL = toy.model("qwen2_5_vl").model
media = st.lists(
    st.tuples(
        st.sampled_from(["image", "video"]),
        st.integers(1, 5),
        st.integers(1, 4),
        st.integers(1, 4),
        st.floats(0.05, 4.0),
        st.integers(1, 5),
    ),
    max_size=4,
)


@settings(max_examples=200, deadline=None)
@given(media, st.integers(1, 5))
def test_three_way_positions(parts: list[tuple[str, int, int, int, float, int]], tail: int) -> None:
    spans, types, grids, seconds = [], [], {"image": [], "video": []}, []
    for kind, t, h, w, second, text in parts:
        frames = 1 if kind == "image" else t
        types += [0] * text
        start, tokens = len(types), frames * h * w
        types += [1 if kind == "image" else 2] * tokens
        grid = (frames, h * 2, w * 2)
        between = float(np.float32(second)) if kind == "video" else 0.0
        seconds += [between] if kind == "video" else []
        footprint = Footprint(kind=kind, runs=(tokens,), rows=tokens * 4, grid=grid, seconds=between)
        spans.append(MediumSpan(footprint=footprint, runs=((start, start + tokens),)))
        grids[kind].append(grid)
    types += [0] * tail
    document = Document(key=SampleKey(index=0, source="s", where="w"), tokens=len(types), media=tuple(spans))
    expected, _ = MODEL.get_rope_index(
        input_ids=torch.zeros(1, len(types), dtype=torch.long),
        mm_token_type_ids=torch.tensor([types]),
        image_grid_thw=torch.tensor(grids["image"]) if grids["image"] else None,
        video_grid_thw=torch.tensor(grids["video"]) if grids["video"] else None,
        second_per_grid_ts=torch.tensor(seconds) if seconds else None,
    )
    found = document_positions(document, ThreeWay(merge=2, tokens_per_second=2.0))
    assert found[0].tolist() == list(range(len(types)))
    assert torch.equal(found[1:], expected[:, 0])
    side_by_side = pack_positions([document, document], ThreeWay(merge=2, tokens_per_second=2.0))
    assert torch.equal(side_by_side, torch.cat([found, found], dim=1))


def test_plain_positions() -> None:
    document = Document(key=SampleKey(index=0, source="s", where="w"), tokens=4)
    assert document_positions(document, None).tolist() == [0, 1, 2, 3]
