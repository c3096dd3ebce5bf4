import { backTo, draw, make, percent, plural, precise, whole } from "./dom.js";
import { data, places, shortPlace } from "./data.js";
import { look, sourceName } from "./sources.js";

// One pack: its documents as a strip, who sees whom, and what it costs.
export const COSTS = ["language", "attention", "vision"];
const AT_ONCE = 100;

export function operations(cost) {
  if (!cost) return "0 FLOP";
  const [size, name] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1, ""]].find(([size]) => cost >= size) ?? [1, ""];
  return `${(cost / size).toPrecision(3)} ${name}FLOP`;
}

const width = (tokens) => ({ width: `${(100 * tokens) / data.packs.size}%` });

// The tokens of each source, as wide as there are many; what is free stays empty.
export function strip(pack) {
  return pack.sources.map(([place, tokens]) =>
    make("span", { class: `part ${look(place)}`, style: width(tokens), title: `${data.sources[place]}: ${plural(tokens, "token")}` }),
  );
}

// The same by document. Whoever does not point finds each of them in the table below, so these are no stops for Tab.
function documents(pack, picture, go) {
  return pack.documents.map(([index, tokens, labels, source], place) => {
    const known = places.has(index);
    const said = `sample ${index}, ${data.sources[source]}: ${plural(tokens, "token")}${known ? "" : " (not in this page)"}`;
    return make(
      "button",
      {
        class: `document ${look(source)} ${known ? "" : "dim"}`,
        style: width(tokens),
        title: said,
        "aria-label": said,
        tabindex: -1,
        onclick: () => known && go("samples", index),
        onpointerenter: () => picture.children[place].classList.add("lit"),
        onpointerleave: () => picture.children[place].classList.remove("lit"),
      },
      make("i", { style: { height: `${(100 * labels) / tokens}%` } }),
    );
  });
}

// Rows are tokens, columns what they may see: each document its own past, and nobody else.
function sight(pack) {
  let from = 0;
  const size = data.packs.size;
  const triangles = pack.documents.map(([index, tokens, , source]) => {
    const to = from + tokens;
    const triangle = draw(
      "polygon",
      { class: look(source), points: `${from},${from} ${from},${to} ${to},${to}` },
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

function costRow(name, cost, mean) {
  if (!mean) return make("tr", {}, make("th", {}, name), make("td", { class: "soft", colspan: 2 }, `no pack has ${name} work`));
  const times = cost / mean;
  return make(
    "tr",
    {},
    make("th", {}, name),
    make("td", {}, make("span", { class: "meter" }, make("i", { style: { width: `${Math.min(100, 50 * times)}%` } })), `${times.toFixed(2)} × the mean`),
    make("td", { class: "number soft" }, operations(cost)),
  );
}

function documentRow([index, tokens, labels, source], go) {
  const sample = data.samples[places.get(index)];
  return make(
    "tr",
    {},
    make("td", {}, sample ? make("button", { class: "link", title: sample.where, onclick: () => go("samples", index) }, shortPlace(sample.where)) : `sample ${whole(index)}`),
    make("td", {}, sourceName(source)),
    make("td", { class: "number" }, whole(tokens)),
    make("td", { class: "number" }, percent(labels / tokens)),
  );
}

function table(head, rows) {
  return make("table", {}, make("tr", {}, head.map(([name, kind]) => make("th", { class: kind }, name))), rows);
}

function documentTable(pack, go) {
  const own = table([["sample"], ["source"], ["tokens", "number"], ["trained on", "number"]]);
  const more = make("button", { class: "quiet", onclick: () => add() });
  let shown = 0;
  function add() {
    own.append(...pack.documents.slice(shown, shown + AT_ONCE).map((document) => documentRow(document, go)));
    shown = Math.min(shown + AT_ONCE, pack.documents.length);
    more.textContent = `show more (${whole(pack.documents.length - shown)} are left)`;
    more.hidden = shown === pack.documents.length;
  }
  add();
  return make("section", { class: "scroll" }, make("h2", {}, "Documents"), own, more);
}

function sourceTable(pack) {
  const rows = pack.sources.map(([place, tokens]) =>
    make("tr", {}, make("td", {}, sourceName(place)), make("td", { class: "number" }, whole(tokens)), make("td", { class: "number" }, precise(tokens / pack.tokens))),
  );
  return make("section", { class: "scroll" }, make("h2", {}, "Sources"), table([["source"], ["tokens", "number"], ["of the pack", "number"]], rows));
}

function costTable(pack) {
  return make(
    "section",
    { class: "scroll" },
    make("h2", {}, "What it costs"),
    make(
      "table",
      {},
      COSTS.map((name, column) => costRow(name, pack.costs[column], data.packs.mean[column])),
      make("tr", {}, make("th", {}, "media"), make("td", { colspan: 2 }, `${whole(pack.visual)} visual tokens, ${whole(pack.audio)} of sound`)),
    ),
  );
}

function head(pack) {
  return make(
    "div",
    { class: "head" },
    backTo("pack-list"),
    make("span", { class: "name" }, `pack ${whole(pack.number)}`),
    make("span", { class: "fact" }, `step ${whole(pack.step)}, rank ${whole(pack.rank)}`),
    make("span", { class: "fact" }, make("b", {}, whole(pack.tokens)), ` of ${whole(data.packs.size)} tokens (${precise(pack.tokens / data.packs.size)})`),
    make("span", { class: "fact" }, make("b", {}, percent(pack.labels / pack.tokens)), " trained on"),
    make("span", { class: "fact" }, plural(pack.count, "document")),
  );
}

const note = (text) => make("p", { class: "axis-note long" }, text);

function unnamed(article, pack) {
  article.replaceChildren(
    head(pack),
    make("div", { class: "strip large" }, strip(pack)),
    note("Each block is a source. The documents of this pack are not in this page, which names those of the first steps and of the extreme packs."),
    make("div", { class: "columns" }, costTable(pack), sourceTable(pack)),
  );
}

export function showPack(article, pack, go) {
  article.scrollTop = 0;
  if (!pack.documents) {
    unnamed(article, pack);
    return;
  }
  const picture = sight(pack);
  article.replaceChildren(
    head(pack),
    make("div", { class: "strip large" }, documents(pack, picture, go)),
    note("Each block is a document in the colour of its source, as wide as it is long; the strong part is the share that is trained on."),
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
      make("div", { class: "stack" }, costTable(pack), sourceTable(pack), documentTable(pack, go)),
    ),
  );
}
