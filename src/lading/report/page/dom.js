// Elements are made here and nowhere else. Whatever a corpus says becomes text, never markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, options, children) {
  for (const [name, value] of Object.entries(options ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== ""));
  return element;
}

export function make(tag, options, ...children) {
  return fill(document.createElement(tag), options, children);
}

export function draw(tag, options, ...children) {
  return fill(document.createElementNS(SVG, tag), options, children);
}

export const byId = (id) => document.getElementById(id);

// Where there is one column: the list stands above what is open, and is gone back to.
export const narrow = matchMedia("(max-width: 699.98px)");

export function backTo(list) {
  return make("button", { class: "quiet back", onclick: () => byId(list).closest(".view").scrollIntoView() }, "↑ back to the list");
}

export function reveal(element) {
  if (narrow.matches) element.scrollIntoView();
}

export const whole = (number) => Number(number).toLocaleString("en");

export const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)}%`;

// Two digits behind the point, and never all where something is missing.
export const precise = (share) => (share === 1 ? "100%" : `${Math.min(100 * share, 99.99).toFixed(2)}%`);

export function plural(count, word) {
  return `${whole(count)} ${word}${count === 1 ? "" : "s"}`;
}
