"""Feed-forwards of odd width: the same numbers, the same gradients, the same names in a checkpoint."""

import copy

import torch
from torch import nn

from lading import toy
from lading.attention import align_feed_forward


class FeedForward(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(16, width)
        self.up_proj = nn.Linear(16, width)
        self.down_proj = nn.Linear(width, 16, bias=False)
        self.act_fn = nn.SiLU()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.down_proj(self.act_fn(self.gate_proj(hidden)) * self.up_proj(hidden))
        return result


def test_nothing_changes_but_the_kernel() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(FeedForward(20), FeedForward(24), FeedForward(13))
    hidden = torch.randn(5, 16)
    results = []
    for aligned in (False, True):
        if aligned:
            assert align_feed_forward(model) == 2, "those of 20 and 13"
        model.zero_grad()
        out = model(hidden)
        out.square().sum().backward()
        results.append(
            [out.detach(), *(weight.grad.clone() for weight in model.parameters() if weight.grad is not None)]
        )
    assert len(results[0]) == 16
    for one, other in zip(*results, strict=True):
        assert one.shape == other.shape
        assert torch.allclose(one, other, atol=1e-5)
    assert set(model.state_dict()) == set(nn.Sequential(FeedForward(20), FeedForward(24), FeedForward(13)).state_dict())


def test_a_real_tower_is_found() -> None:
    model = toy.model("qwen2_5_vl")
    tower = next(module for name, module in model.named_modules() if name.endswith("visual"))
    assert align_feed_forward(model) == 0, "the toy's widths are even"
    for block in tower.blocks:
        for name in ("gate_proj", "up_proj"):
            old = block.mlp._modules[name]
            block.mlp._modules[name] = nn.Linear(old.in_features, 20)
        block.mlp.down_proj = nn.Linear(20, block.mlp.down_proj.out_features)
    assert align_feed_forward(model) == len(tower.blocks)


class Adapted(nn.Module):
    """A layer with an adapter beside it, as LoRA puts it in the layer's place."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base, self.adapter = base, nn.Linear(base.in_features, base.out_features)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.base(hidden) + self.adapter(hidden)
        return result


def test_an_adapter_that_comes_later_is_trained() -> None:
    torch.manual_seed(0)
    wanted, aligned = FeedForward(20), FeedForward(20)
    aligned.load_state_dict(wanted.state_dict())
    assert align_feed_forward(aligned) == 1
    adapted = Adapted(wanted.up_proj)
    for model in (wanted, aligned):
        model._modules["up_proj"] = adapted
    hidden = torch.randn(5, 16)
    assert torch.allclose(aligned(hidden), wanted(hidden), atol=1e-6)
    aligned(hidden).sum().backward()
    assert adapted.adapter.weight.grad is not None


def test_an_aligned_model_can_be_copied() -> None:
    model = FeedForward(20)
    align_feed_forward(model)
    twin = copy.deepcopy(model)
    hidden = torch.randn(5, 16)
    assert twin(hidden).equal(model(hidden))
    with torch.no_grad():
        twin.up_proj.weight.zero_()
    assert not twin(hidden).equal(model(hidden)), "each has weights of its own"
