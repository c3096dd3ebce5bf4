"""Every private name of another package that this library uses, each beside the version it was seen in.

A private name may go with any release, and what stands where it was may mean something else. So each is asked for here
and nowhere else (a house test looks for others), and one that is gone is an error that names it. A test asks for every
one of them in the versions of `constraints.txt`, which are those of `SEEN`.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from lading.errors import MissingPrivateName

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.process import BaseProcess

    from jinja2 import Template

SEEN: Final = {"python": "3.11", "torch": "2.15.0", "transformers": "5.22.2", "datasets": "5.2.0"}
"""The versions in which the names below were seen."""


def _private(holder: Any, name: str, package: str, lost: str) -> Any:
    """A private attribute of an object, class or module of this package; `lost` is what cannot be done without it."""
    try:
        return getattr(holder, name)
    except AttributeError as error:
        raise _gone(holder, name, package, lost) from error


def _gone(holder: Any, name: str, package: str, lost: str) -> MissingPrivateName:
    try:
        installed = platform.python_version() if package == "python" else version(package)
    except PackageNotFoundError:
        installed = "of no known version"
    owner = holder.__name__ if isinstance(holder, (type, ModuleType)) else type(holder).__name__
    return MissingPrivateName(
        found=f"{owner} without {name} ({package} {installed} is installed)",
        wanted=f"{package} {SEEN[package]}, in which it was seen, or one that has it",
        consequence=lost,
        where="lading.private_names",
    )


# torch: memory and workers


def new_shared_memory(size: int) -> Any:
    """A storage of so many bytes that another process reads where it lies. torch's own collate function makes it so;
    the public `share_memory_()` makes a copy of memory that was already taken elsewhere.
    """
    import torch

    storage = torch.UntypedStorage
    return _private(storage, "_new_shared", "torch", "a worker cannot hand its tensors over uncopied")(size)


def worker_of(batches: Any) -> BaseProcess:
    """The only worker of an iterator over a `DataLoader`."""
    workers = _private(batches, "_workers", "torch", "a worker that hangs or dies cannot be replaced")
    process: BaseProcess = workers[0]
    return process


def raise_in_next_alone(batches: Any) -> None:
    """Let a worker's death be raised by `next(batches)`, and not in the middle of whatever the main thread is doing.

    torch's signal handler is told to watch these workers no longer. And this process closes its own end for writing: a
    batch that a worker died over is waited for as long as anybody could still write the rest of it.
    """
    import torch

    lost = "a worker that dies would end the training step instead of being replaced"
    unwatch = _private(torch._C, "_remove_worker_pids", "torch", lost)
    _private(batches, "_worker_pids_set", "torch", lost)
    writer = _private(_private(batches, "_worker_result_queue", "torch", lost), "_writer", "python", lost)
    unwatch(id(batches))
    batches._worker_pids_set = False
    writer.close()


def processes_of(executor: ProcessPoolExecutor) -> list[BaseProcess]:
    """The processes that an executor started. From Python 3.14 on, its `kill_workers()` ends them without a list."""
    started = _private(executor, "_processes", "python", "processes could not be ended when they are interrupted")
    return list((started or {}).values())


def expect_no_answers(executor: ProcessPoolExecutor) -> None:
    """Let an executor whose processes were killed end: an answer that one was killed over is waited for as long as
    anybody could still write the rest of it, and this process could.
    """
    lost = "the end of an interrupted pool would be waited for without end"
    answers = _private(executor, "_result_queue", "python", lost)
    if answers is not None:  # an executor that broke has none any more
        _private(answers, "_writer", "python", lost).close()


# torch.distributed


def default_store() -> Any:
    """The store that the default process group brings along, which torch does not show."""
    from torch.distributed import distributed_c10d

    return _private(distributed_c10d, "_get_default_store", "torch", "ranks could not compare their plans")()


def process_groups() -> Iterable[Any]:
    """All process groups that were made, of which torch has no public list."""
    from torch.distributed import distributed_c10d

    lost = "nobody could tell whether ranks hold parts of one model; name mesh=, group=, or rank= and world_size="
    groups: Iterable[Any] = _private(_private(distributed_c10d, "_world", "torch", lost), "pg_map", "torch", lost)
    return groups


def root_mesh(mesh: Any) -> Any:
    """The whole mesh that a part was cut out of, which torch does not show."""
    return _private(mesh, "_get_root_mesh", "torch", "ranks of a part of a mesh might all be fed the same data")()


def stages_of(schedule: Any) -> list[Any] | None:
    """The stages of one of torch's pipeline schedules on this rank; `None`: it is no schedule of torch's."""
    from torch.distributed.pipelining.schedules import PipelineScheduleMulti, PipelineScheduleSingle

    lost = "media could not be handed to the first stage of a schedule; name the stages instead (pp.info.stages)"
    if isinstance(schedule, PipelineScheduleSingle):
        return [_private(schedule, "_stage", "torch", lost)]
    return list(_private(schedule, "_stages", "torch", lost)) if isinstance(schedule, PipelineScheduleMulti) else None


def microbatches_of(schedule: Any) -> int | None:
    """How many microbatches one of torch's pipeline schedules runs; `None`: it is no schedule of torch's."""
    if stages_of(schedule) is None:
        return None
    lost = "a schedule that runs fewer microbatches than media were cut for would leave media out"
    return int(_private(schedule, "_n_microbatches", "torch", lost))


FIRST_PASS: Final = "_forward_metadata_inference"
"""The method by which a stage runs the first microbatch once before the first step, to learn shapes and who needs
gradients."""


def first_pass_of(stage: Any) -> Callable[..., Any] | None:
    """That method of a stage; `None`: there is none, in stages of others and in a torch that learns shapes alone."""
    from torch.distributed.pipelining import PipelineStage

    names = dir(stage)
    if FIRST_PASS not in names and (not isinstance(stage, PipelineStage) or "_shape_inference" in names):
        return None
    lost = "a vision tower that alone is trained would get no gradients"
    own: Callable[..., Any] = _private(stage, FIRST_PASS, "torch", lost)
    return own


# transformers


def compiled_template(template: str) -> Template:
    """A chat template, compiled once. The public way compiles it as well, but does not hand it out."""
    from transformers.utils import chat_template_utils

    lost = "every text takes a third longer"
    compiled: Template = _private(chat_template_utils, "_compile_jinja_template", "transformers", lost)(template)
    return compiled


def attention_of(config: Any) -> str | None:
    """Which attention a model with this configuration computes; what cannot be set is only logged by transformers."""
    lost = "nobody could tell whether the model attends as it was asked to; use attention='mask'"
    chosen: str | None = _private(config, "_attn_implementation", "transformers", lost)
    return chosen


def processor_options(processor: Any) -> Any:
    """What a processor does where nobody says otherwise, by kind: `images_kwargs`, `videos_kwargs`."""
    merge = _private(processor, "_merge_kwargs", "transformers", UNCOUNTED)
    return merge(processor.valid_processor_kwargs, tokenizer_init_kwargs=processor.tokenizer.init_kwargs)


def image_processing(processor: Any) -> Callable[..., tuple[Any, list[str]]]:
    """A processor's function from pictures to tensors and each picture's text."""
    own: Callable[..., tuple[Any, list[str]]] = _private(processor, "_process_images", "transformers", UNCOUNTED)
    return own


def video_processing(processor: Any) -> Callable[..., tuple[Any, list[str]]]:
    """A processor's function from clips to tensors and each clip's text."""
    own: Callable[..., tuple[Any, list[str]]] = _private(processor, "_process_videos", "transformers", UNCOUNTED)
    return own


def token_counting(processor: Any) -> Callable[..., Any]:
    """A processor's function from sizes of pictures to their numbers of tokens and patches."""
    own: Callable[..., Any] = _private(processor, "_get_num_multimodal_tokens", "transformers", UNCOUNTED)
    return own


def crop_planning(image_processor: Any) -> Callable[..., Sequence[Any]]:
    """Step-3.7's function from a picture's size to its rows and columns of crops."""
    own: Callable[..., Sequence[Any]] = _private(image_processor, "_plan_patches", "transformers", UNCOUNTED)
    return own


UNCOUNTED: Final = "what media take up could not be counted, and nothing was"


# datasets


def dataset_fingerprint(dataset: Any) -> str:
    """What tells one state of a data set from another; its documentation shows it under this name."""
    lost = "a data set that changed could not be told from the one that was counted"
    return str(_private(dataset, "_fingerprint", "datasets", lost))
