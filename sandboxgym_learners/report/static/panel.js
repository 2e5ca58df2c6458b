"use strict";
// The panel beside a tree: what the agent saw and did at one decision, and what its siblings did.

/** All about a decision. `panel` has `select`, which goes to another one, and remembers whether the
 *  reader is comparing observations. */
function describe(layout, selected, panel) {
  const { tree } = layout, node = layout.nodes[selected];
  return [
    html("div", { "aria-live": "polite" },
      html("p", { class: "crumbs" }, whereabouts(layout, node)),
      html("h3", {}, tree.texts[node.action])),
    numbers(tree, node),
    siblings(layout, selected, panel.select),
    differences(layout, selected, panel),
    html("h4", {}, "What the agent saw"), html("pre", {}, tree.prompts[node.prompt]),
    candidates(tree, node),
    node.written < 0 ? null : [html("h4", {}, "What the agent wrote"), html("pre", {}, tree.texts[node.written])],
    html("h4", {}, "What came of it"), html("pre", {}, tree.texts[node.observation]),
  ].flat().filter((part) => part !== null);
}

function whereabouts({ tree }, node) {
  const fan = tree.fans[node.group];
  const kind = fan.level === 0 ? "root" : node.member === 0 ? "backbone" : "fork";
  const parted = fan.level > 0 ? `, parted at step ${fan.depth}` : "";
  const lost = fan.planned - fan.lanes.length;
  return `Step ${node.depth} · ${kind} ${node.member + 1} of ${fan.planned}${parted}${lost ? ` (${lost} lost)` : ""}`;
}

function numbers(tree, node) {
  const facts = [
    ["advantage", show.signed(node.advantage)], ["weight", show.number(node.weight)],
    ["entropy", `${show.number(node.entropy)} nats`], ["chance", show.percent(node.chance)],
    ["reward", show.number(node.reward)],
  ];
  if (tree.nodes.some((other) => other.value !== 0)) facts.push(["critic's value", show.number(node.value)]);
  return html("dl", {}, facts.map(([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, value))));
}

/** The members of the group, where the selected decision is the first of its segment. */
function siblings({ tree, nodes }, selected, select) {
  const fan = tree.fans[nodes[selected].group];
  if (!fan.first.includes(selected) || fan.first.length < 2) return null;
  const verdict = fan.constant ? "all returned the same: nothing is learned here" : "their returns differ";
  const items = fan.first.map((first, index) => {
    const name = first === ROOT ? "(no decision)" : tree.texts[nodes[first].action];
    const current = first === selected ? "true" : null;
    return html("li", {}, html("button", { type: "button", "aria-current": current, onclick: () => select(first) },
      html("span", {}, name), html("b", {}, show.number(fan.returns[index]))));
  });
  const what = fan.level === 0 ? "roots" : "siblings";
  return html("div", { class: "siblings" },
    html("h4", {}, `${fan.first.length} ${what}, ${show.count(fan.actions, "different action")}; ${verdict}`),
    html("ol", {}, items));
}

/** What the siblings saw at the same step. It takes a while with many, so it waits to be opened. */
function differences(layout, selected, panel) {
  const node = layout.nodes[selected], others = elsewhere(layout, node);
  if (others.length === 0) return null;
  const list = html("ol", {});
  const toggle = () => {
    panel.comparing = element.open;
    if (element.open && !list.firstChild) list.append(...comparisons(layout, node, others, panel.select));
  };
  const element = html("details", { class: "differences", ontoggle: toggle },
    html("summary", {}, `What the siblings saw at step ${node.depth}, and how it differs`),
    html("p", { class: "note" }, html("del", {}, "only here"), " ", html("ins", {}, "only there"), ", by the number of the sibling"),
    list);
  element.open = panel.comparing;
  toggle();
  return element;
}

/** One item for all siblings that did and saw the same. */
function comparisons({ tree, nodes }, node, others, select) {
  const alike = new Map();
  for (const other of others) {
    const key = `${nodes[other].action} ${nodes[other].observation}`;
    alike.set(key, [...(alike.get(key) ?? []), other]);
  }
  const own = tree.texts[node.observation], { lanes } = tree.fans[node.group];
  return [...alike.values()].map((members) => {
    const first = nodes[members[0]];
    const who = members.map((index) => lanes.indexOf(nodes[index].lane) + 1).join(", ");
    return html("li", {},
      html("button", { type: "button", onclick: () => select(members[0]) }, html("span", {}, `${who}: ${tree.texts[first.action]}`)),
      first.observation === node.observation ? html("p", { class: "note" }, "saw the same") : diffElement(own, tree.texts[first.observation]));
  });
}

/** The decisions that the other members of a decision's group took at the same step. */
function elsewhere(layout, node) {
  const { lanes } = layout.tree.fans[node.group];
  return lanes.filter((lane) => lane !== node.lane).map((lane) => layout.at(lane, node.depth)).filter((index) => index !== undefined);
}

function candidates(tree, node) {
  const menu = tree.menus[node.menu];
  if (menu.length === 0) return null;
  const items = menu.map((text) => html("li", { class: text === node.action ? "chosen" : null }, tree.texts[text]));
  return html("details", {}, html("summary", {}, `${items.length} admissible actions`), html("ul", {}, items));
}
