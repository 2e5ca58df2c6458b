"use strict";
// The page from top to bottom.

(function main() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const colour = (algo) => lookOf(data.algorithms.indexOf(algo));
  const seeds = new Set(data.table.flatMap((row) => row.seeds)).size;
  const title = `Training report: ${inWords(data.algorithms.map((algo) => algo.toUpperCase()))}`;
  document.title = title;
  place(
    document.getElementById("report"),
    html("header", {}, html("h1", {}, title), html("p", { class: "note" }, data.setting), html("div", { class: "verdict" }, data.verdict.map((line) => html("p", {}, line)))),
    section("Success against compute", bandNote(seeds),
      data.success && chartFigure(data.success, colour, { height: 300 }),
      resultTable(data, colour)),
    section("Gradient variance", null, grid(data.variance, colour, "two")),
    section("Exploration and branching", data.window > 1 ? `Noisy values are means over ${data.window} neighbouring updates.` : null, grid(data.branching, colour)),
    section("Where the time went", "Mean seconds of one run. Restores are snapshots taken and restored.", costBars(data.costs)),
    data.trees.length ? section("A rollout tree", "Decisions from left to right, siblings below each other.", treeSection(data.trees, data.opening, data.kept)) : null,
    section("How this was made", null, made(data.made)),
  );

  function bandNote(count) {
    return count > 1
      ? `Thick line: mean over ${count} seeds. Band: 90 % confidence interval of that mean (Student's t). Thin lines: the seeds.`
      : "One seed, so no band: differences may be chance.";
  }
})();

/** The classes of an algorithm: six colours, and dashed lines when these are used up. */
function lookOf(index) {
  return `algo-${index % 6}${index < 6 ? "" : " again"}`;
}

function inWords(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

function section(title, note, ...content) {
  return html("section", {}, html("h2", {}, title), note ? html("p", { class: "note" }, note) : null, content);
}

function grid(charts, colour, kind = "") {
  return html("div", { class: `grid ${kind}` }, charts.map((chart) => chartFigure(chart, colour)));
}

function resultTable(data, colour) {
  const matched = show.number(data.matched_compute);
  const columns = [
    ["Algorithm", (row) => [html("span", { class: `key ${colour(row.algo)}` }), row.algo.toUpperCase()]],
    ["Final success", (row) => html("b", {}, show.share(row.final))],
    [`Mean success up to ${matched}`, (row) => show.share(row.area)],
    ["At the start", (row) => show.share(row.start)],
    ["Variance × cost", (row) => show.interval(row.variance_cost)],
    ["Seeds", (row) => String(row.seeds.length)],
    ["Compute", (row) => show.number(row.compute)],
    ["Updates", (row) => show.number(row.updates)],
    ["Episodes", (row) => show.number(row.returns)],
    ["Restores", (row) => show.number(row.restores)],
    ["Minutes", (row) => show.number(row.minutes)],
  ];
  return html("div", { class: "scroll" }, html("table", { class: "results" },
    html("thead", {}, html("tr", {}, columns.map(([name]) => html("th", {}, name)))),
    html("tbody", {}, data.table.map((row) => html("tr", {}, columns.map(([, cell]) => html("td", {}, cell(row))))))));
}

function made(facts) {
  const versions = Object.entries(facts.versions).map(([name, version]) => `${name} ${version}`).join(", ");
  const lines = [["Command", html("code", {}, facts.command)], ["Written by commit", facts.commit ?? "not known: no source tree"], ["Versions", versions], ["Written on", facts.machine]];
  const configs = facts.runs.map((run) => html("details", {}, html("summary", {}, run.name), html("pre", {}, JSON.stringify(run.config, null, 2))));
  return html("div", {}, html("dl", { class: "facts" }, lines.map(([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, value)))), html("h3", {}, "Configurations"), configs);
}
