import { draw, make, whole } from "./dom.js";

// Small pictures of numbers. Their height and width are those of the viewBox; the page scales them.
const WIDTH = 560;
const HEIGHT = 170;
const LEFT = 44;
const BOTTOM = 22;
const TOP = 8;

const across = (share, width) => LEFT + share * (width - LEFT - 6);
const up = (share, height) => height - BOTTOM - share * (height - BOTTOM - TOP);

function frame({ width, height }, label, ...inside) {
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": label }, ...inside);
}

function sideLabels(values, show, { width, height }) {
  const [low, high] = [values[0], values[values.length - 1]];
  return values.flatMap((value) => {
    const y = up((value - low) / (high - low || 1), height);
    return [
      draw("line", { class: "grid", x1: LEFT, x2: width - 6, y1: y, y2: y }),
      draw("text", { x: LEFT - 6, y: y + 3.5, "text-anchor": "end" }, show(value)),
    ];
  });
}

function bottomLabels(texts, { width, height }) {
  return texts.map((text, place) => {
    const share = texts.length > 1 ? place / (texts.length - 1) : 0;
    const anchor = place === 0 ? "start" : place === texts.length - 1 ? "end" : "middle";
    return draw("text", { x: across(share, width), y: height - 6, "text-anchor": anchor }, text);
  });
}

const USUAL = { width: WIDTH, height: HEIGHT };

export function histogram({ edges, counts }, { show, label }) {
  if (!counts.length) return make("p", { class: "soft" }, "nothing to show");
  const top = Math.max(...counts);
  const wide = (WIDTH - LEFT - 6) / counts.length;
  const bars = counts.map((count, place) =>
    draw(
      "rect",
      {
        class: "bar",
        x: LEFT + place * wide,
        y: up(count / top, HEIGHT),
        width: Math.max(1, wide - 1),
        height: Math.max(0, HEIGHT - BOTTOM - up(count / top, HEIGHT)),
      },
      draw("title", {}, `${show(edges[place])} to ${show(edges[place + 1])}: ${whole(count)}`),
    ),
  );
  const ends = [0, 0.25, 0.5, 0.75, 1].map((share) => show(edges[Math.round(share * counts.length)]));
  return frame(USUAL, label, sideLabels([0, top / 2, top], (value) => whole(Math.round(value)), USUAL), bars, bottomLabels(ends, USUAL));
}

// Lines over the same places, from the first of the ticks to the last; `band` is what lies between two of them.
export function lines({ series, band, ticks, width = WIDTH, height = HEIGHT }, { show, label, bottom }) {
  const [from, to] = [ticks[0], ticks[ticks.length - 1]];
  const places = (band ? band[0] : series[0].values).length;
  const x = (place) => across(places > 1 ? place / (places - 1) : 0.5, width);
  const y = (value) => up((value - from) / (to - from || 1), height);
  const points = (values) => values.map((value, place) => `${x(place).toFixed(1)},${y(value).toFixed(1)}`);
  const shapes = series.map(({ values, name, kind }) =>
    draw("polyline", { class: `line ${kind ?? ""}`, points: points(values).join(" ") }, draw("title", {}, name)),
  );
  if (band) {
    const around = [...points(band[1]), ...points(band[0]).reverse()];
    shapes.unshift(draw("polygon", { class: "band", points: around.join(" ") }));
  }
  const size = { width, height };
  return frame(size, label, sideLabels(ticks, show, size), shapes, bottomLabels(bottom, size));
}
