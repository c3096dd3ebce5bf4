"""What is to be said of each sample: what a look at the corpus found, and why the ledger does not have it trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from lading.ledger import Ledger
from lading.records import Finding, SampleKey

SAME: Mapping[str, tuple[str, ...]] = {
    "corrupt_media": (
        *("corrupt_picture", "corrupt_clip", "corrupt_sound", "truncated_picture", "truncated_clip"),
        *("unreadable_medium", "undecodable_media", "empty_media", "empty_clip", "empty_sound"),
    ),
    "bad_row": (
        *("bad_message", "tool_calls", "half_character", "unknown_columns"),
        *("not_an_object", "not_utf8", "unreadable_row"),
    ),
    "malformed_json": ("not_utf8",),
    "truncated": ("too_long",),
}
"""What the ledger calls by one name, the doctor calls by several."""


def by_sample(ledger: Ledger, findings: Sequence[Finding] = ()) -> dict[int, list[Finding]]:
    """Findings by the numbers of their samples; those of whole files are not among them."""
    found: dict[int, list[Finding]] = {}
    for entry in ledger.entries():
        own = _finding(entry, str(entry["reason"]), "error", str(entry["detail"]))
        found.setdefault(_key(entry).index, []).append(own)
    for entry in ledger.truncations():
        said = f"kept {entry['kept']:,} of {entry['tokens']:,} tokens: the rest does not fit into a pack"
        found.setdefault(_key(entry).index, []).append(_finding(entry, "truncated", "warning", said))
    for finding in findings:
        if finding.key is None:
            continue
        known = found.setdefault(finding.key.index, [])
        # A sample that was dropped for what was found is not told so twice.
        if not any(finding.kind == other.kind or finding.kind in SAME.get(other.kind, ()) for other in known):
            known.append(finding)
    return found


def _key(entry: Mapping[str, Any]) -> SampleKey:
    return SampleKey(index=int(entry["index"]), source=str(entry["source"]), where=str(entry["where"]))


def _finding(entry: Mapping[str, Any], kind: str, severity: Literal["error", "warning"], detail: str) -> Finding:
    key = _key(entry)
    return Finding(kind=kind, severity=severity, where=key.where, detail=detail, key=key)
