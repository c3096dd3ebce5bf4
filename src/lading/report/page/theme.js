import { byId } from "./dom.js";

// Light, dark, or as the system says. A file may not be allowed to remember; then it asks the system each time.
const KEY = "lading-theme";
const NAMES = { auto: "◐ auto", light: "○ light", dark: "● dark" };
const system = matchMedia("(prefers-color-scheme: dark)");
let chosen = "auto";

function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function show() {
  document.documentElement.classList.toggle("dark", chosen === "dark" || (chosen === "auto" && system.matches));
  byId("theme").textContent = NAMES[chosen];
}

export function nextTheme() {
  const names = Object.keys(NAMES);
  chosen = names[(names.indexOf(chosen) + 1) % names.length];
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // Not remembered, but shown.
  }
  show();
}

export function startTheme() {
  chosen = NAMES[remembered()] ? remembered() : "auto";
  system.addEventListener("change", show);
  byId("theme").addEventListener("click", nextTheme);
  show();
}
