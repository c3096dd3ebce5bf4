import { byId, make } from "./dom.js";
import { findGroups } from "./groups.js";
import { nextTheme } from "./theme.js";
import { hideTip, stepToken } from "./tokens.js";

// Everything can be reached without a mouse.
const HELP = [
  ["j  ↓", "next sample or pack"],
  ["k  ↑", "the one before"],
  ["→  ←", "next token, the one before"],
  ["/", "search"],
  ["Esc", "leave the search; close this"],
  ["1 2 3 4", "samples, packs, plan, ledger"],
  ["t", "light, dark, or as the system says"],
  ["?", "this list"],
];

const STEPS = ["j", "k", "ArrowDown", "ArrowUp"];

function help() {
  const dialog = byId("help");
  if (!dialog.childElementCount) {
    const rows = HELP.map(([keys, what]) => make("tr", {}, make("th", {}, keys.split(/ +/).map((key) => [make("kbd", {}, key), " "])), make("td", {}, what)));
    dialog.append(make("h2", {}, "Keys"), make("table", {}, rows));
  }
  if (dialog.open) dialog.close();
  else dialog.showModal();
}

export function startKeys(go) {
  const view = () => go.current();
  const actions = {
    j: () => view()?.step(1),
    ArrowDown: () => view()?.step(1),
    k: () => view()?.step(-1),
    ArrowUp: () => view()?.step(-1),
    ArrowRight: () => go.part() === "samples" && stepToken(1),
    ArrowLeft: () => go.part() === "samples" && stepToken(-1),
    "/": () => {
      if (go.part() === "ledger") return findGroups();
      go("samples");
      byId("search").select();
    },
    Escape: hideTip,
    1: () => go("samples"),
    2: () => go("packs"),
    3: () => go("plan"),
    4: () => go("ledger"),
    t: nextTheme,
    "?": help,
  };
  byId("help-button").addEventListener("click", help);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.closest("input, select, audio");
    if (field && event.key === "Escape") {
      field.blur();
      return;
    }
    const inSearch = field?.id === "search" && ["ArrowDown", "ArrowUp"].includes(event.key);
    const action = STEPS.includes(event.key) && !view() ? null : actions[event.key];
    if (!action || (field && !inSearch) || (byId("help").open && event.key !== "?")) return;
    if (event.key !== "Escape") event.preventDefault();
    action();
  });
}
