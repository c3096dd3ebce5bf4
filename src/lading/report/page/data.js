import { byId } from "./dom.js";

// What the page is about. Media are read when the first of them is shown: they are most of the file.
export const data = JSON.parse(byId("data").textContent);

let addresses = null;

export function address(place) {
  addresses ??= JSON.parse(byId("media").textContent);
  return addresses[place];
}

export const places = new Map(data.samples.map((sample, place) => [sample.index, place]));

export const packPlaces = new Map(data.packs.list.map((pack, place) => [pack.number, place]));

export function mediaOf(sample) {
  return sample.turns.flatMap((turn) => turn.parts.filter((part) => typeof part !== "string"));
}

// All that can be searched of a sample, in small letters; made once, when it is first searched.
export function words(sample) {
  sample.words ??= [
    `#${sample.index}`,
    sample.where,
    data.sources[sample.source],
    ...sample.turns.flatMap((turn) => turn.parts.map((part) => (typeof part === "string" ? part : part.name))),
    ...sample.findings.flatMap(([kind, , detail]) => [kind, detail]),
  ].join("\n").toLowerCase();
  return sample.words;
}

export function severity(sample) {
  if (sample.findings.some(([, how]) => how === "error")) return "error";
  return sample.findings.length ? "warning" : "";
}

// The places of a sample's tokens: each a token, or a run of a medium's.
export function tokensOf(sample) {
  const runs = new Map(sample.runs.map(([place, count, medium, ...positions]) => [place, { count, medium, positions }]));
  const steps = new Map(sample.steps.map(([place, ...positions]) => [place, positions]));
  const borders = new Set(sample.trained);
  let trained = false;
  let start = 0;
  let next = sample.steps[0]?.slice(1) ?? [];
  return sample.tokens.map((word, place) => {
    if (borders.has(place)) trained = !trained;
    const [id, text] = data.vocabulary[word];
    const run = runs.get(place);
    const first = steps.get(place) ?? next;
    const last = run ? run.positions.slice(first.length) : first;
    const token = { place, id, text, trained, start, count: run?.count ?? 1, medium: run?.medium ?? -1, first, last };
    next = last.map((position) => position + 1);
    start += token.count;
    return token;
  });
}

// A place without its folder: names are long, and the folder is mostly the same.
export const shortPlace = (where) => where.split(/[\\/]/).pop();
