"use strict";
// Where the seconds of a run went: stacked bars, and the numbers below.

const COSTS = ["policy", "environment", "restores", "learning", "evaluation", "other"];

/** Mean seconds of a run, stacked, one bar an algorithm. */
function costBars(costs) {
  const total = (cost) => COSTS.reduce((sum, name) => sum + cost[name], 0);
  const longest = Math.max(...costs.map(total)) || 1;
  const bars = costs.map((cost) => {
    const parts = COSTS.map((name) => {
      const part = html("span", { class: `part cost-${name}`, title: `${name}: ${show.number(cost[name])} s` });
      part.style.width = `${(100 * cost[name]) / longest}%`;
      return part;
    });
    return html("div", { class: "bar" }, html("b", {}, cost.algo.toUpperCase()), html("div", { class: "parts" }, parts), html("span", {}, `${show.number(total(cost))} s`));
  });
  const head = html("tr", {}, html("th", {}, "Seconds a run"), ...COSTS.map((name) => html("th", {}, html("span", { class: `key cost-${name}` }), name)));
  const rows = costs.map((cost) => html("tr", {}, html("th", {}, cost.algo.toUpperCase()), ...COSTS.map((name) => html("td", {}, show.number(cost[name])))));
  return html("div", {}, bars, html("div", { class: "scroll" }, html("table", {}, html("thead", {}, head), html("tbody", {}, rows))));
}
