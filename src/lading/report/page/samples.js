import { byId, make, plural, reveal, whole } from "./dom.js";
import { address, data, mediaOf, places, severity, shortPlace } from "./data.js";
import { clearFilters, filtered, startFilters } from "./filters.js";
import { VirtualList } from "./list.js";
import { showSample } from "./sample.js";
import { chip, fillLegend } from "./sources.js";

// The samples: a list with filters, and the one that is open.
const SIGNS = { video: "clip", audio: "♪" };
const LETTERS = 90;

function preview(sample) {
  const [first] = sample.findings;
  if (first?.[1] === "error") return `${first[0]}: ${first[2]}`;
  const said = sample.turns.flatMap((turn) => turn.parts.filter((part) => typeof part === "string"));
  return said.join(" ").slice(0, LETTERS);
}

function small(sample) {
  const media = mediaOf(sample);
  const seen = media.find((part) => part.pictures.length);
  if (seen) return make("img", { src: address(seen.pictures[0]), alt: "" });
  return media.length ? (SIGNS[media[0].kind] ?? "?") : "text";
}

function row(sample) {
  const how = severity(sample);
  return make(
    "div",
    { class: `row sample-row ${how}`, "data-index": sample.index },
    make("div", { class: "small" }, small(sample)),
    make("div", { class: "where", title: data.sources[sample.source] }, chip(sample.source), shortPlace(sample.where)),
    make("div", { class: "length" }, sample.length ? whole(sample.length) : "—"),
    make("div", { class: `says ${how === "error" ? "error" : ""}` }, preview(sample)),
  );
}

export class SamplesView {
  constructor(go) {
    this.go = go;
    this.list = new VirtualList(byId("sample-list"), {
      height: 58,
      row,
      open: (sample) => {
        showSample(byId("sample"), sample, go);
        go.note("samples", sample.index);
      },
      chosen: () => reveal(byId("sample")),
    });
    fillLegend(byId("sample-sources"));
    startFilters(() => this.filter());
    this.filter();
  }

  filter() {
    const found = filtered();
    this.list.set(found);
    const all = data.samples.length < data.about.samples ? ` (of ${whole(data.about.samples)} in the corpus)` : "";
    byId("count").textContent = `${whole(found.length)} of ${plural(data.samples.length, "sample")}${all}`;
    if (!found.length) byId("sample").replaceChildren(make("p", { class: "empty" }, this.nothing()));
    else if (this.list.at < 0) this.list.select(0);
  }

  nothing() {
    return data.samples.length ? "No sample is like that." : "No samples are in this report.";
  }

  show(index) {
    if (index === undefined || !places.has(index)) return;
    if (!this.list.items.includes(data.samples[places.get(index)])) {
      clearFilters();
      this.filter();
    }
    this.list.select(this.list.items.indexOf(data.samples[places.get(index)]));
  }

  withFinding(kind, source) {
    clearFilters(kind, source);
    this.filter();
  }

  step(by) {
    this.list.step(by);
  }
}
