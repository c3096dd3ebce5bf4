"""A copy of a corpus without the rows in which something was found. The original is not touched.

Rows that stay are copied byte by byte; media stay where they are, and the copy's meta file says where that is.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lading.addresses import refuse_writing_to_address
from lading.cache import replacing
from lading.conversation import Layout
from lading.doctor.findings import Findings, left_out_for
from lading.doctor.kinds import KINDS
from lading.doctor.opening import ExaminedCorpus
from lading.errors import ConfigError
from lading.records import Finding
from lading.sources.corpus import Source
from lading.sources.files import refuse_locked
from lading.sources.json_array import SPACE, NoArray, scan_elements
from lading.sources.jsonl import BLANKS
from lading.sources.meta import OPTIONS, SourceConfig, file_names, media_places

META = "meta.json"
LEFT_OUT = "left-out.jsonl"

Kept = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cleaned:
    """What was written."""

    meta: Path
    left_out: Path
    kept_rows: int
    left_out_rows: int


def check_copy(examined: ExaminedCorpus, folder: Path) -> None:
    """Refuse what no copy can be written of, and a folder in which something stands already."""
    refuse_writing_to_address(folder)
    refuse_locked(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(
            found=f"a cleaned copy of {examined.meta} to be written into {folder}, where something is already",
            wanted="a new or empty folder",
            consequence="nothing was written; the original is never touched",
        )
    for source in examined.corpus.sources:
        config = source.config
        if config.hub or config.file.is_dir() or config.file.suffix not in _WRITERS:
            raise ConfigError(
                found=f"data set {config.name} in {config.file}",
                wanted=f"a file ending in {' or '.join(_WRITERS)}, of which a copy can be written",
                consequence="no copy was written",
            )


def write_clean(findings: Findings, folder: Path, *, strict: bool = False) -> Cleaned:
    r"""Write the rows without errors (with `strict`, without any finding), their meta file, and the list of the rest.

    >>> import tempfile
    >>> from lading.doctor import examine
    >>> with tempfile.TemporaryDirectory() as place:
    ...     lines = Path(place) / "talks.jsonl"
    ...     good = '{"messages": [{"role": "user", "content": "1?"}, {"role": "assistant", "content": "1."}]}'
    ...     written = lines.write_text(good + "\nbroken\n")
    ...     copy = write_clean(examine(lines), Path(place) / "clean")
    ...     copy.kept_rows, copy.left_out_rows, (copy.meta.parent / "talks.jsonl").read_text() == good + "\n"
    (1, 1, True)
    """
    examined = findings.examined
    check_copy(examined, folder)
    kept = {name: ~findings.left_out(name, strict=strict) for name in findings.marks}
    sources = zip(examined.corpus.sources, examined.layouts, strict=True)
    staying = [(source.config, layout) for source, layout in sources if kept[source.config.name].any()]
    if not staying:
        raise ConfigError(
            found="no row without a finding", wanted="something to keep", consequence="no copy was written"
        )
    folder.mkdir(parents=True, exist_ok=True)
    names = file_names([config.file.name for config, _ in staying], taken=(META, LEFT_OUT))
    entries: dict[str, Any] = {}
    for (config, layout), name in zip(staying, names, strict=True):
        with replacing(folder / name) as file:
            _WRITERS[config.file.suffix](config.file, kept[config.name], file)
        entries[config.name] = _entry(config, layout, name, folder)
    with replacing(folder / META) as file:
        file.write((json.dumps(entries, indent=2) + "\n").encode())
    _write_left_out(folder / LEFT_OUT, findings, examined.rows.sources, strict=strict)
    rows = sum(int(own.sum()) for own in kept.values())
    return Cleaned(
        meta=folder / META,
        left_out=folder / LEFT_OUT,
        kept_rows=rows,
        left_out_rows=sum(len(own) for own in kept.values()) - rows,
    )


def _entry(config: SourceConfig, layout: Layout, name: str, folder: Path) -> dict[str, Any]:
    stated = {
        option: value for option, value in asdict(config).items() if option in OPTIONS and value not in (None, ())
    }
    # Without the rows that are gone, the first ones might show another format than the one that was read.
    read = {"format": layout.format} if layout.format is not None else {}
    return {**stated, **read, "file_name": name, **media_places(config, folder)}


def _copy_lines(path: Path, kept: Kept, out: BinaryIO) -> None:
    row = 0
    with path.open("rb") as file:
        for line in file:
            if not line.strip(BLANKS + b"\n"):
                continue
            if kept[row]:
                out.write(line if line.endswith(b"\n") else line + b"\n")
            row += 1


def _copy_elements(path: Path, kept: Kept, out: BinaryIO) -> None:
    try:
        pieces = list(_elements(path, kept))
    except NoArray:
        # An array in another encoding than UTF-8: its elements are written anew.
        values = json.loads(path.read_bytes())
        pieces = [json.dumps(values[row]).encode() for row in np.flatnonzero(kept)]
    out.write(b"[\n" + b",\n".join(pieces) + b"\n]\n")


def _elements(path: Path, kept: Kept) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        starts = np.concatenate([found for found, _ in scan_elements(file, path.stat().st_size)])
    with path.open("rb") as file:
        for row in np.flatnonzero(kept):
            file.seek(int(starts[row]))
            yield file.read(int(starts[row + 1] - starts[row])).rstrip(SPACE + b",")


def _copy_groups(path: Path, kept: Kept, out: BinaryIO) -> None:
    parquet, pyarrow = (importlib.import_module(name) for name in ("pyarrow.parquet", "pyarrow"))
    file = parquet.ParquetFile(path)
    first = 0
    with parquet.ParquetWriter(out, file.schema_arrow) as writer:
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            own = kept[first : first + rows]
            first += rows
            # One that cannot be read has no row that is kept.
            if own.any():
                writer.write_table(file.read_row_group(group).filter(pyarrow.array(own)))


_WRITERS: Mapping[str, Callable[[Path, Kept, BinaryIO], None]] = {
    ".jsonl": _copy_lines,
    ".json": _copy_elements,
    ".parquet": _copy_groups,
}


def _write_left_out(path: Path, findings: Findings, sources: tuple[Source, ...], *, strict: bool) -> None:
    """A JSON line for each reason of each row, and for each file, that is not in the copy."""
    found = findings.by_row()
    with replacing(path) as file:
        for finding in findings.findings:
            if finding.kind in ("missing_file", "empty_file", "unreadable_file"):
                file.write(_line(finding.source, finding.where, finding.kind, finding.detail))
        for source in sources:
            name = source.config.name
            for row in np.flatnonzero(findings.left_out(name, strict=strict)):
                where = source.file.where(int(row))
                for kind in findings.kinds_of(name, int(row)):
                    if KINDS[kind].severity in left_out_for(strict=strict):
                        file.write(_line(name, where, kind, _detail(found.get((name, int(row)), []), kind)))


def _detail(found: list[Finding], kind: str) -> str:
    return next((finding.detail for finding in found if finding.kind == kind), "")


def _line(source: str, where: str, kind: str, detail: str) -> bytes:
    line = {"source": source, "where": where, "kind": kind, "detail": detail}
    return (json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
