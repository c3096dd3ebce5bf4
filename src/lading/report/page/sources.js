import { make, plural } from "./dom.js";
import { data } from "./data.js";

// How sources are told apart: each has a look of its own, the same in every part, by its place in the corpus.
// Six colours that stay apart for people who see fewer, in three textures; beyond these all are grey, and so named.
const COLOURS = 6;
const TEXTURES = ["plain", "striped", "dotted"];
const LOOKS = COLOURS * TEXTURES.length;

export function look(place) {
  if (place < 0 || place >= LOOKS) return "source other";
  return `source source-${place % COLOURS} ${TEXTURES[Math.floor(place / COLOURS)]}`;
}

export const chip = (place) => make("i", { class: `chip ${look(place)}`, "aria-hidden": "true" });

// A source by name; what belongs to none (a file as a whole) is said to.
export function sourceName(place) {
  return make("span", { class: "source-name" }, place < 0 ? "no source" : [chip(place), data.sources[place]]);
}

export const placeOf = (name) => data.sources.indexOf(name);

export function fillLegend(list) {
  const shown = data.sources.slice(0, LOOKS).map((_, place) => make("li", {}, sourceName(place)));
  const more = data.sources.length - shown.length;
  if (more > 0) shown.push(make("li", {}, make("span", { class: "source-name" }, chip(LOOKS), `${plural(more, "more source")}`)));
  list.replaceChildren(...shown);
  list.hidden = data.sources.length < 2;
}
