import { byId, make, plural, precise, reveal, whole } from "./dom.js";
import { data } from "./data.js";
import { VirtualList } from "./list.js";
import { COSTS, operations, showPack, strip } from "./pack.js";
import { fillLegend } from "./sources.js";

// The packs: a list that can be sorted, and the one that is open.
const free = (pack) => data.packs.size - pack.tokens;
const ends = (values) => values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);

// Most packs lack a few tokens, and some lack many: on a scale that grows, 1 can be told from 10, and 10 from 1,000.
const ROOM = {
  kind: "room",
  share: (pack) => Math.log1p(free(pack)) / Math.log1p(data.packs.size),
  says: (pack) => (free(pack) ? `${whole(free(pack))} free` : "full"),
  note: () => `Line: tokens left free, from 0 to ${whole(data.packs.size)}, on a logarithmic scale.`,
};

// Costs are near one another where the plan is balanced: the line goes from the least to the most of them.
function cost(name, column) {
  const [least, most] = ends(data.packs.list.map((pack) => pack.costs[column]));
  return {
    kind: "work",
    share: (pack) => (most > least ? (pack.costs[column] - least) / (most - least) : 1),
    says: (pack) => operations(pack.costs[column]),
    note: () => (most > least ? `Line: ${name} work, from ${operations(least)} to ${operations(most)}.` : `All packs have the same ${name} work.`),
  };
}

// The largest source of a pack; among packs of the same, those that are most of it come first.
function main(pack) {
  const [place, tokens] = pack.sources.reduce((one, other) => (other[1] > one[1] ? other : one), [data.sources.length, 0]);
  return place + 1 - tokens / (pack.tokens + 1);
}

const ORDERS = {
  training: { name: "order of training", by: (pack) => pack.step * data.packs.ranks + pack.rank },
  fill: { name: "fill, emptiest first", by: (pack) => pack.tokens },
  ...Object.fromEntries(COSTS.map((name, column) => [name, { name: `${name} work, most first`, by: (pack) => -pack.costs[column], column }])),
  source: { name: "source", by: main },
  number: { name: "number", by: (pack) => pack.number },
};

function row(pack, measure) {
  const fill = precise(pack.tokens / data.packs.size);
  const mix = pack.sources.map(([place, tokens]) => `${data.sources[place]} ${precise(tokens / pack.tokens)}`);
  return make(
    "div",
    { class: "row pack-row", "data-number": pack.number, "aria-label": `pack ${pack.number}, ${fill} full, ${measure.says(pack)}; ${mix.join(", ")}` },
    make("div", { class: "number" }, `#${whole(pack.number)}`),
    make("div", { class: "strip" }, strip(pack)),
    make("div", { class: "fill" }, fill),
    make("div", { class: `measure ${measure.kind}` }, make("i", { style: { width: `${(100 * measure.share(pack)).toFixed(2)}%` } })),
    make("div", { class: "says" }, measure.says(pack)),
  );
}

export class PacksView {
  constructor(go) {
    const { list, total } = data.packs;
    this.measure = ROOM;
    this.list = new VirtualList(byId("pack-list"), {
      height: 52,
      row: (pack) => row(pack, this.measure),
      open: (pack) => {
        showPack(byId("pack"), pack, go);
        go.note("packs", pack.number);
      },
      chosen: () => reveal(byId("pack")),
    });
    byId("pack-count").textContent =
      list.length < total ? `${whole(list.length)} of ${plural(total, "pack")}: those of the first steps, and the extremes of all` : plural(total, "pack");
    byId("sort").append(...Object.entries(ORDERS).filter(([, { column }]) => !(data.packs.mean[column] === 0)).map(([value, { name }]) => make("option", { value }, name)));
    byId("sort").addEventListener("input", () => this.sort());
    byId("reverse").addEventListener("click", () => this.reverse());
    byId("sorting").hidden = !list.length;
    fillLegend(byId("pack-sources"));
    this.arrange();
    if (!list.length) byId("pack").replaceChildren(make("p", { class: "empty" }, "No sample fits into a pack."));
  }

  arrange() {
    const { by, column } = ORDERS[byId("sort").value];
    const sign = byId("reverse").getAttribute("aria-pressed") === "true" ? -1 : 1;
    this.measure = column === undefined ? ROOM : cost(COSTS[column], column);
    byId("measure-note").textContent = data.packs.list.length ? this.measure.note() : "";
    const keys = new Map(data.packs.list.map((pack) => [pack, by(pack)]));
    this.list.set([...data.packs.list].sort((one, other) => sign * (keys.get(one) - keys.get(other)) || one.number - other.number));
  }

  sort() {
    this.arrange();
    this.list.select(0);
  }

  reverse() {
    const button = byId("reverse");
    button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") !== "true");
    this.sort();
  }

  show(number) {
    const at = this.list.items.findIndex((pack) => pack.number === number);
    if (at >= 0 || this.list.at < 0) this.list.select(Math.max(0, at));
  }

  step(by) {
    this.list.step(by);
  }
}
