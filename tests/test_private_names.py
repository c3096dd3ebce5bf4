"""Private names of other packages: each is there, does what it is used for, and is missed by name when it is gone."""

import os
import pickle
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as distributed
from torch import nn
from torch.distributed import distributed_c10d
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.utils.data import DataLoader
from transformers.utils import chat_template_utils

from lading import private_names, toy
from lading.encode.template import Renderer
from lading.errors import LadingError, MissingPrivateName
from lading.private_names import SEEN
from lading.records import Conversation, Message, SampleKey, TextPart
from tests.house.test_private_names import asked_for
from tests.support.shared import ROOT


@contextmanager
def group() -> Iterator[None]:
    """A process group of this process alone."""
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        distributed.destroy_process_group()


@contextmanager
def schedule(number: int = 1) -> Iterator[Any]:
    """One of torch's schedules, with so many stages on this rank."""
    with group():
        stages = [PipelineStage(nn.Linear(2, 2), index, number, torch.device("cpu")) for index in range(number)]
        yield ScheduleGPipe(stages[0], 3) if number == 1 else ScheduleInterleaved1F1B(stages, 3)


def batches() -> Any:
    return iter(DataLoader([1, 2, 3], num_workers=1, multiprocessing_context="fork"))  # type: ignore[arg-type]


def shared() -> None:
    storage = private_names.new_shared_memory(1 << 20)
    assert (storage.nbytes(), storage.is_shared()) == (1 << 20, True)


def worker() -> None:
    running = batches()
    process = private_names.worker_of(running)
    assert isinstance(process, BaseProcess)
    assert process.is_alive()


def death() -> None:
    """What torch's signal handler would raise anywhere is raised by `next`."""
    running = batches()
    private_names.raise_in_next_alone(running)
    process = private_names.worker_of(running)
    process.kill()
    os.waitid(os.P_PID, process.pid or 0, os.WEXITED | os.WNOWAIT)  # dead, and torch could still see it
    torch._C._error_if_any_worker_fails()  # type: ignore[attr-defined]  # what the signal handler calls
    assert running._worker_result_queue._writer.closed
    assert not running._worker_pids_set


def unfinished_answers() -> None:
    pool = ProcessPoolExecutor(1)
    pool.submit(int).result()
    for process in private_names.processes_of(pool):
        process.kill()
    private_names.expect_no_answers(pool)
    pool.shutdown()
    private_names.expect_no_answers(pool)  # there are none to be expected any more


def executor() -> None:
    with ProcessPoolExecutor(1) as pool:
        assert private_names.processes_of(pool) == []
        pool.submit(int).result()
        assert [process.is_alive() for process in private_names.processes_of(pool)] == [True]


def store() -> None:
    with group():
        private_names.default_store().set("lading", "here")
        assert private_names.default_store().get("lading") == b"here"


def groups() -> None:
    with group():
        assert [own.size() for own in private_names.process_groups()] == [1]
        distributed.new_group([0])
        assert len(list(private_names.process_groups())) == 2


def whole_mesh() -> None:
    with group():
        mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
        assert private_names.root_mesh(mesh["tp"]) == mesh


def stages(number: int) -> Callable[[], None]:
    def check() -> None:
        with schedule(number) as made:
            found = private_names.stages_of(made)
            assert found is not None
            assert [stage.is_first for stage in found] == [True, False][:number]
        assert private_names.stages_of(object()) is None

    return check


def microbatches() -> None:
    with schedule() as made:
        assert private_names.microbatches_of(made) == 3
    assert private_names.microbatches_of(object()) is None


def first_pass() -> None:
    with schedule() as made:
        assert private_names.first_pass_of(made._stage) is not None
    assert private_names.first_pass_of(object()) is None


def template() -> None:
    assert private_names.compiled_template("{{ one }} {{ two }}").render(one=1, two=2) == "1 2"


def attention() -> None:
    model = toy.model("qwen2_5_vl")
    model.set_attn_implementation("eager")
    assert private_names.attention_of(model.config) == "eager"


def options() -> None:
    assert {"images_kwargs", "videos_kwargs"} <= set(private_names.processor_options(toy.processor("qwen2_5_vl")))


def pictures() -> None:
    processor = toy.processor("gemma3")
    process = private_names.image_processing(processor)
    made, texts = process([[torch.zeros(3, 40, 60, dtype=torch.uint8)]], return_tensors="pt")
    assert len(made["pixel_values"]) == len(texts) == 1


def clips() -> None:
    processor = toy.processor("internvl")
    process = private_names.video_processing(processor)
    given = private_names.processor_options(processor)["videos_kwargs"]
    clip = torch.zeros(4, 3, 32, 32, dtype=torch.uint8)
    made, texts = process([clip], **{**given, "do_sample_frames": False})
    assert len(texts) == 1
    assert "pixel_values_videos" in made


def counting() -> None:
    counted = private_names.token_counting(toy.processor("internvl"))(image_sizes=[(40, 60)])
    assert len(counted["num_image_tokens"]) == len(counted["num_image_patches"]) == 1


def crops() -> None:
    numbers = toy.processor("step3p7").image_processor
    plan = private_names.crop_planning(numbers)(60, 40, numbers.size["height"], numbers.patch_size)
    assert len(plan) == 6


def fingerprint() -> None:
    datasets = pytest.importorskip("datasets")
    one, other = (datasets.Dataset.from_dict({"text": [text]}) for text in "ab")
    names = [private_names.dataset_fingerprint(own) for own in (one, one, other)]
    assert names[0] == names[1] != names[2]


USES: dict[str, Callable[[], None]] = {
    "torch.UntypedStorage._new_shared": shared,
    "torch.utils.data.dataloader iterator._workers": worker,
    "torch._C._remove_worker_pids": death,
    "torch.utils.data.dataloader iterator._worker_pids_set": death,
    "torch.utils.data.dataloader iterator._worker_result_queue": death,
    "multiprocessing.queues.Queue._writer": death,
    "concurrent.futures.ProcessPoolExecutor._processes": executor,
    "concurrent.futures.ProcessPoolExecutor._result_queue": unfinished_answers,
    "torch.distributed.distributed_c10d._get_default_store": store,
    "torch.distributed.distributed_c10d._world": groups,
    "torch.distributed.device_mesh.DeviceMesh._get_root_mesh": whole_mesh,
    "torch.distributed.pipelining.PipelineScheduleSingle._stage": stages(1),
    "torch.distributed.pipelining.PipelineScheduleMulti._stages": stages(2),
    "torch.distributed.pipelining schedule._n_microbatches": microbatches,
    "torch.distributed.pipelining.PipelineStage._forward_metadata_inference": first_pass,
    "transformers.utils.chat_template_utils._compile_jinja_template": template,
    "transformers.PreTrainedConfig._attn_implementation": attention,
    "transformers.ProcessorMixin._merge_kwargs": options,
    "transformers.ProcessorMixin._process_images": pictures,
    "transformers.ProcessorMixin._process_videos": clips,
    "transformers processor._get_num_multimodal_tokens": counting,
    "transformers.Step3p7ImageProcessor._plan_patches": crops,
    "datasets.Dataset._fingerprint": fingerprint,
}


@pytest.mark.parametrize("name", USES)
def test_the_installed_version_has(name: str) -> None:
    USES[name]()


def test_every_name_is_in_the_list() -> None:
    assert sorted(name.rpartition(".")[2] for name in USES) == sorted(asked_for())


INSTANCES: dict[str, tuple[Callable[..., Any], Any]] = {
    "_workers": (private_names.worker_of, SimpleNamespace()),
    "_get_root_mesh": (private_names.root_mesh, SimpleNamespace()),
    "_worker_pids_set": (private_names.raise_in_next_alone, SimpleNamespace()),
    "_worker_result_queue": (private_names.raise_in_next_alone, SimpleNamespace(_worker_pids_set=True)),
    "_writer": (
        private_names.raise_in_next_alone,
        SimpleNamespace(_worker_pids_set=True, _worker_result_queue=SimpleNamespace()),
    ),
    "_processes": (private_names.processes_of, SimpleNamespace()),
    "_result_queue": (private_names.expect_no_answers, SimpleNamespace()),
    "_attn_implementation": (private_names.attention_of, SimpleNamespace()),
    "_merge_kwargs": (private_names.processor_options, SimpleNamespace()),
    "_process_images": (private_names.image_processing, SimpleNamespace()),
    "_process_videos": (private_names.video_processing, SimpleNamespace()),
    "_get_num_multimodal_tokens": (private_names.token_counting, SimpleNamespace()),
    "_plan_patches": (private_names.crop_planning, SimpleNamespace()),
    "_fingerprint": (private_names.dataset_fingerprint, SimpleNamespace()),
}
"""Names of objects: what asks for each, and something that lacks it."""
OWNERS: dict[str, tuple[Callable[[], Any], Any]] = {
    "_new_shared": (lambda: private_names.new_shared_memory(8), torch.storage._StorageBase),
    "_remove_worker_pids": (lambda: private_names.raise_in_next_alone(SimpleNamespace()), torch._C),
    "_get_default_store": (private_names.default_store, distributed_c10d),
    "_world": (private_names.process_groups, distributed_c10d),
    "_compile_jinja_template": (lambda: private_names.compiled_template("{{ one }}"), chat_template_utils),
}
"""Names of classes and modules: what asks for each, and where it stands."""


@pytest.mark.parametrize("name", INSTANCES)
def test_what_an_object_lacks_is_named(name: str) -> None:
    ask, lacking = INSTANCES[name]
    with pytest.raises(
        MissingPrivateName, match=rf"found SimpleNamespace without {name} \(.* installed\); wanted .*; "
    ):
        ask(lacking)


@pytest.mark.parametrize("name", OWNERS)
def test_what_a_class_or_module_lacks_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask, owner = OWNERS[name]
    monkeypatch.delattr(owner, name)
    with pytest.raises(
        MissingPrivateName, match=rf"without {name} \(torch|transformers .* is installed\); wanted .*; "
    ):
        ask()


@pytest.mark.parametrize(("number", "name"), [(1, "_stage"), (2, "_stages"), (1, "_n_microbatches")])
def test_what_a_schedule_lacks_is_named(number: int, name: str) -> None:
    with schedule(number) as made:
        delattr(made, name)
        with pytest.raises(MissingPrivateName, match=f"found Schedule.* without {name} "):
            private_names.microbatches_of(made)


def test_a_stage_that_lacks_its_first_pass_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with schedule() as made:
        stage = made._stage
        monkeypatch.delattr(PipelineStage, private_names.FIRST_PASS)
        with pytest.raises(
            MissingPrivateName, match=r"found PipelineStage without _forward_metadata_inference .*gradient"
        ):
            private_names.first_pass_of(stage)
        stage._shape_inference = None
        assert private_names.first_pass_of(stage) is None, "an older torch, which learns shapes alone"


def test_every_name_is_missed_by_a_test() -> None:
    others = {"_stage", "_stages", "_n_microbatches", private_names.FIRST_PASS}
    assert {*INSTANCES, *OWNERS, *others} == set(asked_for())


def test_texts_are_written_without_the_compiled_template_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    parts = (
        Message(role="user", parts=(TextPart(text="Who?"),)),
        Message(role="assistant", parts=(TextPart(text="I"),)),
    )
    talk = Conversation(key=SampleKey(index=0, source="s", where="w"), messages=parts)
    template = toy.processor("qwen2_5_vl").chat_template
    usual = Renderer(template, {}, where="here")(talk)
    # A version that compiles templates elsewhere: its public function goes on as before.
    public = chat_template_utils.render_jinja_template
    monkeypatch.setattr(
        chat_template_utils,
        "render_jinja_template",
        FunctionType(public.__code__, {**public.__globals__}, argdefs=public.__defaults__),
    )
    monkeypatch.delattr(chat_template_utils, "_compile_jinja_template")
    assert Renderer(template, {}, where="here")(talk) == usual
    assert "without _compile_jinja_template" in caplog.text


def test_the_versions_are_those_that_tests_run_with() -> None:
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    found = dict(re.findall(r"^(\w+)==([\d.]+)$", pinned, re.MULTILINE))
    assert {package: found[package] for package in SEEN if package != "python"} == {
        package: seen for package, seen in SEEN.items() if package != "python"
    }


def test_the_error_crosses_processes_and_is_ours() -> None:
    with pytest.raises(LadingError) as caught:
        private_names.worker_of(SimpleNamespace())
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
