"""The driver: `python -m benchmarks.run [--small] [--row NAME …]`. Each run of each side is a process of its own."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from benchmarks import documents, inputs, rows
from benchmarks.picture import picture
from benchmarks.reference import PACKAGES, Reference
from benchmarks.result import RowResult
from benchmarks.row import Job, Rival, Row
from benchmarks.table import table

ROOT = Path(__file__).parents[1]
OURS = ("lading", "torch", "transformers", "tokenizers", "numpy", "pillow")
MAKERS = (Path(inputs.__file__), Path(documents.__file__))
"""Code that rows make their inputs with: when it changes, they are made anew."""
LIMIT = 3600
"""Seconds after which a run is given up."""


class RunFailed(Exception):
    """A side ended with an error."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """Where things are, and what is asked for."""

    work: Path
    out: Path
    small: bool
    repeats: int | None
    reference: Reference
    shared: Path | None

    def job(self, name: str) -> Job:
        """The job of one row, with an empty scratch folder."""
        place = self.work / ("small" if self.small else "full")
        scratch = place / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        folders = {"inputs": place / name, "common": place / "common", "scratch": scratch}
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        return Job(**folders, small=self.small, shared=self.shared)

    def run_row(self, name: str) -> RowResult:
        """Prepare, then run the sides in turn."""
        module = import_module(f"benchmarks.rows.{name}")
        row: Row = module.ROW
        missing = {
            rival.name: why for rival in row.rivals if (why := self.reference.why_not(rival.package)) is not None
        }
        if row.needs_shared and self.shared is None:
            return RowResult(name=name, row=row, ours=[], theirs={}, missing={"ours": "no shared folder"})
        self._prepare(module, name)
        ours: list[Mapping[str, float]] = []
        theirs: dict[str, list[Mapping[str, float]]] = {rival.name: [] for rival in row.rivals}
        for _ in range(1 if self.small else self.repeats or row.repeats):
            ours.append(self._run(name, "ours", Path(sys.executable)))
            for rival in row.rivals:
                if rival.name not in missing:
                    self._run_rival(name, rival, theirs[rival.name], missing)
        return RowResult(name=name, row=row, ours=ours, theirs=theirs, missing=missing)

    def _run_rival(self, name: str, rival: Rival, runs: list[Mapping[str, float]], missing: dict[str, str]) -> None:
        """One run of theirs; if it fails, the row goes on without it, and says so."""
        try:
            runs.append(self._run(name, rival.call, self.reference.python))
        except RunFailed as failure:
            runs.clear()
            missing[rival.name] = str(failure)

    def _prepare(self, module: ModuleType, name: str) -> None:
        """Make the inputs, unless they were made by the same code before."""
        job = self.job(name)
        code = b"".join(path.read_bytes() for path in (Path(str(module.__file__)), *MAKERS))
        stamp, mark = job.inputs / "made-by", sha256(code).hexdigest()
        if not stamp.exists() or stamp.read_text(encoding="ascii") != mark:
            shutil.rmtree(job.inputs)
            job.inputs.mkdir()
            inputs.processor_folder(job)
            module.prepare(job)
            stamp.write_text(mark, encoding="ascii")

    def _run(self, name: str, function: str, python: Path) -> Mapping[str, float]:
        job = self.job(name)
        _warm(job.inputs)
        said, out = job.scratch / "job.json", job.scratch / "figures.json"
        said.write_text(json.dumps({**asdict(job)}, default=str), encoding="utf-8")
        path = [str(ROOT), str(ROOT / "src")] if function == "ours" else [str(ROOT)]
        # What an earlier run kept (lengths, say) must not make this one look faster.
        caches = {"LADING_CACHE": str(job.scratch / "cache"), "XDG_CACHE_HOME": str(job.scratch / "cache")}
        environment = {**os.environ, **caches, "PYTHONPATH": os.pathsep.join(path), "HF_HUB_OFFLINE": "1"}
        start = time.perf_counter()
        done = subprocess.run(
            [str(python), "-m", "benchmarks.child", name, function, str(said), str(out)],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        if done.returncode:
            _say(done.stderr[-4000:])
            raise RunFailed(
                f"{function} of {name} ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
            )
        _say(f"  {name} {function}: {time.perf_counter() - start:.1f} s")
        figures: Mapping[str, float] = json.loads(out.read_text(encoding="utf-8"))
        return figures


def _warm(folder: Path) -> None:
    """Read every input once, so that both sides find them in the file cache."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                while file.read(1 << 24):
                    pass


def record(bench: Bench, results: Sequence[RowResult], when: datetime) -> dict[str, object]:
    """Everything there is to know about this run, for the JSON file."""
    return {
        "date": when.isoformat(timespec="seconds"),
        "size": "small" if bench.small else "full",
        "processor": inputs.REAL_PROCESSOR if bench.shared and not bench.small else "toy",
        "machine": {"processor": _processor(), "cores": os.cpu_count(), "python": platform.python_version()},
        "versions": {name: version(name) for name in OURS},
        "commit": _commit(),
        "reference": {name: bench.reference.version(name) for name in PACKAGES},
        "rows": [
            {
                "name": result.name,
                "title": result.row.title,
                "what": result.row.what,
                "bound": result.row.bound,
                "missing": result.missing,
                "lines": [asdict(line) for line in result.lines(judge=not bench.small)],
                "runs": {"ours": result.ours, **result.theirs},
            }
            for result in results
        ],
    }


def _commit() -> str:
    """Which commit ran, and whether anything in it was changed; nothing where that is not known."""
    git = ["git", "-C", str(ROOT)]
    try:
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return commit + (", changed" if changed.stdout.strip() else "")


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _shared() -> Path | None:
    """The folder with the real processor and the real conversations; one of that name may hold anything."""
    folder = Path(os.environ.get("LADING_SHARED", ROOT.parent / "shared"))
    wanted = (folder / "processors" / inputs.REAL_PROCESSOR / "tokenizer.json", folder / "data" / "alpaca_en_demo.json")
    return folder.resolve() if all(path.is_file() for path in wanted) else None


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--small", action="store_true", help="small inputs, one run each: to see that it works")
    parser.add_argument("--row", action="append", help="only rows whose name contains this; may be said again")
    parser.add_argument("--repeats", type=int, help="runs of each side, instead of the row's own number")
    parser.add_argument("--no-install", action="store_true", help="do not install the reference where it is missing")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench", help="folder for inputs")
    parser.add_argument("--reference", type=Path, default=ROOT / "build" / "bench-reference", help="its environment")
    parser.add_argument("--out", type=Path, help="folder for the results (whole runs of full size: benchmarks/results)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, print, write."""
    asked = _options(arguments)
    bench = Bench(
        work=asked.work.resolve(),
        # Results of a small run, or of some rows alone, do not belong among those that are kept.
        out=asked.out or (asked.work if asked.small or asked.row else ROOT / "benchmarks") / "results",
        small=asked.small,
        repeats=asked.repeats,
        reference=Reference(asked.reference.absolute()),
        shared=_shared(),
    )
    if not asked.no_install:
        bench.reference.install()
    chosen = [name for name in rows.names() if not asked.row or any(part in name for part in asked.row)]
    results = [bench.run_row(name) for name in chosen]
    when = datetime.now(UTC)
    written = record(bench, results, when)
    versions = ", ".join(
        f"{name} {bench.reference.version(name)}" for name in PACKAGES if bench.reference.version(name)
    )
    _say(table(results, judge=not bench.small))
    _say(f"\nours: lading {version('lading')}; theirs: {versions or 'not installed'}")
    bench.out.mkdir(parents=True, exist_ok=True)
    stem = bench.out / f"{when:%Y-%m-%d}"
    stem.with_suffix(".json").write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = [line for result in results for line in result.lines(judge=not bench.small)]
    heading = f"lading {version('lading')} against NeMo Automodel {PACKAGES['nemo-automodel']}, {when:%Y-%m-%d}"
    stem.with_suffix(".svg").write_text(picture(lines, heading=heading), encoding="utf-8")
    _say(f"written: {stem}.json, {stem}.svg")


if __name__ == "__main__":
    main()
