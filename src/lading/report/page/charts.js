import { draw, whole } from "./dom.js";

// Small pictures of numbers. Their height and width are those of the viewBox; the page scales them.
const WIDTH = 560;
const HEIGHT = 170;
const LEFT = 44;
const BOTTOM = 22;
const TOP = 16;

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

// Each stands at its share of the way.
function bottomLabels(labels, { width, height }) {
  return labels.map(([share, text]) => {
    const anchor = share === 0 ? "start" : share === 1 ? "end" : "middle";
    return draw("text", { x: across(share, width), y: height - 6, "text-anchor": anchor }, text);
  });
}

// Charts are scaled to the page: on a narrow one they are drawn narrower, so that their letters stay as large.
const drawn = (width) => Math.min(width, Math.max(280, innerWidth - 64));

function ticksBelow(edges, show) {
  const bins = edges.length - 1;
  const places = new Set([0, 0.25, 0.5, 0.75, 1].map((share) => Math.round(share * bins)));
  const labels = [...places].map((place) => [place / bins, show(edges[place])]);
  return labels.filter(([, text], at) => !at || text !== labels[at - 1][1]);
}

// `below` names all ranges, where they are few and not alike.
export function histogram({ edges, counts }, { show, label, name, below }) {
  const size = { width: drawn(WIDTH), height: HEIGHT };
  const range = name ?? ((from, to) => `${show(from)} to ${show(to)}`);
  const top = Math.max(...counts);
  const wide = (size.width - LEFT - 6) / counts.length;
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
      draw("title", {}, `${range(edges[place], edges[place + 1])}: ${whole(count)}`),
    ),
  );
  const each = Math.ceil(40 / wide);
  const named = edges.slice(0, -1).map((edge, place) => [(place + 0.5) / counts.length, show(edge)]);
  const labels = below ? named.filter((_, place) => place % each === 0) : ticksBelow(edges, show);
  if (below) {
    const counted = counts.map((count, place) => (count ? draw("text", { x: LEFT + (place + 0.5) * wide, y: up(count / top, HEIGHT) - 4, "text-anchor": "middle" }, whole(count)) : null));
    bars.push(counted);
  }
  return frame(size, label, sideLabels(top > 1 ? [0, top / 2, top] : [0, top], (value) => whole(Math.round(value)), size), bars, bottomLabels(labels, size));
}

// Lines over the same places, from the first of the ticks to the last; `band` is what lies between two of them.
export function lines({ series, band, ticks, width: wanted = WIDTH, height = HEIGHT }, { show, label, bottom }) {
  const width = drawn(wanted);
  const [from, to] = [ticks[0], ticks[ticks.length - 1]];
  // A single value is a level: a point alone could not be seen.
  const level = (values) => (values.length === 1 ? [values[0], values[0]] : values);
  const places = level(band ? band[0] : series[0].values).length;
  const x = (place) => across(place / (places - 1), width);
  const y = (value) => up((value - from) / (to - from || 1), height);
  const points = (values) => level(values).map((value, place) => `${x(place).toFixed(1)},${y(value).toFixed(1)}`);
  const shapes = series.map(({ values, name, kind }) =>
    draw("polyline", { class: `line ${kind ?? ""}`, points: points(values).join(" ") }, draw("title", {}, name)),
  );
  if (band) {
    const around = [...points(band[1]), ...points(band[0]).reverse()];
    shapes.unshift(draw("polygon", { class: "band", points: around.join(" ") }));
  }
  const size = { width, height };
  return frame(size, label, sideLabels(ticks, show, size), shapes, bottomLabels(bottom.map((text, place) => [place, text]), size));
}
