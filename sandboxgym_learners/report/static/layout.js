"use strict";
// Where everything of a tree stands, and who is next to whom. Knows nothing of the page.

const ROOT = -1;
const COLUMN = { least: 12, most: 40 };
const EDGE = { left: 22, right: 56, top: 24, bottom: 14 };
const SHADES = ["n3", "n2", "n1", "zero", "p1", "p2", "p3"];
const NO_ADVANTAGE = 3;

class TreeLayout {
  constructor(tree) {
    this.tree = tree;
    this.nodes = tree.nodes;
    this.rows = Array.from({ length: tree.lanes }, () => []); // of each lane, its nodes: no gaps
    this.nodes.forEach((node, index) => this.rows[node.lane].push(index));
    this.columns = largest(tree.ends.map((end) => end.depth), 1) + 1;
    this.base = tree.lanes > 120 ? 10 : tree.lanes > 40 ? 16 : 24;
    const strongest = largest(this.nodes.map((node) => Math.abs(node.advantage)), 1e-12);
    const heaviest = largest(this.nodes.map((node) => node.weight), 1e-12);
    const widest = largest(this.nodes.map((node) => node.entropy), 1e-12);
    for (const node of this.nodes) {
      node.shade = shade(node.advantage / strongest);
      node.thickness = Math.sqrt(node.weight / heaviest);
      node.size = node.entropy / widest;
    }
    this.zoom = { x: 1, y: 1 };
    this.fit(COLUMN.most * this.columns);
  }

  // ---- places in pixels ------------------------------------------------------------------------

  /** Spread the columns over a width, as far as they stay neither too narrow nor too wide. */
  fit(width) {
    this.room = (width - EDGE.left - EDGE.right) / this.columns;
    this.scale();
  }

  scale() {
    const step = Math.min(COLUMN.most, Math.max(COLUMN.least, this.room));
    this.step = Math.max(1.5, step * this.zoom.x);
    this.lane = Math.max(0.5, this.base * this.zoom.y);
  }

  /** Make everything larger or smaller, within what can be seen. */
  zoomBy(factor) {
    const clamp = (value) => Math.min(3, Math.max(1 / 16, value));
    this.zoom = { x: clamp(this.zoom.x * factor), y: clamp(this.zoom.y * factor) };
    this.scale();
  }

  zoomToUsual() {
    this.zoom = { x: 1, y: 1 };
    this.scale();
  }

  /** Make the whole tree fit into a box; never larger than life. */
  zoomToFit(width, height) {
    this.zoomToUsual();
    const share = (space, count, size) => Math.min(1, space / (count * size));
    this.zoom = {
      x: share(width - EDGE.left - EDGE.right, this.columns, this.step),
      y: share(height - EDGE.top - EDGE.bottom, this.tree.lanes, this.lane),
    };
    this.scale();
  }

  get width() {
    return Math.ceil(EDGE.left + this.columns * this.step + EDGE.right);
  }

  get height() {
    return Math.ceil(EDGE.top + this.tree.lanes * this.lane + EDGE.bottom);
  }

  x(depth) {
    return EDGE.left + (depth + 0.5) * this.step;
  }

  y(lane) {
    return EDGE.top + (lane + 0.5) * this.lane;
  }

  /** The line of a group stands in front of its members; groups at one place stand side by side. */
  fanX(fan) {
    return this.x(fan.depth) - this.step / 2 + fan.stack * Math.min(6, this.step / 4);
  }

  endX(end) {
    return this.x(end.depth) - this.step / 2 + Math.min(6, this.step / 2);
  }

  /** Where the way to a node leaves its parent's lane, or the parent itself on the same lane. */
  start(node) {
    const parent = node.parent === ROOT ? null : this.nodes[node.parent];
    return parent && parent.lane === node.lane ? this.x(parent.depth) : this.fanX(this.tree.fans[node.group]);
  }

  /** The decision at a place of the drawing: the nearest of that lane. */
  under(x, y) {
    return this.nearest(Math.floor((y - EDGE.top) / this.lane), Math.floor((x - EDGE.left) / this.step));
  }

  // ---- neighbours ------------------------------------------------------------------------------

  /** The decision at a depth of a lane; undefined where there is none. */
  at(lane, depth) {
    const row = this.rows[lane] ?? [];
    return row.length ? row[depth - this.nodes[row[0]].depth] : undefined;
  }

  nearest(lane, depth) {
    const row = this.rows[lane] ?? [];
    if (row.length === 0) return undefined;
    return row[Math.min(row.length - 1, Math.max(0, depth - this.nodes[row[0]].depth))];
  }

  /** Where a key leads from a decision; itself where there is no way on, null for other keys. */
  move(key, from) {
    const { lane, depth, parent } = this.nodes[from];
    const moves = {
      ArrowLeft: () => (parent === ROOT ? from : parent),
      ArrowRight: () => this.at(lane, depth + 1) ?? from,
      ArrowUp: () => this.neighbour(from, -1),
      ArrowDown: () => this.neighbour(from, 1),
      PageUp: () => this.parting(from, -1),
      PageDown: () => this.parting(from, 1),
      Home: () => this.path(from)[0],
      End: () => this.rows[lane].at(-1),
    };
    return key in moves ? moves[key]() : null;
  }

  /** The decision at the same depth in the next lane that has one there, else that lane's nearest. */
  neighbour(from, direction) {
    const { lane, depth } = this.nodes[from];
    for (let other = lane + direction; this.rows[other]; other += direction) {
      const same = this.at(other, depth);
      if (same !== undefined) return same;
    }
    return this.nearest(lane + direction, depth) ?? from;
  }

  /** The first decision after the next branch point on this lane, or at the one before. */
  parting(from, direction) {
    const { lane, depth } = this.nodes[from];
    for (let next = depth + direction; ; next += direction) {
      const node = this.at(lane, next);
      if (node === undefined) return from;
      if (this.tree.fans[this.nodes[node].group].first.includes(node)) return node;
    }
  }

  /** The decisions from the reset to one. */
  path(index) {
    const path = [];
    for (let node = index; node !== ROOT; node = this.nodes[node].parent) path.push(node);
    return path.reverse();
  }

  /** The first branch point that teaches something, else the first decision. */
  opening() {
    const fans = this.tree.fans.filter((fan) => fan.level > 0 && !fan.constant);
    const fan = fans.find((fan) => fan.depth > 0) ?? fans[0] ?? this.tree.fans[0];
    return fan.first.find((node) => node !== ROOT) ?? 0;
  }
}

/** The number of one of seven shades, from the most negative advantage to the most positive. */
function shade(share) {
  const level = Math.abs(share) < 1e-9 ? 0 : Math.min(3, Math.ceil(Math.abs(share) * 3));
  return NO_ADVANTAGE + Math.sign(share) * level;
}

/** The largest value, or the least that it may be; for more values than a call takes arguments. */
function largest(values, least) {
  return values.reduce((most, value) => Math.max(most, value), least);
}
