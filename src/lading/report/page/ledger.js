import { byId, make, percent, whole } from "./dom.js";
import { data, places, shortPlace } from "./data.js";

// The ledger: where every sample went, by source and by reason, and each by name.
const FATES = ["trained", "planned", "replaced", "dropped"];
const AT_ONCE = 300;

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
    make("td", { class: "soft" }, reasons.join(", ")),
  );
}

function sources() {
  const names = ["source", "in", "", ...FATES, "truncated", "reasons"];
  const right = new Set(["in", ...FATES, "truncated"]);
  return make(
    "table",
    { id: "ledger-sources" },
    make("tr", {}, names.map((name) => make("th", { class: right.has(name) ? "number" : "" }, name))),
    data.ledger.sources.map((totals) => sourceRow(totals.source, totals)),
    sourceRow("all", data.ledger.total, "total"),
  );
}

function reasons(go) {
  const { reasons: counts, input } = data.ledger.total;
  const inPage = (reason) => data.samples.filter((sample) => sample.findings.some(([kind]) => kind === reason)).length;
  return make(
    "table",
    {},
    Object.entries(counts).map(([reason, count]) =>
      make(
        "tr",
        {},
        make("td", { class: "mono" }, reason),
        make("td", { class: "number" }, whole(count)),
        make("td", { class: "number soft" }, percent(count / input)),
        make("td", {}, inPage(reason) ? make("button", { class: "link", onclick: () => go.finding(reason) }, `show ${whole(inPage(reason))}`) : ""),
      ),
    ),
  );
}

function entryRow(entry, go) {
  const by = entry.by ? ` (replaced by ${entry.by.join(", ")})` : "";
  const known = places.has(entry.index);
  return make(
    "tr",
    {},
    make("td", { class: "mono narrow" }, entry.reason),
    make("td", { class: "narrow" }, known ? make("button", { class: "link", title: entry.where, onclick: () => go("samples", entry.index) }, shortPlace(entry.where)) : shortPlace(entry.where)),
    make("td", {}, entry.detail + by),
  );
}

function entries(go) {
  const { entries: every, left } = data.ledger;
  const shown = every.slice(0, AT_ONCE);
  const more = every.length - shown.length + left;
  return [
    make("table", { id: "entries" }, shown.map((entry) => entryRow(entry, go))),
    more ? make("p", { class: "note" }, `… and ${whole(more)} more; lading plan --ledger FILE names them all`) : null,
  ];
}

function elsewhere() {
  const { elsewhere: every, elsewhere_left: left } = data.ledger;
  return make(
    "section",
    { class: "card wide" },
    make("h2", {}, "In rows and files that no sample shows"),
    make("table", { id: "elsewhere" }, every.map((own) => make("tr", {}, own.map((text) => make("td", {}, text))))),
    left ? make("p", { class: "note" }, `… and ${whole(left)} more; lading doctor --json names them`) : null,
  );
}

export function showLedger(go) {
  const { total } = data.ledger;
  const none = make("p", { class: "soft" }, "None: every sample is trained on.");
  const gone = Object.keys(total.reasons).length > 0;
  byId("ledger").replaceChildren(
    make(
      "div",
      { class: "cards" },
      make("section", { class: "card wide" }, make("h2", {}, "Where every sample goes"), sources()),
      make("section", { class: "card wide" }, make("h2", {}, "Why samples are left out"), gone ? reasons(go) : none),
      data.ledger.elsewhere.length ? elsewhere() : null,
      gone ? make("section", { class: "card wide" }, make("h2", {}, "By name"), entries(go)) : null,
    ),
  );
}
