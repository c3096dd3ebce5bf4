import { byId, draw, make, percent, plural, whole } from "./dom.js";
import { data, places, shortPlace } from "./data.js";
import { VirtualList } from "./list.js";

// The packs: documents as a strip, who sees whom, and what it costs.
const COSTS = ["language", "attention", "vision"];

const tokensIn = (pack) => pack.documents.reduce((sum, [, tokens]) => sum + tokens, 0);
const labelsIn = (pack) => pack.documents.reduce((sum, [, , labels]) => sum + labels, 0);

function strip(pack, documentElement) {
  return pack.documents.map((document, place) => {
    const [, tokens, labels] = document;
    const element = documentElement(document, place);
    element.style.width = `${(100 * tokens) / data.packs.size}%`;
    element.append(make("i", { style: { height: `${(100 * labels) / tokens}%` } }));
    return element;
  });
}

function row(pack) {
  return make(
    "div",
    { class: "row pack-row", "data-number": pack.number },
    make("div", { class: "number" }, `#${whole(pack.number)}`),
    make("div", { class: "strip" }, strip(pack, () => make("span", { class: "document" }))),
    make("div", { class: "fill" }, percent(tokensIn(pack) / data.packs.size)),
  );
}

// Rows are tokens, columns what they may see: each document its own past, and nobody else.
function sight(pack) {
  let from = 0;
  const size = data.packs.size;
  const triangles = pack.documents.map(([index, tokens]) => {
    const to = from + tokens;
    const triangle = draw(
      "polygon",
      { points: `${from},${from} ${from},${to} ${to},${to}` },
      draw("title", {}, `sample ${index}: tokens ${from} to ${to - 1} see each other's past`),
    );
    from = to;
    return triangle;
  });
  return draw(
    "svg",
    { class: "sight", viewBox: `0 0 ${size} ${size}`, preserveAspectRatio: "none", role: "img", "aria-label": "Who sees whom" },
    triangles,
  );
}

function operations(cost) {
  const [size, name] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1, ""]].find(([size]) => cost >= size) ?? [1, ""];
  return `${(cost / size).toPrecision(3)} ${name}FLOP`;
}

function costRow(name, cost, mean) {
  const times = mean ? cost / mean : 0;
  return make(
    "tr",
    {},
    make("th", {}, name),
    make("td", {}, make("span", { class: "meter" }, make("i", { style: { width: `${Math.min(100, 50 * times)}%` } })), `${times.toFixed(2)} × the mean`),
    make("td", { class: "number soft" }, operations(cost)),
  );
}

function documentRow([index, tokens, labels], go) {
  const place = places.get(index);
  const sample = data.samples[place];
  return make(
    "tr",
    {},
    make("td", {}, sample ? make("button", { class: "link", title: sample.where, onclick: () => go("samples", index) }, shortPlace(sample.where)) : `sample ${whole(index)}`),
    make("td", { class: "number" }, whole(tokens)),
    make("td", { class: "number" }, percent(labels / tokens)),
  );
}

function table(head, rows) {
  return make(
    "table",
    {},
    head ? make("tr", {}, head.map((name, place) => make("th", { class: place ? "number" : "" }, name))) : null,
    rows,
  );
}

export function showPack(article, pack, go) {
  const tokens = tokensIn(pack);
  const labels = labelsIn(pack);
  const picture = sight(pack);
  const large = strip(pack, ([index, own], place) => {
    const known = places.has(index);
    return make("button", {
      class: `document ${known ? "" : "dim"}`,
      title: `sample ${index}: ${plural(own, "token")}${known ? "" : " (not in this page)"}`,
      onclick: () => known && go("samples", index),
      onpointerenter: () => picture.children[place].classList.add("lit"),
      onpointerleave: () => picture.children[place].classList.remove("lit"),
    });
  });
  article.replaceChildren(
    make(
      "div",
      { class: "head" },
      make("span", { class: "name" }, `pack ${whole(pack.number)}`),
      make("span", { class: "fact" }, `step ${whole(pack.step)}, rank ${whole(pack.rank)}`),
      make("span", { class: "fact" }, make("b", {}, whole(tokens)), ` of ${whole(data.packs.size)} tokens (${percent(tokens / data.packs.size)})`),
      make("span", { class: "fact" }, make("b", {}, percent(labels / tokens)), " trained on"),
      make("span", { class: "fact" }, plural(pack.documents.length, "document")),
    ),
    make("div", { class: "strip large" }, large),
    make("p", { class: "axis-note", style: { maxWidth: "none" } }, "Each block is a document, as wide as it is long; the green part is the share that is trained on."),
    make(
      "div",
      { class: "columns" },
      make(
        "section",
        {},
        make("h2", {}, "Who sees whom"),
        picture,
        make("p", { class: "axis-note" }, "Down: tokens. Across: what each may see. A document sees its own past and nobody else's. ", data.about.sight),
      ),
      make(
        "section",
        {},
        make("h2", {}, "What it costs"),
        table(null, [
          ...COSTS.map((name, column) => costRow(name, pack.costs[column], data.packs.mean[column])),
          make("tr", {}, make("th", {}, "media"), make("td", {}, `${whole(pack.visual)} visual tokens, ${whole(pack.audio)} of sound`), make("td")),
        ]),
        make("h2", { style: { marginTop: "1.5rem" } }, "Documents"),
        table(["sample", "tokens", "trained on"], pack.documents.map((document) => documentRow(document, go))),
      ),
    ),
  );
  article.scrollTop = 0;
}

export class PacksView {
  constructor(go) {
    const { list, total } = data.packs;
    this.list = new VirtualList(byId("pack-list"), {
      height: 36,
      row,
      open: (pack) => {
        showPack(byId("pack"), pack, go);
        go.note("packs", pack.number);
      },
    });
    byId("pack-count").textContent =
      list.length < total ? `${whole(list.length)} of ${plural(total, "pack")}, those of the first steps` : `${plural(total, "pack")}, in the order of training`;
    this.list.set(list);
    if (!list.length) byId("pack").replaceChildren(make("p", { class: "empty" }, "No sample fits into a pack."));
  }

  show(number) {
    const at = data.packs.list.findIndex((pack) => pack.number === number);
    if (at >= 0 || this.list.at < 0) this.list.select(Math.max(0, at));
  }

  step(by) {
    this.list.step(by);
  }
}
