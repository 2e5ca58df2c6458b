"use strict";
// What differs between two texts: first line by line, then word by word where lines differ.

const MOST_PAIRS = 1_500_000; // of pieces that are compared; beyond, all counts as different
const ALIKE = 0.4; // the share of words in common below which two texts are shown one after the other
const AROUND = 60; // characters shown on each side of a difference

/** The pieces of two texts in order: `same` in both, `gone` only in the first, `new` in the second. */
function diffTexts(before, after) {
  const split = (text) => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const lines = diffPieces(split(before), split(after));
  const result = [];
  for (let i = 0; i < lines.length; i++) {
    const [one, two] = [lines[i], lines[i + 1]];
    if (one.kind === "gone" && two?.kind === "new") {
      const pieces = diffPieces(words(one.text), words(two.text));
      result.push(...(alike(pieces) ? pieces : [one, two]));
      i++;
    } else result.push(one);
  }
  return joined(result);
}

/** Whether so much is the same that the differences read well among it; blanks do not count. */
function alike(pieces) {
  const count = (kind) => pieces.reduce((sum, piece) => sum + (piece.kind === kind ? piece.text.replace(/\s/g, "").length : 0), 0);
  const same = count("same");
  return same >= ALIKE * (same + Math.min(count("gone"), count("new")));
}

/** Letters and digits hang together; blanks and every sign stand alone. */
function words(text) {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
}

/** By the longest common subsequence; what both begin and end with is set aside first. */
function diffPieces(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const middle = changed(before.slice(start, before.length - end), after.slice(start, after.length - end));
  return joined([
    ...before.slice(0, start).map((text) => ({ kind: "same", text })),
    ...middle,
    ...before.slice(before.length - end).map((text) => ({ kind: "same", text })),
  ]);
}

function changed(before, after) {
  const gone = (text) => ({ kind: "gone", text }), added = (text) => ({ kind: "new", text });
  if (before.length * after.length > MOST_PAIRS) return [...before.map(gone), ...after.map(added)];
  const table = commonLengths(before, after);
  const result = [];
  let i = 0, j = 0;
  while (i < before.length && j < after.length) {
    if (before[i] === after[j]) {
      result.push({ kind: "same", text: before[i++] });
      j++;
    } else if (table[i + 1][j] >= table[i][j + 1]) result.push(gone(before[i++]));
    else result.push(added(after[j++]));
  }
  return [...result, ...before.slice(i).map(gone), ...after.slice(j).map(added)];
}

/** table[i][j]: how many pieces `before` from i and `after` from j have in common, in order. */
function commonLengths(before, after) {
  const table = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      table[i][j] = before[i] === after[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  return table;
}

/** Neighbours of one kind as one piece; between two that are the same, what is gone comes first. */
function joined(pieces) {
  const result = [];
  let gone = "", added = "";
  const flush = () => {
    if (gone) result.push({ kind: "gone", text: gone });
    if (added) result.push({ kind: "new", text: added });
    gone = added = "";
  };
  for (const { kind, text } of pieces) {
    if (kind === "gone") gone += text;
    else if (kind === "new") added += text;
    else {
      flush();
      if (result.at(-1)?.kind === "same") result.at(-1).text += text;
      else result.push({ kind, text });
    }
  }
  flush();
  return result;
}

/** The difference on the page; of long stretches that are the same, only the ends. */
function diffElement(before, after) {
  const pieces = diffTexts(before, after);
  return html("pre", { class: "diff" }, pieces.map((piece, index) => {
    if (piece.kind === "same") return shortened(piece.text, index > 0, index < pieces.length - 1);
    return html(piece.kind === "gone" ? "del" : "ins", {}, piece.text);
  }));
}

function shortened(text, follows, leads) {
  const head = follows ? AROUND : 0, tail = leads ? AROUND : 0;
  if (text.length <= head + tail + 30) return text;
  return `${text.slice(0, head)} … ${tail ? text.slice(-tail) : ""}`;
}
