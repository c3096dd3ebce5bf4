"""Policy as failing tests: public names, layers, budgets."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lading
from lading import families
from tests.support.shared import ROOT

SOURCE = ROOT / "src" / "lading"
FILES = sorted(SOURCE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
SKIP_POLICY = SOURCE / "samples" / "skip.py"


def nodes(*kinds: type[ast.AST]) -> Iterator[tuple[Path, ast.AST]]:
    return ((path, node) for path, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, kinds))


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_public_names_exist_and_are_sorted() -> None:
    assert list(lading.__all__) == sorted(lading.__all__)
    for name in lading.__all__:
        assert getattr(lading, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = lading.nothing  # type: ignore[attr-defined]


def test_files_are_small() -> None:
    sizes = {path: lines_of(path) for path in FILES}
    assert {str(path): size for path, size in sizes.items() if size > 350} == {}


def test_functions_are_small() -> None:
    long = [
        f"{path}:{node.lineno} {node.name}"
        for path, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno > 70
    ]
    assert long == []


def test_only_the_skip_policy_catches_everything() -> None:
    broad = [
        f"{path}:{node.lineno}"
        for path, node in nodes(ast.ExceptHandler)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException"))
        and path != SKIP_POLICY
    ]
    assert broad == []


def test_objects_are_asked_what_they_are_only_at_the_border() -> None:
    probes = sum(
        isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "hasattr")
        for _, node in nodes(ast.Call)
    )
    assert 1000 * probes / sum(lines_of(path) for path in FILES) <= 2


def test_every_ignored_rule_has_its_reason_beside_it() -> None:
    for path in FILES:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            for mark in ("# type: ignore[", "# noqa"):
                if mark in line:
                    said = line.split(mark, 1)[1]
                    assert "  # " in said or " - " in said, f"{path}:{number} ignores a rule without a reason"


def test_only_one_room_joins_and_cuts_tensors() -> None:
    calls = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path, node in nodes(ast.Call)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("cat", "split", "chunk", "narrow", "stack", "hstack", "vstack")
        and getattr(node.func.value, "id", "") == "torch"
        and path.name != "tensors.py"
    ]
    # Masks and positions are made here, row by row; nothing of a sample is joined or cut.
    allowed = ("packing/masks.py", "packing/positions.py")
    assert [call for call in calls if not call.startswith(allowed)] == []


def lint_imports(config: Path) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [str(command), "--config", str(config)],
        capture_output=True,
        text=True,
        check=False,
        cwd=config.parent,
        timeout=120,
    )


def test_the_import_contract_is_kept_and_can_be_broken(tmp_path: Path) -> None:
    import os
    import shutil

    assert lint_imports(ROOT / "pyproject.toml").returncode == 0
    shutil.copytree(SOURCE, tmp_path / "lading")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    command = [str(Path(sys.executable).with_name("lint-imports")), "--config", "pyproject.toml", "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def broken() -> bool:
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False).returncode != 0

    assert not broken()
    (tmp_path / "lading" / "plan" / "sneaky.py").write_text("from lading.sources import Corpus\n")
    assert broken(), "a room imports another room"
    (tmp_path / "lading" / "plan" / "sneaky.py").unlink()
    (tmp_path / "lading" / "utils").mkdir()
    (tmp_path / "lading" / "utils" / "__init__.py").write_text("")
    assert broken(), "a new folder has no place in the house"


def test_a_folder_that_is_only_called_shared_fails_no_test(tmp_path: Path) -> None:
    """Tests ask for the very file they need: one that finds a folder of that name, and nothing in it, is skipped."""
    (tmp_path / "shared" / "processors").mkdir(parents=True)
    (tmp_path / "shared" / "data").mkdir()
    asking = [
        *("tests/flow/test_shared_data.py", "tests/plan/test_real_lengths.py", "tests/docs/test_first_batch.py"),
        *("tests/flow/test_real_media.py", "tests/verify/test_command.py"),
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", "real or text", *asking]
    environment = {**os.environ, "LADING_SHARED": str(tmp_path / "shared")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:]
    assert " skipped" in done.stdout.splitlines()[-1]
    assert "in the shared folder" in done.stdout


TABLES = (SOURCE / "families", SOURCE / "fields.py")
"""Where inputs may be listed: what the families declare, and what every batch has."""
AS_PRINTED = {
    ("vlm/neat_packing_vlm.py", ("pixel_values", "image_grid_thw", "image_position_ids", "pixel_values_videos"))
}
"""The order in which a page prints its constant; all names of it come from the families besides."""


def strings_of(node: ast.AST) -> tuple[str, ...]:
    """The strings that a literal lists, by themselves or as keys; those of a text that is split up, too."""
    if isinstance(node, ast.Dict):
        listed = node.keys
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        listed = [*node.elts]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        return tuple(node.value.replace(",", " ").split())
    else:
        return ()
    return tuple(key.value for key in listed if isinstance(key, ast.Constant) and isinstance(key.value, str))


def second_tables(trees: dict[Path, ast.Module]) -> list[str]:
    """Literals that list media inputs which no one family has, and fields of media that no family declares."""
    tables = [set(family.fields) for family in families.all_families()]
    known = set(families.media_inputs())
    found = []
    for path, tree in trees.items():
        if any(path == own or own in path.parents for own in TABLES):
            continue
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            place = str(path.relative_to(SOURCE))
            names = tuple(name for name in strings_of(node) if name in known)
            listed = id(node) not in docstrings and not any(set(names) <= table for table in tables)
            axes = [
                word.value.value
                for word in getattr(node, "keywords", ())
                if word.arg == "axis" and isinstance(word.value, ast.Constant)
            ]
            declared = (
                isinstance(node, ast.Call)
                and getattr(node.func, "id", "") == "Field"
                and axes not in ([], ["token"], ["sample"])
            )
            if (listed and (place, names) not in AS_PRINTED) or declared:
                found.append(f"{place}:{getattr(node, 'lineno', 0)}")
    return found


def test_media_inputs_are_declared_once() -> None:
    assert second_tables(TREES) == []


@pytest.mark.parametrize(
    "code",
    [
        'KEYS = ("image_grid_thw", "image_grid_hws")',
        'KEYS = {"pixel_values": 0, "audio_embed_sizes": 1}',
        'KEYS = "pixel_values audio_embed_sizes".split()',
        'def f():\n    return [name for name in ["num_patches", "grid_thws"]]',
        'OWN = Field(axis="image_patch")',
    ],
)
def test_a_second_table_of_media_inputs_is_noticed(code: str) -> None:
    assert second_tables({SOURCE / "microbatch" / "sneaky.py": ast.parse(code)})
    assert not second_tables({SOURCE / "families" / "sneaky.py": ast.parse(code)})
