"""No private name of another package is used anywhere but in `lading.private_names`."""

import ast

import pytest

from tests.house.test_house import SOURCE, TREES

MODULE = SOURCE / "private_names.py"
DOCUMENTED = {"os._exit"}
"""Names with an underscore that are public all the same."""


def is_private(name: str) -> bool:
    return name.startswith("_") and name != "_" and not (name.startswith("__") and name.endswith("__"))


def asked_for() -> list[str]:
    """The private names that the module asks for: what its own function is called with, and its constants."""
    constants = {
        node.target.id: node.value.value
        for node in ast.walk(TREES[MODULE])
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    names = set()
    for node in ast.walk(TREES[MODULE]):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_private":
            name = node.args[1]
            names.add(str(constants[name.id] if isinstance(name, ast.Name) else ast.literal_eval(name)))
    return sorted(name for name in names if is_private(name))


OWN = {
    name
    for tree in TREES.values()
    for node in ast.walk(tree)
    for name in (
        [node.name]
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        else [node.attr]
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        else [node.id]
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        else []
    )
    if is_private(name)
}
"""Private names that are made in this library: methods, attributes that are set, fields."""


def own_classes(tree: ast.Module) -> set[str]:
    """Classes that are defined in a module, or imported into it from this library."""
    found = {"Self"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lading"):
            found |= {alias.asname or alias.name for alias in node.names}
    return found


def own_values(tree: ast.Module) -> set[str]:
    """Names that stand for an object or class of this library: `self`, and what is annotated as one."""
    classes = own_classes(tree)
    annotated = {
        node.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.arg) and node.annotation is not None and ast.unparse(node.annotation) in classes
    }
    return {"self", "cls", *classes, *annotated}


BY_TEXT = {"getattr", "hasattr", "setattr", "delattr", "attrgetter", "methodcaller"}
"""Functions that take a name as a text."""


def foreign(tree: ast.Module) -> list[str]:
    """Uses of private names that are not this library's own, however they are written."""
    values, asked = own_values(tree), set(asked_for())

    def is_foreign(node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in values and node.attr in OWN
            return is_private(node.attr) and not own and ast.unparse(node) not in DOCUMENTED
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return any(is_private(name) for name in imported(node))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in BY_TEXT:
            return any(isinstance(given, ast.Constant) and is_private(str(given.value)) for given in node.args)
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases):
            return any(is_private(name) for name in members(node))
        return isinstance(node, ast.Constant) and node.value in asked

    return [f"{getattr(node, 'lineno', 0)}: {ast.unparse(node)}" for node in ast.walk(tree) if is_foreign(node)]


def imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Every part of the names that are imported from elsewhere."""
    origin = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
    names = [part for alias in node.names for part in f"{origin}.{alias.name}".split(".")]
    return [] if names[0] == "lading" else names


def members(node: ast.ClassDef) -> list[str]:
    """What a protocol asks for."""
    methods = [own.name for own in node.body if isinstance(own, ast.FunctionDef)]
    return methods + [ast.unparse(own.target) for own in node.body if isinstance(own, ast.AnnAssign)]


def test_private_names_of_others_stand_in_one_module() -> None:
    found = {str(path.relative_to(SOURCE)): foreign(tree) for path, tree in TREES.items() if path != MODULE}
    assert {path: uses for path, uses in found.items() if uses} == {}
    assert len(asked_for()) > 10, "and the module is seen to ask for them"


@pytest.mark.parametrize(
    "code",
    [
        "def f(config):\n    return config._attn_implementation",
        "def f(pool):\n    pool._broken = True",
        "class A(Thread):\n    def f(self):\n        return self._target",
        "class A:\n    def f(self):\n        return self._running._workers[0]",
        "class A:\n    def f(self, other: Executor):\n        return other._left",
        "from torch._C import anything",
        "from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter",
        "import torch._C",
        'def f(it):\n    return getattr(it, "_anything", None)',
        'def f(it):\n    return operator.attrgetter("_anything")(it)',
        'def f(it):\n    return vars(it)["_fingerprint"]',
        "class A(Protocol):\n    _stage: int",
        "class A(Protocol):\n    def _run(self) -> int: ...",
    ],
)
def test_another_use_is_noticed(code: str) -> None:
    assert foreign(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "class A:\n    def f(self, other: Self):\n        return self._left + other._left",
        "from lading.vlm.samplers import LengthGroupedSampler as A\nB = A._get_raw_samples",
        "import os\nos._exit(1)",
        "def f(it):\n    return it.__dict__",
        "from lading.plan.make import _anything",
    ],
)
def test_what_is_ours_or_public_is_not(code: str) -> None:
    assert not foreign(ast.parse(code))
