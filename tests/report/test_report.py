import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lading import Loader, report, toy
from lading.doctor import KINDS, examine
from lading.errors import Reason
from lading.ledger import Ledger
from lading.plan import make_plan, plan_stats
from lading.records import Dropped, Finding, SampleKey
from lading.report.findings import GROUPS, NAMED, SAME_FAULT, by_sample, grouped
from lading.report.html import MODULES
from lading.report.plan import pack_data
from tests.plan.test_plan import table
from tests.support.shared import ROOT

PAGE = ROOT / "src" / "lading" / "report" / "page"


class Checker(HTMLParser):
    """Collects what a page would fetch, its scripts, and its data."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.scripts: list[dict[str, str | None]] = []
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [str(value) for name, value in attrs if name in ("src", "href")]
        if tag == "script":
            self.scripts.append(dict(attrs))
            self.inside.append("")

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script":
            self.inside[-1] += data


def read(path: Path) -> tuple[Checker, dict[str, Any]]:
    page = Checker()
    page.feed(path.read_text(encoding="utf-8"))
    return page, json.loads(page.inside[0])


def written(loader: Loader, path: Path, **more: Any) -> tuple[Checker, dict[str, Any]]:
    books = {"lengths": loader.lengths, "plan": loader.plan, "ledger": loader.ledger}
    shown = report.gather(loader.samples, **books, findings=more.get("findings", ()))
    assert report.write(path, stats=loader.stats, shown=shown, **books, **more) == path.stat().st_size
    return read(path)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Loader:
    meta = toy.write_corpus(tmp_path_factory.mktemp("faulty"), samples=30, faults=True)
    return Loader(meta, "toy:qwen2_5_vl", pack_size=256, world_size=2, rank=0)


def test_one_file_that_fetches_nothing(faulty: Loader, tmp_path: Path) -> None:
    page, data = written(faulty, tmp_path / "deep" / "report.html", losses=[3.0, float("nan"), 1.0])
    assert page.fetched == ["data:,"]
    assert [script["type"] for script in page.scripts] == ["application/json", "application/json", "module"]
    assert data["plan"]["stats"]["fill"] == faulty.stats.fill
    assert data["losses"] == [3.0, 1.0]
    assert [sample["index"] for sample in data["samples"]] == list(range(32))


def test_what_is_left_out_is_shown_with_its_reason(faulty: Loader, tmp_path: Path) -> None:
    _, data = written(faulty, tmp_path / "report.html")
    dropped = {sample["findings"][0][0]: sample for sample in data["samples"] if sample["findings"]}
    assert set(dropped) == {"missing_media", "malformed_json"}
    missing = dropped["missing_media"]
    assert "no-such-picture.png" in missing["findings"][0][2]
    assert missing["turns"][0]["parts"][1] == "Who is this?"
    assert "no-such-picture.png" in missing["turns"][0]["parts"][0]["trouble"]
    assert missing["pack"] == -1
    assert dropped["malformed_json"]["turns"] == []
    assert data["ledger"]["total"] == faulty.ledger.total()


def test_packs_are_those_of_the_plan(faulty: Loader, tmp_path: Path) -> None:
    _, data = written(faulty, tmp_path / "report.html")
    assert {pack["number"] for pack in data["packs"]["list"]} == set(range(len(faulty.plan)))
    for pack in data["packs"]["list"]:
        assert faulty.plan.order[pack["step"], pack["rank"]] == pack["number"]
        assert [index for index, *_ in pack["documents"]] == faulty.plan.pack(pack["number"]).tolist()
        for index, *_ in pack["documents"]:
            assert data["samples"][index]["pack"] == pack["number"]
        sources = faulty.lengths.source[faulty.plan.pack(pack["number"])]
        assert [source for *_, source in pack["documents"]] == sources.tolist()
        tokens = sum(tokens for _, tokens, *_ in pack["documents"])
        assert tokens == sum(own for _, own in pack["sources"]) == faulty.plan.tokens[pack["number"]]


def test_findings_join_what_the_ledger_says(faulty: Loader, tmp_path: Path) -> None:
    def found(index: int, kind: str) -> Finding:
        key = faulty.samples.corpus.key(index)
        return Finding(kind=kind, severity="warning", where=key.where, detail=f"seen in {index}", key=key)

    whole_file = Finding(kind="encoding", severity="warning", where="shapes.jsonl", detail="starts with a BOM")
    findings = [found(3, "odd_ratio"), found(12, "missing_media"), whole_file]
    _, data = written(faulty, tmp_path / "report.html", findings=findings)
    assert data["samples"][3]["findings"] == [["odd_ratio", "warning", "seen in 3"]]
    kinds = [kind for kind, _, _ in data["samples"][12]["findings"]]
    assert kinds == ["missing_media"], "what the ledger says already is not said twice"
    groups = {(group["kind"], group["source"]): group for group in data["found"]["list"]}
    assert groups["encoding", ""]["places"] == [[-1, "shapes.jsonl", "starts with a BOM"]]
    assert groups["missing_media", "shapes"]["count"] == 1, "nor in the groups"
    assert data["found"]["total"] == sum(group["count"] for group in groups.values()) == 4


def test_what_no_sample_shows_is_named_up_to_a_bound(faulty: Loader, tmp_path: Path) -> None:
    rows = [
        Finding(kind="duplicate_sample", severity="warning", where=f"{source}.jsonl:{line}", detail="", source=source)
        for source in ("shapes", "talks")
        for line in range(612)
    ]
    groups = written(faulty, tmp_path / "report.html", findings=rows)[1]["found"]["list"]
    twice = [group for group in groups if group["kind"] == "duplicate_sample"]
    assert [(group["source"], group["count"], len(group["places"])) for group in twice] == [
        ("shapes", 612, 200),
        ("talks", 612, 200),
    ]


def test_very_many_groups_stay_bounded_and_the_largest_are_kept() -> None:
    rows = [
        Finding(kind="duplicate_sample", severity="notice", where="rows.jsonl", detail="", source=f"source-{number}")
        for number in range(GROUPS + 7)
        for _ in range(2 if number == GROUPS else 1)
    ]
    found = grouped(rows)
    assert (len(found["list"]), found["left"], found["total"]) == (GROUPS, 7, len(rows))
    assert found["list"][0]["source"] == f"source-{GROUPS}"
    assert sum(len(group["places"]) for group in found["list"]) <= NAMED


def test_the_extreme_packs_of_a_large_plan_are_in_the_page() -> None:
    lengths = table(np.random.default_rng(3).integers(1, 100, 6000).tolist())
    plan = make_plan(lengths, pack_size=100, world_size=4)
    data = pack_data(plan, lengths, packs=320, documents=500)
    numbers = [pack["number"] for pack in data["list"]]
    assert data["total"] == len(plan) > 320 == len(numbers) == len(set(numbers))
    assert {int(plan.tokens.argmin()), *plan.costs[:, :2].argmax(axis=0).tolist()} <= set(numbers)
    assert set(plan.order.ravel()[:200].tolist()) <= set(numbers)
    for pack in data["list"]:
        assert plan.order[pack["step"], pack["rank"]] == pack["number"]
    named = [pack for pack in data["list"] if "documents" in pack]
    assert 400 < sum(len(pack["documents"]) for pack in named) <= 500
    assert "documents" in data["list"][numbers.index(int(plan.tokens.argmin()))]


def test_who_replaced_a_sample_is_told(faulty: Loader) -> None:
    key, other = faulty.samples.corpus.key(3), faulty.samples.corpus.key(4)
    ledger = Ledger.open(faulty.lengths)
    ledger.dropped(Dropped(key=key, reason=Reason.CORRUPT_MEDIA, detail="torn", by=(other,)))
    assert by_sample(ledger)[3][0].detail == f"torn (replaced by {other})"


def test_what_the_doctor_calls_otherwise_is_not_told_twice(tmp_path: Path) -> None:
    (tmp_path / "torn.png").write_bytes(b"\x89PNG, and no more")
    talk = [{"from": "human", "value": "<image>Who?"}, {"from": "gpt", "value": "Ada."}]
    asked = {"from": "human", "value": "Hi"}
    talks = [[asked, {"from": "gpt"}], [asked, talk[1]]]
    rows = [{"conversations": talk, "images": ["torn.png"]}, *({"conversations": own} for own in talks)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    findings = examine(path, workers=0).findings
    assert {finding.kind for finding in findings} >= {"corrupt_picture", "bad_message"}
    loader = Loader(path, "toy:qwen2_5_vl", pack_size=256)
    _, data = written(loader, tmp_path / "report.html", findings=findings)
    told = [[kind for kind, severity, _ in sample["findings"] if severity == "error"] for sample in data["samples"]]
    assert told == [["corrupt_media"], ["bad_row"], []]


def test_every_kind_that_is_the_same_exists() -> None:
    assert {kind for kinds in SAME_FAULT.values() for kind in kinds} <= set(KINDS)
    assert set(SAME_FAULT) <= {*map(str, Reason), "truncated"}


def test_no_text_can_leave_its_place(tmp_path: Path) -> None:
    evil = "</script><script>document.title='taken'</script><!--<script> \u2028 & <b>"
    row = {
        "conversations": [{"from": "human", "value": evil}, {"from": "gpt", "value": f"{evil} yes"}],
        "id": "half a character: \ud800",
    }
    path = tmp_path / "evil.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    loader = Loader(path, "toy:qwen2_5_vl", pack_size=512)
    page, data = written(loader, tmp_path / "report.html", title=evil)
    assert len(page.scripts) == 3
    assert data["samples"][0]["turns"][0]["parts"] == [evil]
    words = [data["vocabulary"][place][1] for place in data["samples"][0]["tokens"]]
    assert evil.split("\u2028", maxsplit=1)[0] in "".join(words)


def test_half_a_character_in_a_name_can_be_written(tmp_path: Path) -> None:
    lengths = table([5])
    key = SampleKey(index=0, source="s", where="a\udcff.jsonl:1")
    finding = Finding(kind="encoding", severity="error", where=key.where, detail="a\udcff")
    plan = make_plan(lengths, pack_size=8)
    books = {"stats": plan_stats(plan, lengths), "lengths": lengths, "plan": plan, "ledger": Ledger.open(lengths)}
    report.write(tmp_path / "r.html", **books, findings=[finding])
    assert read(tmp_path / "r.html")[1]["found"]["list"][0]["places"][0][1] == "a\udcff.jsonl:1"


def test_an_empty_plan_has_a_page_too(tmp_path: Path) -> None:
    nothing = table([])
    plan = make_plan(nothing, pack_size=256)
    stats = plan_stats(plan, nothing)
    report.write(str(tmp_path / "r.html"), stats=stats, lengths=nothing, plan=plan, ledger=Ledger.open(nothing))
    _, data = read(tmp_path / "r.html")
    assert data["plan"]["room"]["counts"] == data["packs"]["list"] == data["samples"] == []


def test_every_module_of_the_page_is_in_it() -> None:
    assert sorted(MODULES) == sorted(path.stem for path in PAGE.glob("*.js"))
    for place, name in enumerate(MODULES):
        source = (PAGE / f"{name}.js").read_text(encoding="utf-8")
        used = {
            line.split('"./')[1].removesuffix('.js";') for line in source.splitlines() if line.startswith("import ")
        }
        assert used <= set(MODULES[:place]), f"{name}.js uses a module that comes later"
        assert "innerHTML" not in source
