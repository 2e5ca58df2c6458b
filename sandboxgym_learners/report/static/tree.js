"use strict";
// The rollout tree: drawn, clicked through, and walked with the arrow keys.

const ROOT = -1;
const COLUMN = { least: 12, most: 40 };
const EDGE = { left: 22, right: 46, top: 26, bottom: 10 };

/** The section with a choice of trees; one of them is shown at a time. */
function treeSection(trees) {
  const chosen = html("div", {}, new TreeExplorer(trees[0]).element);
  const choice = html("select", {
    id: "tree-choice",
    onchange: () => place(chosen, new TreeExplorer(trees[choice.value]).element),
  });
  trees.forEach((tree, index) => choice.append(html("option", { value: index }, treeName(tree))));
  return html("div", {}, html("p", {}, html("label", { for: "tree-choice" }, "Tree "), choice), chosen);
}

function treeName(tree) {
  return `${tree.algo.toUpperCase()}, seed ${tree.seed}, update ${tree.update}: ${tree.task}`;
}

class TreeExplorer {
  constructor(tree) {
    this.tree = tree;
    this.nodes = rows(tree.nodes);
    this.byPlace = new Map(this.nodes.map((node, index) => [`${node.lane} ${node.depth}`, index]));
    this.strongest = Math.max(...this.nodes.map((node) => Math.abs(node.advantage)), 1e-12);
    this.heaviest = Math.max(...this.nodes.map((node) => node.weight), 1e-12);
    this.widest = Math.max(...this.nodes.map((node) => node.entropy), 1e-12);
    this.columns = Math.max(...tree.ends.map((end) => end.depth), 1) + 1;
    this.lane = tree.lanes > 120 ? 10 : tree.lanes > 40 ? 16 : 24;
    this.selected = this.opening();
    this.build();
  }

  /** Begin at the first branch point that teaches something, else at the first decision. */
  opening() {
    const fans = this.tree.fans.filter((fan) => fan.level > 0 && !fan.constant);
    const fan = fans.find((fan) => fan.depth > 0) ?? fans[0] ?? this.tree.fans[0];
    return fan.first.find((node) => node !== ROOT) ?? 0;
  }

  build() {
    this.scroll = html("div", {
      class: "tree-scroll", tabindex: "0", role: "application",
      "aria-label": "Rollout tree. Arrow keys walk: right and left along an episode, up and down to its neighbours.",
      onkeydown: (event) => this.key(event),
      onclick: (event) => this.click(event),
    });
    this.panel = html("div", { class: "panel", "aria-live": "polite" });
    this.element = html(
      "div", { class: "tree" },
      html("div", { class: "tree-main" }, this.summary(), this.scroll, this.pad(), treeLegend()),
      this.panel,
    );
    onWidth(this.scroll, (width) => this.draw(width));
    this.describe();
  }

  summary() {
    const { tree } = this;
    const points = tree.fans.filter((fan) => fan.level > 0);
    const dead = tree.fans.filter((fan) => fan.constant).length;
    return html("p", { class: "note" },
      `${show.count(tree.episodes, "episode")} from ${show.count(tree.fans[0].first.length, "root")}, ` +
      `${show.count(points.length, "branch point")}, ` +
      `${this.nodes.length} decisions; success ${show.percent(tree.success)}. ` +
      `In ${dead} of ${show.count(tree.fans.length, "group")} all members returned the same.`);
  }

  pad() {
    const button = (key, text, label) => html("button", { type: "button", "aria-label": label, onclick: () => this.walk(key) }, text);
    return html("div", { class: "pad" },
      button("ArrowLeft", "←", "decision before"), button("ArrowRight", "→", "next decision"),
      button("ArrowUp", "↑", "episode above"), button("ArrowDown", "↓", "episode below"),
      html("span", { class: "note" }, "or click, or use the arrow keys"));
  }

  // ---- drawing -------------------------------------------------------------------------------

  draw(width) {
    const room = (width - EDGE.left - EDGE.right) / this.columns;
    this.step = Math.min(COLUMN.most, Math.max(COLUMN.least, room));
    const size = {
      width: Math.ceil(EDGE.left + this.columns * this.step + EDGE.right),
      height: Math.ceil(EDGE.top + this.tree.lanes * this.lane + EDGE.bottom),
    };
    this.highlight = svg("g", { class: "highlight" });
    const canvas = svg("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}` });
    canvas.append(this.drawDepths(), this.highlight, this.drawFans(), this.drawLinks(), this.drawNodes(), this.drawEnds());
    this.scroll.replaceChildren(canvas);
    this.mark();
  }

  x(depth) {
    return Math.round(EDGE.left + (depth + 0.5) * this.step);
  }

  y(lane) {
    return EDGE.top + (lane + 0.5) * this.lane;
  }

  /** The line of a group stands in front of its members; groups at one place stand side by side. */
  fanX(fan) {
    return this.x(fan.depth) - this.step / 2 + fan.stack * Math.min(6, this.step / 4);
  }

  drawDepths() {
    const group = svg("g", {});
    for (let depth = 0; depth < this.columns; depth += 5) {
      group.append(svg("text", { class: "tick", x: this.x(depth), y: 14, "text-anchor": "middle" }, String(depth)));
    }
    return group;
  }

  /** The vertical lines at which members of a group part. */
  drawFans() {
    const group = svg("g", {});
    for (const fan of this.tree.fans) {
      const x = this.fanX(fan);
      const top = this.y(Math.min(...fan.lanes)), bottom = this.y(Math.max(...fan.lanes));
      const kind = fan.constant ? "fan constant" : "fan";
      if (top < bottom) group.append(svg("line", { class: kind, x1: x, x2: x, y1: top, y2: bottom }));
      if (fan.stack) group.append(svg("line", { class: "fan", x1: this.fanX({ ...fan, stack: fan.stack - 1 }), x2: x, y1: top, y2: top }));
      if (fan.constant && top < bottom) group.append(svg("text", { class: "constant-mark", x, y: bottom + 11, "text-anchor": "middle" }, "="));
    }
    return group;
  }

  /** The way to each decision, as one path where neighbours look the same. */
  drawLinks() {
    const group = svg("g", { class: "links" });
    let path = null;
    this.nodes.forEach((node, index) => {
      const style = `${node.advantage} ${node.weight} ${node.group} ${node.member}`;
      if (path && path.style === style && node.parent === index - 1) {
        path.d += `H${this.x(node.depth)}`;
      } else {
        if (path) group.append(this.link(path));
        path = { node, style, d: `M${this.linkStart(node)} ${this.y(node.lane)}H${this.x(node.depth)}` };
      }
    });
    if (path) group.append(this.link(path));
    return group;
  }

  /** Where the way to a node leaves its parent's lane, or the parent itself on the same lane. */
  linkStart(node) {
    const parent = node.parent === ROOT ? null : this.nodes[node.parent];
    return parent && parent.lane === node.lane ? this.x(parent.depth) : this.fanX(this.tree.fans[node.group]);
  }

  link({ node, d }) {
    const width = 1.2 + 5.8 * Math.sqrt(node.weight / this.heaviest);
    return svg("path", { class: this.colour(node.advantage), d, "stroke-width": Math.min(width, this.lane * 0.6).toFixed(1) });
  }

  drawNodes() {
    const most = Math.min(5.5, this.lane * 0.4, this.step * 0.42);
    const group = svg("g", { class: "nodes" });
    for (const node of this.nodes) {
      const radius = 1.6 + (most - 1.6) * (node.entropy / this.widest);
      group.append(svg("circle", { class: this.colour(node.advantage), cx: this.x(node.depth), cy: this.y(node.lane), r: radius.toFixed(1) }));
    }
    return group;
  }

  drawEnds() {
    const group = svg("g", { class: "ends" });
    for (const end of this.tree.ends) {
      const x = this.x(end.depth) - this.step / 2 + 6, y = this.y(end.lane);
      group.append(svg("circle", { class: end.success ? "won" : "lost", cx: x, cy: y, r: Math.min(4.5, this.lane * 0.35) }));
      if (this.lane >= 16) group.append(svg("text", { class: "tick", x: x + 9, y: y + 4 }, `${end.success ? "✓ " : ""}${show.number(end.total)}`));
    }
    return group;
  }

  /** One of seven classes, from the most negative advantage to the most positive. */
  colour(advantage) {
    const share = advantage / this.strongest;
    const level = Math.abs(share) < 1e-9 ? 0 : Math.min(3, Math.ceil(Math.abs(share) * 3));
    return level === 0 ? "adv-0" : `adv-${share < 0 ? "n" : "p"}${level}`;
  }

  // ---- walking -------------------------------------------------------------------------------

  key(event) {
    if (this.walk(event.key)) event.preventDefault();
  }

  /** Go one decision on; says whether the key means something here. */
  walk(key) {
    const moves = {
      ArrowLeft: () => this.nodes[this.selected].parent,
      ArrowRight: () => this.next(),
      ArrowUp: () => this.neighbour(-1),
      ArrowDown: () => this.neighbour(1),
      Home: () => this.path(this.selected).at(-1),
      End: () => this.last(),
    };
    if (!(key in moves)) return false;
    this.select(moves[key]());
    return true;
  }

  next() {
    const { lane, depth } = this.nodes[this.selected];
    return this.byPlace.get(`${lane} ${depth + 1}`) ?? this.selected;
  }

  last() {
    const { lane } = this.nodes[this.selected];
    return this.nodes.findLastIndex((node) => node.lane === lane);
  }

  /** The decision at the same depth in the next lane that has one there, else that lane's nearest. */
  neighbour(direction) {
    const { lane, depth } = this.nodes[this.selected];
    for (let other = lane + direction; other >= 0 && other < this.tree.lanes; other += direction) {
      const same = this.byPlace.get(`${other} ${depth}`);
      if (same !== undefined) return same;
    }
    return this.nearest(lane + direction, depth) ?? this.selected;
  }

  nearest(lane, depth) {
    let best = null;
    this.nodes.forEach((node, index) => {
      if (node.lane !== lane) return;
      if (best === null || Math.abs(node.depth - depth) < Math.abs(this.nodes[best].depth - depth)) best = index;
    });
    return best;
  }

  click(event) {
    const box = this.scroll.firstElementChild.getBoundingClientRect();
    const lane = Math.floor((event.clientY - box.top - EDGE.top) / this.lane);
    const depth = Math.floor((event.clientX - box.left - EDGE.left) / this.step);
    this.select(this.nearest(lane, depth));
  }

  select(index) {
    if (index === null || index === ROOT || index === this.selected) return;
    this.selected = index;
    this.mark();
    this.describe();
  }

  /** The nodes from one back to the reset. */
  path(index) {
    const path = [];
    for (let node = index; node !== ROOT; node = this.nodes[node].parent) path.push(node);
    return path;
  }

  /** Mark the selected node and the way to it, and bring it into view. */
  mark() {
    if (!this.highlight) return;
    const path = this.path(this.selected).reverse().map((index) => this.nodes[index]);
    let d = `M${this.linkStart(path[0])} ${this.y(path[0].lane)}`;
    for (const node of path) d += `H${this.linkStart(node)}V${this.y(node.lane)}H${this.x(node.depth)}`;
    const { depth, lane } = this.nodes[this.selected];
    const x = this.x(depth), y = this.y(lane);
    this.highlight.replaceChildren(
      svg("path", { class: "way", d }),
      svg("circle", { class: "ring", cx: x, cy: y, r: Math.min(10, this.lane * 0.48) }),
    );
    const { scroll } = this, edge = 60;
    if (x < scroll.scrollLeft + edge || x > scroll.scrollLeft + scroll.clientWidth - edge) scroll.scrollLeft = x - scroll.clientWidth / 2;
    if (y < scroll.scrollTop + edge || y > scroll.scrollTop + scroll.clientHeight - edge) scroll.scrollTop = y - scroll.clientHeight / 2;
  }

  // ---- telling -------------------------------------------------------------------------------

  text(index) {
    return this.tree.texts[index];
  }

  /** Fill the panel with what the agent saw and did at the selected decision. */
  describe() {
    const node = this.nodes[this.selected];
    this.panel.replaceChildren(
      html("p", { class: "crumbs" }, this.whereabouts(node)),
      html("h3", {}, this.text(node.action)),
      this.numbers(node),
      this.siblings(node),
      html("h4", {}, "What the agent saw"), html("pre", {}, this.text(node.prompt)),
      this.candidates(node),
      html("h4", {}, "What came of it"), html("pre", {}, this.text(node.observation)),
    );
  }

  whereabouts(node) {
    const fan = this.tree.fans[node.group];
    const kind = fan.level === 0 ? "root" : node.member === 0 ? "backbone" : "fork";
    return `Step ${node.depth} · ${kind} ${node.member + 1} of ${fan.planned}${fan.level > 0 ? `, parted at step ${fan.depth}` : ""}`;
  }

  numbers(node) {
    const facts = [
      ["advantage", show.signed(node.advantage)], ["weight", show.number(node.weight)],
      ["entropy", `${show.number(node.entropy)} nats`], ["chance", show.percent(node.chance)],
      ["reward", show.number(node.reward)],
    ];
    return html("dl", {}, facts.map(([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, value))));
  }

  /** The other members of the group, where the selected decision is the first of its segment. */
  siblings(node) {
    const fan = this.tree.fans[node.group];
    if (!fan.first.includes(this.selected) || fan.first.length < 2) return null;
    const verdict = fan.constant ? "all returned the same: nothing is learned here" : "their returns differ";
    const items = fan.first.map((first, index) => {
      const name = first === ROOT ? "(no decision)" : this.text(this.nodes[first].action);
      const current = first === this.selected;
      return html("li", {}, html("button", { type: "button", "aria-current": current ? "true" : null, onclick: () => this.select(first) },
        html("span", {}, name), html("b", {}, show.number(fan.returns[index]))));
    });
    const what = fan.level === 0 ? "roots" : "siblings";
    return html("div", { class: "siblings" },
      html("h4", {}, `${fan.first.length} ${what}, ${show.count(fan.actions, "different action")}; ${verdict}`),
      html("ol", {}, items));
  }

  candidates(node) {
    if (node.candidates.length === 0) return null;
    const items = node.candidates.map((text) => html("li", { class: text === node.action ? "chosen" : null }, this.text(text)));
    return html("details", {}, html("summary", {}, `${items.length} admissible actions`), html("ul", {}, items));
  }
}

/** Rows from columns. */
function rows(columns) {
  const names = Object.keys(columns);
  return columns[names[0]].map((_, index) => Object.fromEntries(names.map((name) => [name, columns[name][index]])));
}

function treeLegend() {
  const levels = ["n3", "n2", "n1", "0", "p1", "p2", "p3"];
  return html("ul", { class: "legend tree-legend" },
    html("li", {}, "advantage −", levels.map((level) => html("span", { class: `swatch adv-${level}` })), "+"),
    html("li", {}, html("span", { class: "stroke" }), "width: weight in the gradient"),
    html("li", {}, html("span", { class: "dot small" }), html("span", { class: "dot" }), "size: entropy of the decision"),
    html("li", {}, html("span", { class: "dash" }), "= all members returned the same"),
    html("li", {}, html("span", { class: "dot won" }), "✓ solved, with its return"));
}
