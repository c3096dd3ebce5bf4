import { make } from "./dom.js";

// A list of any length: only the rows that can be seen exist. One row is open at a time.
export class VirtualList {
  constructor(box, { height, row, open, chosen = () => {} }) {
    Object.assign(this, { box, height, row, open, chosen, items: [], at: -1, rows: new Map() });
    this.spacer = make("div", { class: "spacer" });
    box.append(this.spacer);
    box.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(box);
  }

  // Show other items; the one that was open stays open where it is still among them.
  set(items) {
    const before = this.items[this.at];
    this.items = items;
    this.at = before === undefined ? -1 : items.indexOf(before);
    this.rows = new Map();
    this.spacer.style.height = `${items.length * this.height}px`;
    if (this.at >= 0) this.reveal();
    else this.box.scrollTop = 0;
    this.draw();
  }

  select(at) {
    if (!this.items.length) return;
    this.at = Math.max(0, Math.min(this.items.length - 1, at));
    this.reveal();
    this.draw();
    this.open(this.items[this.at]);
  }

  step(by) {
    this.select(this.at + by);
  }

  reveal() {
    const top = this.at * this.height;
    const { scrollTop, clientHeight } = this.box;
    // From far away it comes to the middle, so that its neighbours are seen too.
    const far = top < scrollTop - clientHeight || top > scrollTop + 2 * clientHeight;
    if (far) this.box.scrollTop = top - clientHeight / 2;
    else if (top < scrollTop) this.box.scrollTop = top;
    else if (top + this.height > scrollTop + clientHeight) this.box.scrollTop = top + this.height - clientHeight;
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.height) - 4);
    const last = Math.min(this.items.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / this.height) + 4);
    // Rows that stay in sight are kept: a picture that is drawn anew flickers.
    const before = this.rows;
    this.rows = new Map();
    for (let at = first; at < last; at += 1) {
      const row = before.get(at) ?? this.make(at);
      row.setAttribute("aria-selected", at === this.at);
      this.rows.set(at, row);
    }
    this.spacer.replaceChildren(...this.rows.values());
    if (this.rows.has(this.at)) this.box.setAttribute("aria-activedescendant", this.rows.get(this.at).id);
  }

  make(at) {
    const row = this.row(this.items[at]);
    row.id = `${this.box.id}-${at}`;
    row.style.top = `${at * this.height}px`;
    row.style.height = `${this.height}px`;
    row.setAttribute("role", "option");
    row.addEventListener("click", () => {
      this.select(at);
      this.chosen();
    });
    return row;
  }
}
