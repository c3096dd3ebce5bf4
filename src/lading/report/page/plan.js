import { byId, make, percent, whole } from "./dom.js";
import { data } from "./data.js";
import { histogram, lines } from "./charts.js";

// The plan: how full packs are, how long samples are, and how evenly ranks are loaded.
function figure(value, name) {
  return make("div", {}, make("b", {}, value), make("span", {}, name));
}

function card(title, ...inside) {
  return make("section", { class: "card" }, make("h2", {}, title), ...inside);
}

function workChart(kind) {
  const { kinds, steps } = data.plan.work;
  const chart = kinds[kind];
  const from = Math.min(0.9, ...chart.least);
  const to = Math.max(1.1, ...chart.most);
  const ranks = chart.ranks.map((values, rank) => ({ values, name: `rank ${rank}` }));
  const series = [...ranks, { values: chart.mean, name: "mean of the ranks", kind: "mean" }];
  const bottom = ["step 0", `step ${whole(Math.max(0, steps - 1))}`];
  const show = (value) => value.toFixed(2);
  return lines({ series, band: [chart.least, chart.most], ticks: [from, 1, to], width: 1180, height: 200 }, { show, label: "Work over steps", bottom });
}

function work(stats) {
  const kinds = Object.keys(data.plan.work.kinds);
  const title = make("h2", {}, "Work of each rank over the steps, in parts of the mean");
  if (!kinds.length) return make("section", { class: "card wide" }, title, make("p", { class: "soft" }, "nothing to show"));
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

export function showPlan() {
  const { stats, fill, lengths } = data.plan;
  const { losses } = data;
  byId("plan").replaceChildren(
    make(
      "div",
      { class: "cards" },
      make(
        "section",
        { class: "card wide figures" },
        figure(whole(stats.samples), "samples"),
        figure(whole(stats.tokens), `tokens, ${percent(stats.label_tokens / (stats.tokens || 1))} trained on`),
        figure(whole(stats.packs), `packs of ${whole(stats.pack_size)}; at least ${whole(stats.lower_bound)}`),
        figure(stats.fill.toFixed(4), "fill"),
        figure(whole(stats.steps), `steps on ${whole(stats.world_size)} rank${stats.world_size > 1 ? "s" : ""}`),
        figure(stats.straggler.toFixed(4), "straggler, all work"),
        figure(stats.straggler_attention.toFixed(4), "straggler, attention"),
        figure(stats.straggler_vision.toFixed(4), "straggler, vision"),
        stats.truncated ? figure(whole(stats.truncated), `truncated, by ${whole(stats.tokens_cut)} tokens`) : null,
        figure(whole(stats.dropped), "dropped"),
      ),
      losses.length > 1
        ? card("Loss", lines({ series: [{ values: losses, name: "loss", kind: "mean" }], ticks: [0, Math.max(...losses) / 2, Math.max(...losses)] }, { show: (value) => value.toFixed(2), label: "Loss", bottom: ["step 0", `step ${whole(losses.length - 1)}`] }))
        : null,
      card("Tokens in a sample", histogram(lengths, { show: (value) => whole(Math.round(value)), label: "Lengths of samples" })),
      card("How full packs are", histogram(fill, { show: (value) => percent(value), label: "Fill of packs" })),
      work(stats),
    ),
  );
}
