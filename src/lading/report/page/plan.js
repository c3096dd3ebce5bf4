import { byId, make, narrow, percent, plural, whole } from "./dom.js";
import { data } from "./data.js";
import { histogram, lines } from "./charts.js";

// The plan: how full packs are, how long samples are, and how evenly ranks are loaded.
function figure(value, name) {
  return make("div", {}, make("b", {}, value), make("span", {}, name));
}

function card(title, ...inside) {
  return make("section", { class: "card" }, make("h2", {}, title), ...inside);
}

const because = (text) => make("p", { class: "soft" }, text);

function lengthsCard() {
  const { lengths } = data.plan;
  const title = "Tokens in a sample";
  if (!lengths.counts.length) return card(title, because(data.about.samples ? "No sample could be counted; the ledger says why." : "There is no sample in this corpus."));
  const [least, most] = [lengths.edges[0], lengths.edges.at(-1)];
  if (least === most) return card(title, because(`All have ${whole(least)}.`));
  return card(title, histogram(lengths, { show: (value) => whole(Math.round(value)), label: "Lengths of samples" }));
}

// By tokens left free, doubling: of fill itself nothing could be seen, since most packs are all but full. Those that
// are full would dwarf the others, and are told in words.
function roomCard() {
  const { room, stats } = data.plan;
  const title = "Tokens left free in a pack";
  if (!room.counts.length) return card(title, because(noPacks()));
  const full = `${whole(room.counts[0])} of ${plural(stats.packs, "pack")}`;
  if (room.counts[0] === stats.packs) return card(title, because(`None. Full: ${full}.`));
  const name = (from, to) => (to - from === 1 ? `${whole(from)} free` : `${whole(from)} to ${whole(to - 1)} free`);
  const show = (value) => (value < 1024 || value % 1024 ? whole(value) : `${value / 1024}k`);
  const note = `Packs that lack 1 token, 2 or 3, 4 to 7 and so on. Full: ${full}.`;
  const lacking = { edges: room.edges.slice(1), counts: room.counts.slice(1) };
  return card(title, histogram(lacking, { show, name, below: true, label: "Tokens left free in packs" }), make("p", { class: "note" }, note));
}

const noPacks = () => (data.about.samples ? "There is no pack: no sample was counted and fits into one." : "There is no pack: there is no sample.");

function workChart(kind) {
  const { kinds, steps } = data.plan.work;
  const chart = kinds[kind];
  const from = Math.min(0.9, ...chart.least);
  const to = Math.max(1.1, ...chart.most);
  const ranks = chart.ranks.map((values, rank) => ({ values, name: `rank ${rank}` }));
  const series = [...ranks, { values: chart.mean, name: "mean of the ranks", kind: "mean" }];
  const bottom = steps > 1 ? ["step 0", `step ${whole(steps - 1)}`] : ["step 0"];
  const show = (value) => value.toFixed(2);
  return lines({ series, band: [chart.least, chart.most], ticks: [from, 1, to], width: 1180, height: 200 }, { show, label: "Work over steps", bottom });
}

function work(stats) {
  const kinds = Object.keys(data.plan.work.kinds);
  const title = make("h2", {}, "Work of each rank over the steps, in parts of the mean");
  if (!kinds.length) return make("section", { class: "card wide" }, title, because(noPacks()));
  const place = make("div");
  const buttons = kinds.map((kind) => make("button", { onclick: () => choose(kind) }, kind));
  const factors = { all: stats.straggler, attention: stats.straggler_attention, vision: stats.straggler_vision };
  const note = make("p", { class: "note" });
  function choose(kind) {
    buttons.forEach((button) => button.setAttribute("aria-pressed", button.textContent === kind));
    place.replaceChildren(workChart(kind));
    note.textContent =
      "Band: from the least to the most loaded rank of a step. The strong line: their mean." +
      (factors[kind] ? ` Straggler factor ${factors[kind].toFixed(4)}: the time that steps take over that of perfect balance.` : "");
  }
  choose(kinds[0]);
  return make("section", { class: "card wide" }, make("div", { class: "card-head" }, title, make("div", { class: "switch" }, buttons)), place, note);
}

function figures(stats) {
  const { kinds } = data.plan.work;
  return make(
    "section",
    { class: "card wide figures" },
    figure(whole(stats.samples), "samples"),
    figure(whole(stats.tokens), `tokens, ${percent(stats.label_tokens / (stats.tokens || 1))} trained on`),
    figure(whole(stats.packs), `packs of ${whole(stats.pack_size)}; at least ${whole(stats.lower_bound)}`),
    stats.packs ? figure(stats.fill.toFixed(4), "fill") : null,
    figure(whole(stats.steps), `steps on ${whole(stats.world_size)} rank${stats.world_size > 1 ? "s" : ""}`),
    kinds.all ? figure(stats.straggler.toFixed(4), "straggler, all work") : null,
    kinds.attention ? figure(stats.straggler_attention.toFixed(4), "straggler, attention") : null,
    kinds.vision ? figure(stats.straggler_vision.toFixed(4), "straggler, vision") : null,
    stats.truncated ? figure(whole(stats.truncated), `truncated, by ${whole(stats.tokens_cut)} tokens`) : null,
    figure(whole(stats.dropped), "dropped"),
  );
}

function lossCard() {
  const { losses } = data;
  if (losses.length < 2) return null;
  const top = Math.max(...losses);
  const bottom = ["step 0", `step ${whole(losses.length - 1)}`];
  return card("Loss", lines({ series: [{ values: losses, name: "loss", kind: "mean" }], ticks: [0, top / 2, top] }, { show: (value) => value.toFixed(2), label: "Loss", bottom }));
}

export function showPlan() {
  const { stats } = data.plan;
  const draw = () => byId("plan").replaceChildren(make("div", { class: "cards" }, figures(stats), lossCard(), lengthsCard(), roomCard(), work(stats)));
  draw();
  narrow.addEventListener("change", draw);
}
