"use strict";
// The choice among the kept trees: a run, and one of its updates.

/** The section with the choice; one tree is unpacked and shown at a time. */
function treeSection(trees, opening, kept) {
  return new TreeChoice(trees, opening, kept).element;
}

class TreeChoice {
  constructor(trees, opening, kept) {
    this.trees = trees;
    this.runs = byRun(trees);
    const select = (run, index) => html("option", { value: index }, `${run.name} (${show.count(run.trees.length, "tree")})`);
    this.run = html("select", { id: "run-choice", onchange: () => this.chooseRun() }, this.runs.map(select));
    this.update = html("input", { id: "update-choice", type: "range", min: 0, step: 1, oninput: () => this.show() });
    this.told = html("p", { class: "tree-name", "aria-live": "polite" });
    this.chosen = html("div", { class: "tree-chosen" });
    const button = (text, label, onclick) => html("button", { type: "button", "aria-label": label, title: label, onclick }, text);
    this.element = html("div", {},
      html("div", { class: "choice" },
        html("label", { for: "run-choice" }, "Run"), this.run,
        html("label", { for: "update-choice" }, "Update"),
        html("span", { class: "slider" }, button("‹", "tree before", () => this.go(-1)), this.update, button("›", "next tree", () => this.go(1))),
        button("most telling", "the tree whose branch points show most", () => this.choose(opening))),
      this.told,
      trees.length < kept ? html("p", { class: "note" }, `${trees.length} of the ${kept} kept trees are here; all would make the page too heavy.`) : null,
      this.chosen);
    this.choose(opening);
  }

  choose(number) {
    const run = this.runs.findIndex((run) => run.trees.includes(number));
    this.run.value = run;
    this.update.max = this.runs[run].trees.length - 1;
    this.update.value = this.runs[run].trees.indexOf(number);
    return this.show();
  }

  /** The tree of the other run that is nearest to the update that was shown. */
  chooseRun() {
    const wanted = this.trees[this.number].update;
    const distance = (number) => Math.abs(this.trees[number].update - wanted);
    return this.choose(this.runs[this.run.value].trees.reduce((best, number) => (distance(number) < distance(best) ? number : best)));
  }

  go(steps) {
    this.update.value = Number(this.update.value) + steps;
    return this.show();
  }

  /** Unpack and show the chosen tree, unless another one is chosen meanwhile. */
  async show() {
    const number = this.runs[this.run.value].trees[this.update.value];
    if (number === this.number) return;
    this.number = number;
    this.told.textContent = treeName(this.trees[number]);
    this.update.setAttribute("aria-valuetext", `update ${this.trees[number].update}`);
    this.chosen.setAttribute("aria-busy", "true");
    const content = await unpackTree(number).then(treeElement, unreadable);
    if (number !== this.number) return;
    place(this.chosen, content);
    this.chosen.removeAttribute("aria-busy");
  }
}

function treeElement(tree) {
  return tree.nodes.length ? new TreeExplorer(tree).element : html("p", {}, "No decision was taken in this tree.");
}

function unreadable(error) {
  return html("p", { role: "alert" }, `This tree cannot be unpacked here: ${error.message}. A current browser can.`);
}

/** The runs in the order of the page, each with the numbers of its trees. */
function byRun(trees) {
  const runs = new Map();
  trees.forEach((tree, number) => {
    const name = `${tree.algo.toUpperCase()}, seed ${tree.seed}`;
    if (!runs.has(name)) runs.set(name, { name, trees: [] });
    runs.get(name).trees.push(number);
  });
  return [...runs.values()];
}

function treeName(tree) {
  return `Update ${tree.update}: ${tree.task} (${show.count(tree.episodes, "episode")}, success ${show.percent(tree.success)})`;
}
