"use strict";
// One rollout tree on the page: scrolled, zoomed, clicked through, and walked with the arrow keys.

const NEAR = 60; // pixels from the edge at which the view follows the selected decision

class TreeExplorer {
  constructor(tree) {
    this.layout = new TreeLayout(tree);
    this.selected = this.layout.opening();
    this.painter = new TreePainter(this.layout);
    this.sheet = html("div", { class: "tree-sheet" },
      html("div", { class: "tree-window" }, this.painter.marks, this.painter.canvas));
    this.scroll = html("div", {
      class: "tree-scroll", tabindex: "0", role: "application",
      "aria-label": "Rollout tree. Right and left walk along an episode, up and down to its neighbours, page up and down between branch points, plus and minus zoom, 0 shows all.",
      onkeydown: (event) => this.key(event),
      onclick: (event) => this.click(event),
      onscroll: () => this.repaint(),
    }, this.sheet);
    this.scroll.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.panel = html("div", { class: "panel", tabindex: "0" });
    this.comparing = false;
    this.element = html("div", { class: "tree" },
      html("div", { class: "tree-main" }, treeNote(tree), this.scroll, this.buttons(), treeLegend(tree)), this.panel);
    onWidth(this.scroll, (width) => this.fit(width));
    onTheme(this.element, () => {
      this.painter.colours = colours();
      this.repaint();
    });
    this.describe();
  }

  buttons() {
    const button = (key, text, label) => html("button", { type: "button", "aria-label": label, title: label, onclick: () => this.press(key) }, text);
    return html("div", { class: "pad" },
      button("ArrowLeft", "←", "decision before"), button("ArrowRight", "→", "next decision"),
      button("ArrowUp", "↑", "episode above"), button("ArrowDown", "↓", "episode below"),
      button("PageUp", "⇤", "branch point before"), button("PageDown", "⇥", "next branch point"),
      button("-", "−", "smaller"), button("+", "+", "larger"), button("0", "all", "show the whole tree"), button("1", "1:1", "usual size"),
      html("span", { class: "note" }, "or click, or use the keys"));
  }

  // ---- what is in view -------------------------------------------------------------------------

  fit(width) {
    this.layout.fit(width);
    this.resize();
  }

  /** Take the size that the drawing has now, and keep the selected decision in view. */
  resize() {
    this.sheet.style.width = `${this.layout.width}px`;
    this.sheet.style.height = `${this.layout.height}px`;
    this.follow();
    this.stale = true;
    this.paint();
  }

  get view() {
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = this.scroll;
    return { left: scrollLeft, top: scrollTop, width: clientWidth, height: clientHeight };
  }

  /** Paint before the next frame, however often it is asked for; all, or the selected decision. */
  repaint(all = true) {
    this.stale ||= all;
    this.waiting ??= requestAnimationFrame(() => this.paint());
  }

  paint() {
    cancelAnimationFrame(this.waiting);
    this.waiting = undefined;
    if (this.scroll.clientWidth === 0) return;
    if (this.stale) this.painter.paint(this.view);
    this.painter.mark(this.view, this.selected);
    this.stale = false;
  }

  follow() {
    const { layout, scroll } = this, { depth, lane } = layout.nodes[this.selected];
    const x = layout.x(depth), y = layout.y(lane), view = this.view;
    if (x < view.left + NEAR || x > view.left + view.width - NEAR) scroll.scrollLeft = x - view.width / 2;
    if (y < view.top + NEAR || y > view.top + view.height - NEAR) scroll.scrollTop = y - view.height / 2;
  }

  zoom(key) {
    const { layout } = this;
    if (key === "0") layout.zoomToFit(this.scroll.clientWidth, this.scroll.clientHeight);
    else if (key === "1") layout.zoomToUsual();
    else layout.zoomBy(key === "-" ? 1 / 1.4 : 1.4);
    this.resize();
  }

  // ---- what the reader does --------------------------------------------------------------------

  key(event) {
    if (!event.ctrlKey && !event.metaKey && !event.altKey && this.press(event.key)) event.preventDefault();
  }

  /** Walk or zoom; says whether the key means something here. */
  press(key) {
    if ("+=-01".includes(key)) {
      this.zoom(key);
      return true;
    }
    const next = this.layout.move(key, this.selected);
    if (next === null) return false;
    this.select(next);
    return true;
  }

  click(event) {
    const box = this.sheet.getBoundingClientRect();
    this.select(this.layout.under(event.clientX - box.left, event.clientY - box.top));
  }

  /** With Ctrl the wheel zooms, as pinching on a touchpad does. */
  wheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    this.layout.zoomBy(Math.exp(-event.deltaY / 300));
    this.resize();
  }

  /** Go to a decision; bound to this, since the panel calls it. */
  select = (index) => {
    if (index === undefined || index === this.selected) return;
    this.selected = index;
    this.follow();
    this.repaint(false);
    this.describe();
  };

  describe() {
    this.panel.replaceChildren(...describe(this.layout, this.selected, this));
    this.panel.scrollTop = 0;
  }
}

function treeNote(tree) {
  const points = tree.fans.filter((fan) => fan.level > 0).length;
  const dead = tree.fans.filter((fan) => fan.constant).length;
  return html("p", { class: "note" },
    `${show.count(tree.ends.length, "episode")} from ${show.count(tree.fans[0].first.length, "root")}, ` +
    `${show.count(points, "branch point")}, ${show.count(tree.nodes.length, "decision")}. ` +
    `In ${dead} of ${show.count(tree.fans.length, "group")} all members returned the same.`);
}

function treeLegend(tree) {
  return html("ul", { class: "legend tree-legend" },
    html("li", {}, "advantage −", SHADES.map((level) => html("span", { class: `swatch adv-${level}` })), "+"),
    html("li", {}, html("span", { class: "stroke" }), "width: weight in the gradient"),
    html("li", {}, html("span", { class: "dot small" }), html("span", { class: "dot" }), `size: entropy of the ${tree.entropy_of}`),
    html("li", {}, html("span", { class: "dash" }), "= all members returned the same"),
    html("li", {}, html("span", { class: "dot won" }), "✓ solved, with its return"));
}
