"use strict";
// Curves with bands against compute.

const SELDOM = 25;
const MARGIN = { top: 12, right: 14, bottom: 34, left: 48 };

/** One chart: heading, curves, legend and note. `colour` gives the class of an algorithm. */
function chartFigure(chart, colour, { height = 200 } = {}) {
  const canvas = html("div", { class: "canvas" });
  const figure = html(
    "figure",
    { class: "chart" },
    html("figcaption", {}, html("h3", {}, chart.title), html("p", { class: "note" }, chart.note)),
    canvas,
    legend(chart.series.map((series) => series.algo), colour),
  );
  onWidth(canvas, (width) => canvas.replaceChildren(...drawChart(chart, colour, width, height)));
  return figure;
}

function legend(algorithms, colour) {
  const keys = algorithms.map((algo) =>
    html("li", {}, html("span", { class: `key ${colour(algo)}` }), algo.toUpperCase()));
  return html("ul", { class: "legend" }, keys);
}

function drawChart(chart, colour, width, height) {
  const form = chart.share ? show.percent : show.number;
  const scale = chartScale(chart, width, height);
  const canvas = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `${chart.title}. ${chart.series.map((series) => spoken(series, form)).join("; ")}`,
  });
  drawAxes(canvas, scale, form);
  if (chart.line) drawLine(canvas, chart.line, scale);
  for (const series of chart.series) drawBand(canvas, series, colour(series.algo), scale);
  for (const series of chart.series) drawLines(canvas, series, colour(series.algo), scale);
  return [canvas, ...hover(canvas, chart, colour, scale, form)];
}

function spoken(series, form) {
  return `${series.algo.toUpperCase()} ends at ${form(series.mean.at(-1))}`;
}

/** Where values come to stand: `x` and `y` map them to pixels. On a logarithmic axis a band may be
 *  far wider than what was measured, so it does not decide the range there. */
function chartScale(chart, width, height) {
  const bands = chart.log ? [] : chart.series.flatMap((s) => [...(s.low ?? []), ...(s.high ?? [])]);
  const values = [...bands, ...chart.series.flatMap((s) => [s.mean, ...s.seeds.map((r) => r.y)]).flat()];
  if (chart.line) values.push(chart.line.value);
  const end = Math.max(...chart.series.flatMap((s) => [s.x, ...s.seeds.map((r) => r.x)]).flat()) || 1;
  const box = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
  const ticks = chart.log ? logTicks(values) : linearTicks(Math.min(0, ...values), highest(chart, values), 5);
  const low = ticks[0], high = ticks.at(-1);
  const place = chart.log
    ? (value) => Math.log(Math.max(value, low) / low) / Math.log(high / low)
    : (value) => (value - low) / (high - low);
  const clamp = (share) => Math.min(1, Math.max(0, share));
  return {
    box, ticks, end,
    x: (value) => box.left + (value / end) * (box.right - box.left),
    y: (value) => box.bottom - clamp(place(value)) * (box.bottom - box.top),
  };
}

function highest(chart, values) {
  const top = Math.max(...values);
  return chart.share ? Math.min(1, Math.max(top, 0.05)) : top;
}

/** Round values that enclose a range: steps of 1, 2 or 5 times a power of ten. */
function linearTicks(low, high, count) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / count));
  const step = power * [1, 2, 5, 10].find((factor) => span / (power * factor) <= count);
  const first = Math.floor(low / step + 1e-9), last = Math.ceil((low + span) / step - 1e-9);
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

/** Values of 1, 2 and 5 times powers of ten, or powers alone where the range is wide. */
function logTicks(values) {
  const positive = values.filter((value) => value > 0);
  const low = Math.min(...positive), high = Math.max(...positive);
  const factors = high / low > 1000 ? [1] : [1, 2, 5];
  const all = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const factor of factors) all.push(Number((factor * 10 ** power).toPrecision(6)));
  }
  const first = all.findLastIndex((tick) => tick <= low), last = all.findIndex((tick) => tick >= high);
  return all.slice(Math.max(0, first), Math.max(last, first + 1) + 1);
}

function drawAxes(canvas, { box, ticks, end, x, y }, form) {
  for (const tick of ticks) {
    canvas.append(
      svg("line", { class: "rule", x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }),
      svg("text", { class: "tick", x: box.left - 6, y: y(tick) + 4, "text-anchor": "end" }, form(tick)),
    );
  }
  const room = (box.right - box.left) / 70;
  for (const tick of linearTicks(0, end, Math.max(2, room)).filter((tick) => tick <= end)) {
    canvas.append(svg("text", { class: "tick", x: x(tick), y: box.bottom + 15, "text-anchor": "middle" }, show.number(tick)));
  }
  canvas.append(svg("text", { class: "axis", x: box.right, y: box.bottom + 30, "text-anchor": "end" }, "compute"));
}

function drawLine(canvas, line, { box, y }) {
  canvas.append(
    svg("line", { class: "reference", x1: box.left, x2: box.right, y1: y(line.value), y2: y(line.value) }),
    svg("text", { class: "tick", x: box.right, y: y(line.value) - 5, "text-anchor": "end" }, line.label),
  );
}

function drawBand(canvas, series, colour, scale) {
  if (!series.low) return;
  const there = linePath(series.x, series.high, scale);
  const back = linePath([...series.x].reverse(), [...series.low].reverse(), scale);
  canvas.append(svg("path", { class: `band ${colour}`, d: `${there}${back.replace("M", "L")}Z` }));
}

/** The seeds and their mean; where a seed was measured seldom, a dot shows when. */
function drawLines(canvas, series, colour, scale) {
  const group = svg("g", { class: colour });
  for (const seed of series.seeds) {
    group.append(svg("path", { class: "seed", d: linePath(seed.x, seed.y, scale) }));
    if (seed.x.length > SELDOM) continue;
    seed.x.forEach((x, i) => group.append(svg("circle", { class: "seed", cx: scale.x(x), cy: scale.y(seed.y[i]), r: 3 })));
  }
  group.append(svg("path", { class: "mean", d: linePath(series.x, series.mean, scale) }));
  canvas.append(group);
}

function linePath(xs, ys, { x, y }) {
  return xs.map((value, i) => `${i ? "L" : "M"}${x(value).toFixed(1)} ${y(ys[i]).toFixed(1)}`).join("");
}

/** A line that follows the pointer, and the values there. */
function hover(canvas, chart, colour, { box, end, x }, form) {
  const marker = svg("line", { class: "marker", y1: box.top, y2: box.bottom, visibility: "hidden" });
  const tip = html("div", { class: "tip", hidden: "" });
  canvas.append(marker);
  canvas.addEventListener("pointerleave", () => {
    marker.setAttribute("visibility", "hidden");
    tip.hidden = true;
  });
  canvas.addEventListener("pointermove", (event) => {
    const share = (event.offsetX - box.left) / (box.right - box.left);
    if (share < 0 || share > 1) return;
    const place = share * end;
    for (const [name, value] of [["x1", x(place)], ["x2", x(place)], ["visibility", "visible"]]) {
      marker.setAttribute(name, value);
    }
    tip.replaceChildren(
      html("b", {}, `compute ${show.number(place)}`),
      ...chart.series.map((series) => valueAt(series, place, colour, form)),
    );
    tip.hidden = false;
    tip.style.left = `${Math.min(event.offsetX + 14, canvas.clientWidth - tip.offsetWidth - 4)}px`;
  });
  return [tip];
}

function valueAt(series, place, colour, form) {
  const key = html("span", { class: `key ${colour(series.algo)}` });
  const name = `${series.algo.toUpperCase()} `;
  if (place < series.x[0] || place > series.x.at(-1)) return html("div", {}, key, `${name}–`);
  const index = series.x.reduce((best, value, i) => (Math.abs(value - place) < Math.abs(series.x[best] - place) ? i : best), 0);
  const range = series.low ? ` (${form(series.low[index])} to ${form(series.high[index])})` : "";
  return html("div", {}, key, name + form(series.mean[index]) + range);
}
