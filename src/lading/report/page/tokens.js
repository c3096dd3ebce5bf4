import { byId, make, percent, plural, whole } from "./dom.js";
import { tokensOf } from "./data.js";

// The tokens of one sample: coloured by what is trained on, told about on hover and by the arrow keys.
const AT_ONCE = 3000;
const SPECIAL = /^<[^\s<>]+>$/;
const NAMES = ["t", "h", "w"];

let open = { tokens: [], box: null, at: -1 };

function position(token) {
  const range = (first, last) => (first === last ? `${first}` : `${first}–${last}`);
  if (token.first.length === 1) return range(token.first[0], token.last[0]);
  return token.first.map((first, axis) => `${NAMES[axis]} ${range(first, token.last[axis])}`).join("  ");
}

export function describe(token) {
  const place = token.count > 1 ? `${whole(token.start)}–${whole(token.start + token.count - 1)}` : whole(token.start);
  return [
    JSON.stringify(token.text) + (token.count > 1 ? ` ×${whole(token.count)}` : ""),
    `token     ${place}`,
    `id        ${token.id}`,
    `label     ${token.trained ? `${token.id}, trained on` : "-100, given"}`,
    `position  ${position(token)}`,
  ].join("\n");
}

function tokenElement(token) {
  const classes = ["token"];
  if (token.trained) classes.push("trained");
  if (token.medium >= 0) classes.push("run");
  else if (token.text.includes("\n")) classes.push("newline");
  if (SPECIAL.test(token.text)) classes.push("special");
  const text = token.medium >= 0 ? `${token.text} ×${whole(token.count)}` : token.text;
  return make("span", { class: classes.join(" "), "data-place": token.place, "data-id": token.id }, text);
}

function light(token) {
  for (const figure of document.querySelectorAll("figure.lit")) figure.classList.remove("lit");
  if (token && token.medium >= 0) {
    document.querySelector(`#sample figure[data-medium="${token.medium}"]`)?.classList.add("lit");
  }
}

function showTip(element) {
  const token = open.tokens[Number(element.dataset.place)];
  const tip = byId("tip");
  tip.textContent = describe(token);
  tip.hidden = false;
  const box = element.getClientRects()[0];
  const below = box.bottom + tip.offsetHeight + 10 < innerHeight;
  tip.style.top = `${below ? box.bottom + 6 : box.top - tip.offsetHeight - 6}px`;
  tip.style.left = `${Math.max(6, Math.min(box.left, innerWidth - tip.offsetWidth - 10))}px`;
  light(token);
}

export function hideTip() {
  byId("tip").hidden = true;
  light(null);
}

// Move the cursor among the tokens; the list scrolls with it.
export function stepToken(by) {
  if (!open.tokens.length) return;
  const shown = open.box.querySelectorAll(".token");
  open.at = Math.max(0, Math.min(shown.length - 1, open.at + by));
  open.box.querySelector(".at")?.classList.remove("at");
  const element = shown[open.at];
  element.classList.add("at");
  element.scrollIntoView({ block: "nearest" });
  showTip(element);
}

export function tokenBox(sample) {
  const tokens = tokensOf(sample);
  const box = make("div", { class: "tokens", id: "tokens" });
  open = { tokens, box, at: -1 };
  const add = (from) => {
    box.append(...tokens.slice(from, from + AT_ONCE).map(tokenElement));
    const left = tokens.length - from - AT_ONCE;
    if (left > 0) {
      const more = make("button", { class: "quiet", onclick: () => (more.remove(), add(from + AT_ONCE)) });
      more.textContent = `show ${whole(Math.min(left, AT_ONCE))} more`;
      box.append(more);
    } else if (sample.hidden) {
      box.append(make("p", { class: "soft" }, `… ${plural(sample.hidden, "token")} more are not in this page`));
    }
  };
  add(0);
  box.addEventListener("pointerover", (event) => event.target.matches(".token") && showTip(event.target));
  box.addEventListener("pointerleave", hideTip);
  return make(
    "section",
    {},
    make(
      "div",
      { class: "tokens-head" },
      make("h2", {}, "What the model is given"),
      make(
        "p",
        { class: "legend" },
        make("span", {}, make("i", { class: "trained" }), `trained on (${percent(sample.labels / sample.length)})`),
        make("span", {}, make("i", { class: "given" }), "given"),
        sample.runs.length ? make("span", {}, make("i", { class: "medium" }), "media") : null,
      ),
    ),
    box,
  );
}

export function noTokens() {
  open = { tokens: [], box: null, at: -1 };
}
