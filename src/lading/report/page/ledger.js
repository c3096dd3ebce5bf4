import { byId, make, whole } from "./dom.js";
import { data } from "./data.js";
import { groupsCard } from "./groups.js";
import { sourceName } from "./sources.js";

// The ledger: where every sample went, by source and by reason, and what was found, by name.
const FATES = ["trained", "planned", "replaced", "dropped"];

const fate = (totals, name) => totals[name === "planned" ? "pending" : name];

function flow(totals) {
  return make(
    "div",
    { class: "flow" },
    FATES.filter((name) => fate(totals, name)).map((name) =>
      make("i", { class: name, title: `${name} ${whole(fate(totals, name))}`, style: { width: `${(100 * fate(totals, name)) / totals.input}%` } }),
    ),
  );
}

function sourceRow(name, totals, kind = "") {
  const reasons = Object.entries(totals.reasons).map(([reason, count]) => `${reason} ${whole(count)}`);
  return make(
    "tr",
    { class: kind },
    make("td", {}, name),
    make("td", { class: "number" }, whole(totals.input)),
    make("td", {}, flow(totals)),
    FATES.map((own) => make("td", { class: "number" }, whole(fate(totals, own)))),
    make("td", { class: "number" }, whole(totals.truncated)),
    make("td", { class: "reasons soft" }, reasons.join(", ")),
  );
}

function sources() {
  const names = ["source", "in", "", ...FATES, "truncated", "reasons"];
  const right = new Set(["in", ...FATES, "truncated"]);
  return make(
    "table",
    { id: "ledger-sources" },
    make("tr", {}, names.map((name) => make("th", { class: right.has(name) ? "number" : "" }, name))),
    data.ledger.sources.map((totals, place) => sourceRow(sourceName(place), totals)),
    sourceRow("all", data.ledger.total, "total"),
  );
}

export function showLedger(go) {
  byId("ledger").replaceChildren(
    make(
      "div",
      { class: "cards" },
      make("section", { class: "card wide" }, make("h2", {}, "Where every sample goes"), make("div", { class: "scroll" }, sources())),
      groupsCard(go),
    ),
  );
}
