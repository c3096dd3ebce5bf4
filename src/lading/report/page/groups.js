import { byId, make, percent, plural, whole } from "./dom.js";
import { data, places, shortPlace } from "./data.js";
import { placeOf, sourceName } from "./sources.js";

// What was found: like things in one line, which opens to where they are.
const AT_ONCE = 50;

const matching = (group, text) => (text && !group.head.includes(text) ? group.places.filter((place) => place.words.includes(text)) : group.places);

function prepared(group) {
  const own = group.places.map(([index, where, detail]) => ({ index, where, detail, words: `#${index}\n${where}\n${detail}`.toLowerCase() }));
  return { ...group, places: own, head: `${group.kind}\n${group.source}\n${group.severity}`.toLowerCase() };
}

function placeRow({ index, where, detail }, go) {
  const name = shortPlace(where);
  return make(
    "tr",
    { class: "place" },
    make("td", { class: "narrow" }, places.has(index) ? make("button", { class: "link", title: where, onclick: () => go("samples", index) }, name) : make("span", { title: where }, name)),
    make("td", {}, detail),
  );
}

// The samples of a group that this page shows, where there are any.
function toSamples(group, go) {
  const source = placeOf(group.source);
  const shown = data.samples.filter((sample) => sample.source === source && sample.findings.some(([kind]) => kind === group.kind)).length;
  return shown ? make("button", { class: "link", onclick: () => go.finding(group.kind, source) }, `show ${whole(shown)} among the samples`) : null;
}

function inside(group, found, go) {
  const rows = make("table", { class: "places" });
  const more = make("button", { class: "quiet", onclick: () => add() });
  const unnamed = group.count - group.places.length;
  let shown = 0;
  function add() {
    rows.append(...found.slice(shown, shown + AT_ONCE).map((place) => placeRow(place, go)));
    shown = Math.min(shown + AT_ONCE, found.length);
    more.textContent = `show more (${whole(found.length - shown)} are left)`;
    more.hidden = shown === found.length;
  }
  add();
  return [
    toSamples(group, go),
    make("div", { class: "scroll" }, rows),
    more,
    unnamed ? make("p", { class: "note" }, `… and ${whole(unnamed)} more, not in this page; lading plan --ledger FILE or lading doctor --json names them`) : null,
  ].filter(Boolean);
}

function line(group, found, text) {
  const place = placeOf(group.source);
  const input = data.ledger.sources[place]?.input;
  const share = input ? ` of ${whole(input)} (${percent(group.count / input)})` : "";
  return make(
    "summary",
    {},
    make("span", { class: "count" }, make("b", {}, whole(group.count)), make("span", { class: "soft" }, share)),
    make("span", { class: `kind ${group.severity}` }, group.kind),
    place < 0 && group.source ? make("span", {}, group.source) : sourceName(place),
    make("span", { class: "example" }, text && found.length < group.places.length ? `${whole(found.length)} of ${whole(group.places.length)} named match` : found[0]?.detail),
  );
}

function element(group, found, text, go) {
  const own = make("details", { class: "group", "data-kind": group.kind, "data-source": group.source }, line(group, found, text));
  // What is inside is made when it is first opened: there may be hundreds of groups.
  own.addEventListener("toggle", () => own.open && own.childElementCount === 1 && own.append(...inside(group, found, go)));
  return own;
}

export function groupsCard(go) {
  const { list, left, total } = data.found;
  const title = make("h2", {}, "What was found");
  if (!total) return make("section", { class: "card wide" }, title, make("p", { class: "soft" }, "Nothing: every sample is trained on, and nothing is to be said of any."));
  const groups = list.map(prepared);
  const search = make("input", { type: "search", id: "found-search", placeholder: "Search reason, source, file, detail", "aria-label": "Search what was found", oninput: () => show() });
  const said = make("p", { class: "note", id: "found-count", role: "status" });
  const box = make("div", { id: "groups" });
  const unnamed = total - groups.reduce((sum, group) => sum + group.places.length, 0);
  function show() {
    const text = search.value.trim().toLowerCase();
    const found = groups.map((group) => [group, matching(group, text)]).filter(([, own]) => own.length);
    box.replaceChildren(...found.map(([group, own]) => element(group, own, text, go)));
    const parts = [`${plural(total, "finding")} in ${plural(list.length + left, "group")}, by reason and source.`];
    if (text) parts.push(`${plural(found.length, "group")} match.`);
    if (text && unnamed) parts.push(`${whole(unnamed)} findings are not named in this page, and not searched.`);
    if (left) parts.push(`The smallest ${plural(left, "group")} are not in this page.`);
    said.textContent = parts.join(" ");
  }
  show();
  return make("section", { class: "card wide" }, title, search, said, box);
}

export const findGroups = () => byId("found-search")?.select();
