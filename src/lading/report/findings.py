"""The findings of each sample: what the doctor found in it, and why the ledger says that it is not trained on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from lading.ledger import Ledger
from lading.records import Finding, SampleKey, Severity

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
GROUPS = 400
"""Groups of like findings in the page."""
PLACES = 200
"""Findings of a group that the page names."""
NAMED = 4000
"""Findings that it names of all groups together."""

SAME_FAULT: Mapping[str, tuple[str, ...]] = {
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
        by = f" (replaced by {', '.join(map(str, others))})" if isinstance(others := entry.get("by"), list) else ""
        own = _finding(entry, str(entry["reason"]), "error", f"{entry['detail']}{by}")
        found.setdefault(_key(entry).index, []).append(own)
    for entry in ledger.truncations():
        detail = f"kept {entry['kept']:,} of {entry['tokens']:,} tokens: the rest does not fit into a pack"
        found.setdefault(_key(entry).index, []).append(_finding(entry, "truncated", "warning", detail))
    for finding in findings:
        if finding.key is None:
            continue
        known = found.setdefault(finding.key.index, [])
        # What a sample was dropped for is not shown twice.
        if not any(finding.kind == other.kind or finding.kind in SAME_FAULT.get(other.kind, ()) for other in known):
            known.append(finding)
    return found


def _key(entry: Mapping[str, Any]) -> SampleKey:
    return SampleKey(index=int(entry["index"]), source=str(entry["source"]), where=str(entry["where"]))


def _finding(entry: Mapping[str, Any], kind: str, severity: Severity, detail: str) -> Finding:
    key = _key(entry)
    return Finding(kind=kind, severity=severity, where=key.where, detail=detail, key=key)


def grouped(findings: Iterable[Finding]) -> dict[str, Any]:
    """Like findings in one group: its kind, its source, how many there are, and the first of them by name.

    >>> rows = [Finding(kind="empty", severity="error", where=f"a:{row}", detail="", source="a") for row in range(900)]
    >>> only, = grouped(rows)["list"]
    >>> only["kind"], only["source"], only["count"], len(only["places"])
    ('empty', 'a', 900, 200)
    """
    groups: dict[tuple[Severity, str, str], list[Finding]] = {}
    for finding in findings:
        source = finding.key.source if finding.key else finding.source
        groups.setdefault((finding.severity, finding.kind, source), []).append(finding)
    # What costs samples comes first, and what there is most of.
    ranked = sorted(groups.items(), key=lambda item: (SEVERITIES.index(item[0][0]), -len(item[1]), item[0]))
    each = min(PLACES, NAMED // max(1, len(ranked[:GROUPS])))
    listed = [
        {"kind": kind, "severity": severity, "source": source, "count": len(own), "places": _places(own[:each])}
        for (severity, kind, source), own in ranked[:GROUPS]
    ]
    return {"list": listed, "left": max(0, len(ranked) - GROUPS), "total": sum(map(len, groups.values()))}


def _places(findings: Sequence[Finding]) -> list[list[Any]]:
    """The number of the sample, or -1 where none shows it; its place; the detail."""
    return [[finding.key.index if finding.key else -1, finding.where, finding.detail] for finding in findings]
