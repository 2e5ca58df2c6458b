"use strict";
// Making elements, and numbers as people read them. Strings become text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

function html(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** What has to know its width before it can be drawn, until it has a place on the page. */
const undrawn = [];

/** Call `draw(width)` once `element` is on the page, and whenever its width changes. */
function onWidth(element, draw) {
  let last = 0;
  const redraw = () => {
    const width = element.clientWidth;
    if (width > 0 && width !== last) draw((last = width));
  };
  undrawn.push(redraw);
  new ResizeObserver(() => requestAnimationFrame(redraw)).observe(element);
}

/** Call `draw` when the page turns dark or light, as long as `element` is on it. */
function onTheme(element, draw) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const change = () => {
    if (element.isConnected) draw();
    else dark.removeEventListener("change", change);
  };
  dark.addEventListener("change", change);
}

/** Make `children` the content of an element of the page, and draw what waits for that. */
function place(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null));
  undrawn.splice(0).forEach((draw) => draw());
}

const show = {
  /** Three significant digits, thousands and millions with their letters. */
  number(value) {
    if (value === null) return "–";
    const size = Math.abs(value);
    if (size >= 1e6) return `${trim((value / 1e6).toPrecision(3))} M`;
    if (size >= 1e4) return `${trim((value / 1e3).toPrecision(3))} k`;
    if (size >= 1e3 || (Number.isInteger(value) && size < 1e4)) return String(Math.round(value));
    if (size > 0 && size < 1e-3) return value.toExponential(1).replace("-", "−");
    return trim(value.toPrecision(3)).replace("-", "−");
  },
  count(number, noun) {
    return `${number} ${noun}${number === 1 ? "" : "s"}`;
  },
  percent(value) {
    return value === null ? "–" : `${trim((100 * value).toFixed(1))} %`;
  },
  signed(value) {
    return (value > 0 ? "+" : "") + show.number(value);
  },
  /** A mean over seeds with its 90 % interval. */
  interval(value) {
    if (value === null) return "–";
    if (value.margin === null) return show.number(value.mean);
    return `${show.number(value.mean)} ± ${show.number(value.margin)}`;
  },
  /** The same for a share, from end to end: next to 0 and 1 it has not the same room on both sides. */
  share(value) {
    if (value === null) return "–";
    if (value.margin === null) return show.percent(value.mean);
    const [low, high] = [Math.max(0, value.mean - value.margin), Math.min(1, value.mean + value.margin)];
    return `${show.percent(value.mean)} (${show.percent(low).replace(" %", "")}–${show.percent(high).replace(" %", "")})`;
  },
};

function trim(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
