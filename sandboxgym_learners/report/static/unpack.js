"use strict";
// A tree lies in a block of the page, packed by trees.py: JSON, deflated, in base64.

/** The tree with that number, its nodes as rows and its prompts whole. */
async function unpackTree(number) {
  const packed = document.getElementById(`tree-${number}`).textContent;
  const tree = JSON.parse(await inflate(packed));
  return { ...tree, nodes: rows(tree.nodes), prompts: wholeTexts(tree.prompts) };
}

async function inflate(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  const { readable, writable } = new DecompressionStream("deflate");
  const writer = writable.getWriter();
  const [text] = await Promise.all([new Response(readable).text(), writer.write(bytes), writer.close()]);
  return text;
}

/** Rows from columns. */
function rows(columns) {
  const names = Object.keys(columns);
  return columns[names[0]].map((_, index) => Object.fromEntries(names.map((name) => [name, columns[name][index]])));
}

/** Texts of which each is given by how much of the one before it begins, and the rest. */
function wholeTexts(coded) {
  let before = "";
  return coded.map(([shared, rest]) => (before = before.slice(0, shared) + rest));
}
