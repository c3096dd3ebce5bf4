import { backTo, make, whole } from "./dom.js";
import { address, data, packPlaces, shortPlace } from "./data.js";
import { sourceName } from "./sources.js";
import { hideTip, noTokens, tokenBox } from "./tokens.js";

// One sample: what it says beside what the model is given.
function figure(part, medium) {
  const name = part.facts ? `${part.name} · ${part.facts}` : part.name;
  return make(
    "figure",
    { class: part.kind, "data-medium": medium },
    make(
      "div",
      { class: "frames" },
      part.pictures.map((place) => make("img", { src: address(place), alt: part.name })),
    ),
    part.sound === undefined ? null : make("audio", { controls: true, preload: "metadata", src: address(part.sound) }),
    make("figcaption", {}, name, part.trouble ? make("div", { class: "trouble" }, part.trouble) : null),
  );
}

function turns(sample) {
  let medium = 0;
  return sample.turns.map(({ role, parts }) =>
    make(
      "div",
      { class: `turn ${role}` },
      make("div", { class: "role" }, role),
      make("div", { class: "body" }, parts.map((part) => (typeof part === "string" ? part : figure(part, medium++)))),
    ),
  );
}

function packLink(sample, go) {
  if (sample.pack < 0) return "in no pack";
  if (!packPlaces.has(sample.pack)) return `pack ${whole(sample.pack)}`;
  return make("button", { class: "link", onclick: () => go("packs", sample.pack) }, `pack ${whole(sample.pack)}`);
}

export function findings(sample) {
  return sample.findings.map(([kind, severity, detail]) =>
    make("p", { class: `finding ${severity}` }, make("b", {}, kind), detail),
  );
}

export function showSample(article, sample, go) {
  hideTip();
  noTokens();
  const said = sample.turns.length
    ? make("section", {}, make("h2", {}, "What it says"), turns(sample))
    : make("p", { class: "soft" }, "It cannot be read, so there is nothing to show of it.");
  article.replaceChildren(
    make(
      "div",
      { class: "head" },
      backTo("sample-list"),
      make("span", { class: "name", title: sample.where }, shortPlace(sample.where)),
      make("span", { class: "fact" }, sourceName(sample.source), ` #${whole(sample.index)}`),
      sample.length
        ? make("span", { class: "fact" }, make("b", {}, whole(sample.length)), " tokens, ", make("b", {}, whole(sample.labels)), " trained on")
        : make("span", { class: "fact" }, "not counted"),
      make("span", { class: "fact" }, packLink(sample, go)),
    ),
    ...findings(sample),
    ...(sample.trouble && !sample.findings.length
      ? [make("p", { class: "finding error" }, make("b", {}, "not readable now"), sample.trouble)]
      : []),
    make("div", { class: "both" }, said, sample.tokens ? tokenBox(sample) : null),
  );
  article.scrollTop = 0;
}
