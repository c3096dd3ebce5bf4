import { byId, plural, whole } from "./dom.js";
import { data } from "./data.js";
import { startKeys } from "./keys.js";
import { showLedger } from "./ledger.js";
import { PacksView } from "./packs.js";
import { showPlan } from "./plan.js";
import { SamplesView } from "./samples.js";
import { startTheme } from "./theme.js";
import { hideTip } from "./tokens.js";

// Which part is open stands in the address, so that a place in a report can be passed on.
const NAMES = ["samples", "packs", "plan", "ledger"];
const views = {};
let name = "";

const makers = {
  samples: () => new SamplesView(go),
  packs: () => new PacksView(go),
  plan: () => (showPlan(), {}),
  ledger: () => (showLedger(go), {}),
};

function go(to, what) {
  hideTip();
  name = to;
  for (const own of NAMES) {
    byId(own).hidden = own !== to;
    byId(`tab-${own}`).setAttribute("aria-selected", own === to);
  }
  views[to] ??= makers[to]();
  scrollTo(0, 0);
  if (views[to].show) views[to].show(what);
  else go.note(to);
}

go.note = (to, what) => history.replaceState(null, "", what === undefined ? `#/${to}` : `#/${to}/${what}`);
go.part = () => name;
go.current = () => (views[name]?.step ? views[name] : null);
go.finding = (kind, source) => {
  go("samples");
  views.samples.withFinding(kind, source);
};

startTheme();
const { family, samples } = data.about;
byId("about").textContent = [family, plural(samples, "sample"), `${whole(data.plan.stats.tokens)} tokens`].filter(Boolean).join(" · ");
for (const own of NAMES) byId(`tab-${own}`).addEventListener("click", () => go(own));
startKeys(go);
const [to, what] = location.hash.slice(2).split("/");
go(NAMES.includes(to) ? to : data.samples.length ? "samples" : "plan", what === undefined ? undefined : Number(what));
document.documentElement.dataset.ready = Math.round(performance.now());
