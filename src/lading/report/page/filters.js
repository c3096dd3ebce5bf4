import { byId, make } from "./dom.js";
import { data, mediaOf, words } from "./data.js";

// Which samples are listed: by text, source, finding, media and length.
const MEDIA = { image: "with pictures", video: "with clips", audio: "with sounds", none: "text alone" };

function tally(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

function kindsOf(sample) {
  sample.kinds ??= new Set(mediaOf(sample).map((part) => part.kind));
  return sample.kinds;
}

function choices(select, first, entries) {
  select.append(make("option", { value: "" }, first));
  for (const [value, text] of entries) select.append(make("option", { value }, text));
}

export function startFilters(changed) {
  const kinds = tally(data.samples.flatMap((sample) => [...new Set(sample.findings.map(([kind]) => kind))]));
  const some = data.samples.filter((sample) => sample.findings.length).length;
  choices(byId("by-source"), "all sources", data.sources.map((name, place) => [place, name]));
  choices(byId("by-finding"), "all findings", [
    ["*", `any finding (${some})`],
    ["-", `no finding (${data.samples.length - some})`],
    ...[...kinds].sort().map(([kind, count]) => [`=${kind}`, `${kind} (${count})`]),
  ]);
  choices(byId("by-media"), "any media", Object.entries(MEDIA));
  const form = byId("filters");
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
}

const TESTS = {
  "*": (sample) => sample.findings.length > 0,
  "-": (sample) => sample.findings.length === 0,
};

export function filtered() {
  const text = byId("search").value.trim().toLowerCase();
  const source = byId("by-source").value;
  const finding = byId("by-finding").value;
  const medium = byId("by-media").value;
  const least = Number(byId("least").value || 0);
  const most = Number(byId("most").value || Infinity);
  const found = TESTS[finding] ?? ((sample) => sample.findings.some(([kind]) => `=${kind}` === finding));
  return data.samples.filter(
    (sample) =>
      (!source || sample.source === Number(source)) &&
      sample.length >= least &&
      sample.length <= most &&
      (!finding || found(sample)) &&
      (!medium || (medium === "none" ? !kindsOf(sample).size : kindsOf(sample).has(medium))) &&
      (!text || words(sample).includes(text)),
  );
}

export function clearFilters(finding = "", source = "") {
  byId("filters").reset();
  byId("by-source").value = source;
  byId("by-finding").value = finding && `=${finding}`;
}
