"use strict";
// Paints the part of a tree that is in view. Ten thousand decisions stay smooth since only what is
// seen is painted, all of one look at once, and what is selected on a canvas of its own behind it.

const WIDTHS = 8; // how many different line widths are told apart
const SHARPEST = 2; // pixels a point; more take longer and show no more

class TreePainter {
  constructor(layout) {
    this.layout = layout;
    this.marks = html("canvas", {});
    this.canvas = html("canvas", { class: "decisions" });
    this.colours = colours();
  }

  /** Paint what `view` shows, a box in pixels of the drawing. */
  paint(view) {
    const pen = this.pen(this.canvas, view), seen = this.seen(view);
    this.paintFans(pen, seen);
    this.paintLinks(pen, seen);
    this.paintNodes(pen, seen);
    this.paintEnds(pen, seen);
    this.paintDepths(pen, view);
  }

  /** Mark one decision and the way to it. */
  mark(view, selected) {
    const pen = this.pen(this.marks, view);
    this.paintWay(pen, selected);
    this.paintRing(pen, selected);
  }

  /** What paints on an empty canvas in places of the drawing. */
  pen(canvas, view) {
    const sharpness = Math.min(SHARPEST, window.devicePixelRatio || 1);
    resize(canvas, view, sharpness);
    const pen = canvas.getContext("2d");
    pen.setTransform(sharpness, 0, 0, sharpness, -view.left * sharpness, -view.top * sharpness);
    pen.clearRect(view.left, view.top, view.width, view.height);
    pen.font = `12px ${this.colours.font}`;
    return pen;
  }

  /** Which lanes and depths are in view, one more on each side, and which nodes. */
  seen(view) {
    const { layout } = this;
    const lanes = between((view.top - EDGE.top) / layout.lane, (view.top + view.height - EDGE.top) / layout.lane, layout.rows.length);
    const depths = between((view.left - EDGE.left) / layout.step, (view.left + view.width - EDGE.left) / layout.step, layout.columns);
    const nodes = [];
    for (let lane = lanes.first; lane <= lanes.last; lane++) {
      const row = layout.rows[lane];
      if (row.length === 0) continue;
      const { depth } = layout.nodes[row[0]];
      const last = Math.min(row.length - 1, depths.last - depth);
      for (let place = Math.max(0, depths.first - depth); place <= last; place++) nodes.push(layout.nodes[row[place]]);
    }
    return { lanes, depths, nodes };
  }

  paintWay(pen, selected) {
    const { layout, colours } = this;
    pen.beginPath();
    layout.path(selected).forEach((index, place) => {
      const node = layout.nodes[index], y = layout.y(node.lane), start = layout.start(node);
      if (place === 0) pen.moveTo(start, y);
      else pen.lineTo(start, layout.y(layout.nodes[node.parent].lane));
      pen.lineTo(start, y);
      pen.lineTo(layout.x(node.depth), y);
    });
    pen.strokeStyle = colours.way;
    pen.lineWidth = Math.min(12, Math.max(3, layout.lane * 0.7));
    pen.lineJoin = "round";
    pen.stroke();
  }

  /** The vertical lines at which members of a group part; dashed, with =, where all returned the same. */
  paintFans(pen, { lanes, depths }) {
    const { layout, colours } = this;
    const lines = { true: new Path2D(), false: new Path2D() };
    pen.fillStyle = colours.ink;
    pen.textAlign = "center";
    for (const fan of layout.tree.fans) {
      if (fan.depth < depths.first || fan.depth > depths.last) continue;
      const first = fan.lanes[0], last = fan.lanes.at(-1);
      if (last < lanes.first || first > lanes.last) continue;
      const x = layout.fanX(fan), top = layout.y(first), bottom = layout.y(last);
      if (fan.stack) {
        lines.false.moveTo(layout.fanX({ ...fan, stack: fan.stack - 1 }), top);
        lines.false.lineTo(x, top);
      }
      if (first === last) continue;
      lines[fan.constant].moveTo(x, top);
      lines[fan.constant].lineTo(x, bottom);
      if (fan.constant && layout.lane >= 6) pen.fillText("=", x, bottom + 11);
    }
    pen.strokeStyle = colours.soft;
    pen.lineWidth = 1.5;
    pen.stroke(lines.false);
    pen.setLineDash([3, 3]);
    pen.stroke(lines.true);
    pen.setLineDash([]);
  }

  /** The ways to the decisions: neighbours of one look as one line, all lines of it in one stroke. */
  paintLinks(pen, { nodes }) {
    const { layout, colours } = this;
    const paths = new Map();
    let line = null;
    for (const node of nodes) {
      const look = node.shade * (WIDTHS + 1) + Math.round(node.thickness * WIDTHS);
      const start = layout.start(node), end = layout.x(node.depth);
      if (line && line.look === look && line.lane === node.lane && line.end === start) {
        line.end = end;
        continue;
      }
      if (line) addLine(paths, line, layout.y(line.lane));
      line = { look, lane: node.lane, start, end };
    }
    if (line) addLine(paths, line, layout.y(line.lane));
    for (const [look, path] of paths) {
      pen.strokeStyle = colours.shades[Math.floor(look / (WIDTHS + 1))];
      pen.lineWidth = Math.min(1.2 + (5.8 * (look % (WIDTHS + 1))) / WIDTHS, layout.lane * 0.6);
      pen.stroke(path);
    }
  }

  paintNodes(pen, { nodes }) {
    const { layout, colours } = this;
    const most = Math.min(5.5, layout.lane * 0.4, layout.step * 0.42), least = Math.min(1.6, most);
    const paths = SHADES.map(() => new Path2D());
    const rims = new Path2D(); // around the larger ones, which it does not wash out
    for (const node of nodes) {
      const x = layout.x(node.depth), y = layout.y(node.lane), radius = least + (most - least) * node.size;
      dot(paths[node.shade], x, y, radius);
      if (radius > 2.5) dot(rims, x, y, radius);
    }
    paths.forEach((path, index) => {
      pen.fillStyle = colours.shades[index];
      pen.fill(path);
    });
    pen.strokeStyle = colours.card;
    pen.lineWidth = 1;
    pen.stroke(rims);
  }

  paintEnds(pen, { lanes, depths }) {
    const { layout, colours } = this;
    const radius = Math.min(4.5, layout.lane * 0.35, layout.step * 0.35);
    const solved = new Path2D(), others = new Path2D();
    const named = layout.lane >= 14 && layout.step >= 8;
    pen.fillStyle = colours.soft;
    pen.textAlign = "left";
    for (const end of layout.tree.ends) {
      if (end.lane < lanes.first || end.lane > lanes.last || end.depth < depths.first || end.depth > depths.last + 1) continue;
      const x = layout.endX(end), y = layout.y(end.lane);
      dot(end.success ? solved : others, x, y, radius);
      if (named) pen.fillText(`${end.success ? "✓ " : ""}${show.number(end.total)}`, x + 9, y + 4);
    }
    pen.lineWidth = 1;
    for (const [path, fill, stroke] of [[solved, colours.ink, colours.ink], [others, colours.card, colours.soft]]) {
      pen.fillStyle = fill;
      pen.fill(path);
      pen.strokeStyle = stroke;
      pen.stroke(path);
    }
  }

  paintRing(pen, selected) {
    const { layout, colours } = this;
    const node = layout.nodes[selected];
    const ring = new Path2D();
    dot(ring, layout.x(node.depth), layout.y(node.lane), Math.min(10, Math.max(4, layout.lane * 0.48)));
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 2;
    pen.stroke(ring);
  }

  /** The numbers of the steps, which stay in view. */
  paintDepths(pen, view) {
    const { layout, colours } = this;
    pen.fillStyle = colours.card;
    pen.globalAlpha = 0.85;
    pen.fillRect(view.left, view.top, view.width, 18);
    pen.globalAlpha = 1;
    pen.fillStyle = colours.soft;
    pen.textAlign = "center";
    const every = [1, 5, 10, 20, 50, 100].find((count) => count * layout.step >= 34) ?? 200;
    for (let depth = 0; depth < layout.columns; depth += every) pen.fillText(String(depth), layout.x(depth), view.top + 14);
  }
}

function addLine(paths, { look, start, end }, y) {
  if (!paths.has(look)) paths.set(look, new Path2D());
  const path = paths.get(look);
  path.moveTo(start, y);
  path.lineTo(end, y);
}

function resize(canvas, { width, height }, sharpness) {
  const wide = Math.round(width * sharpness), high = Math.round(height * sharpness);
  if (canvas.width === wide && canvas.height === high) return;
  canvas.width = wide;
  canvas.height = high;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}

/** Whole numbers that enclose a range, one more on each side, within 0 and `count`. */
function between(low, high, count) {
  return { first: Math.max(0, Math.floor(low) - 1), last: Math.min(count - 1, Math.ceil(high) + 1) };
}

/** A dot; a square where nobody could tell. */
function dot(path, x, y, radius) {
  if (radius < 1.3) {
    path.rect(x - radius, y - radius, 2 * radius, 2 * radius);
    return;
  }
  path.moveTo(x + radius, y);
  path.arc(x, y, radius, 0, 2 * Math.PI);
}

/** The colours of the style sheet, as they are now: dark or light; and its font. */
function colours() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  const named = Object.fromEntries(["ink", "soft", "card", "way"].map((name) => [name, value(name)]));
  return { ...named, shades: SHADES.map(value), font: getComputedStyle(document.body).fontFamily };
}
