/** Changes of files: by whole texts or as a unified diff, drawn with the signs that diffs have. */

import { h, visible } from "./dom.js";

/** @typedef {{sign: " " | "+" | "-" | "@", text: string, old?: number, new?: number}} Row */

/** Beyond so many lines of middle, no common lines are looked for: all of the old, then all of the new. */
const LIMIT = 2000;
const AROUND = 3;

/** @param {string} text */
function rowsOf(text) {
  const rows = text.split("\n");
  if (rows[rows.length - 1] === "") rows.pop();
  return rows;
}

/**
 * What became of the lines of one text in another (Myers, greedy; the same ends are cut off first).
 * @param {string | null} before
 * @param {string | null} after
 * @returns {Row[]}
 */
export function lineDiff(before, after) {
  const a = rowsOf(before ?? "");
  const b = rowsOf(after ?? "");
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  /** @type {Row[]} */
  const rows = a.slice(0, start).map((text, index) => ({ sign: " ", text, old: index + 1, new: index + 1 }));
  rows.push(...middle(a.slice(start, a.length - end), b.slice(start, b.length - end), start));
  for (let index = end; index > 0; index -= 1) {
    rows.push({ sign: " ", text: a[a.length - index], old: a.length - index + 1, new: b.length - index + 1 });
  }
  return rows;
}

/** @param {string[]} a @param {string[]} b @param {number} start @returns {Row[]} */
function middle(a, b, start) {
  /** @param {number} x @returns {Row} */
  const removed = (x) => ({ sign: "-", text: a[x], old: start + x + 1 });
  /** @param {number} y @returns {Row} */
  const added = (y) => ({ sign: "+", text: b[y], new: start + y + 1 });
  if (a.length === 0 || b.length === 0 || a.length + b.length > LIMIT) {
    return [...a.map((_, x) => removed(x)), ...b.map((_, y) => added(y))];
  }
  /** @type {Map<number, number>[]} */
  const trace = [];
  let furthest = new Map([[1, 0]]);
  for (let steps = 0; ; steps += 1) {
    trace.push(new Map(furthest));
    for (let k = -steps; k <= steps; k += 2) {
      const down = k === -steps || (k !== steps && (furthest.get(k - 1) ?? 0) < (furthest.get(k + 1) ?? 0));
      let x = down ? (furthest.get(k + 1) ?? 0) : (furthest.get(k - 1) ?? 0) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x += 1;
        y += 1;
      }
      furthest.set(k, x);
      if (x >= a.length && y >= b.length) return back(trace, a, b, start, removed, added);
    }
  }
}

/**
 * @param {Map<number, number>[]} trace
 * @param {string[]} a
 * @param {string[]} b
 * @param {number} start
 * @param {(x: number) => Row} removed
 * @param {(y: number) => Row} added
 * @returns {Row[]}
 */
function back(trace, a, b, start, removed, added) {
  /** @type {Row[]} */
  const rows = [];
  let x = a.length;
  let y = b.length;
  for (let steps = trace.length - 1; steps >= 0; steps -= 1) {
    const furthest = trace[steps];
    const k = x - y;
    const down = k === -steps || (k !== steps && (furthest.get(k - 1) ?? 0) < (furthest.get(k + 1) ?? 0));
    const fromX = steps === 0 ? 0 : (furthest.get(down ? k + 1 : k - 1) ?? 0);
    const fromY = steps === 0 ? 0 : fromX - (down ? k + 1 : k - 1);
    while (x > fromX && y > fromY && x > 0 && y > 0 && a[x - 1] === b[y - 1]) {
      rows.push({ sign: " ", text: a[x - 1], old: start + x, new: start + y });
      x -= 1;
      y -= 1;
    }
    if (steps > 0) {
      rows.push(down ? added(fromY) : removed(fromX));
      x = fromX;
      y = fromY;
    }
  }
  return rows.reverse();
}

/**
 * The rows of a unified diff, or of a patch as Codex writes it.
 * @param {string} text
 * @returns {Row[]}
 */
export function readUnified(text) {
  /** @type {Row[]} */
  const rows = [];
  let old = 0;
  let fresh = 0;
  for (const row of rowsOf(text)) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(row);
    if (hunk) {
      old = Number(hunk[1]);
      fresh = Number(hunk[2]);
      rows.push({ sign: "@", text: row });
    } else if (/^(?:diff |index |Index: |=====|--- |\+\+\+ |\*\*\* |@@|new file|deleted file|rename |similarity |\\ )/.test(row)) {
      rows.push({ sign: "@", text: row });
    } else if (row.startsWith("+")) rows.push({ sign: "+", text: row.slice(1), new: fresh++ });
    else if (row.startsWith("-")) rows.push({ sign: "-", text: row.slice(1), old: old++ });
    else rows.push({ sign: " ", text: row.startsWith(" ") ? row.slice(1) : row, old: old++, new: fresh++ });
  }
  return rows;
}

/** Rows that stayed the same and are far from a change become one row that says how many there are. @param {Row[]} rows @returns {Row[]} */
export function nearChanges(rows) {
  const near = new Set();
  rows.forEach((row, index) => {
    if (row.sign === "+" || row.sign === "-") for (let at = index - AROUND; at <= index + AROUND; at += 1) near.add(at);
  });
  /** @type {Row[]} */
  const kept = [];
  let left = 0;
  const tell = () => {
    if (left > 0) kept.push({ sign: "@", text: `… ${left} unchanged line${left === 1 ? "" : "s"}` });
    left = 0;
  };
  rows.forEach((row, index) => {
    if (row.sign !== " " || near.has(index)) {
      tell();
      kept.push(row);
    } else left += 1;
  });
  tell();
  return kept;
}

const CLASSES = { " ": "same", "+": "added", "-": "removed", "@": "hunk" };

/**
 * How many lines came and went.
 * @param {Row[]} rows
 */
export function tallyOf(rows) {
  return { added: rows.filter((row) => row.sign === "+").length, removed: rows.filter((row) => row.sign === "-").length };
}

/** More rows than this are drawn only when somebody asks. */
const SHOWN = 400;

/**
 * A change of one file.
 * @param {{path?: string | null, oldText?: string | null, newText?: string | null, diff?: string | null}} change
 */
export function diffView(change) {
  const unified = typeof change.diff === "string";
  const all = unified ? readUnified(change.diff ?? "") : lineDiff(change.oldText ?? null, change.newText ?? null);
  const rows = unified ? all : nearChanges(all);
  const tally = tallyOf(all);
  const table = h("div", { class: "diff-rows", role: "table", tabindex: "0", "aria-label": "Changed lines" });
  /** @param {Row[]} some */
  const put = (some) => table.append(...some.map(drawn));
  put(rows.slice(0, SHOWN));
  const more =
    rows.length > SHOWN &&
    h("button", { type: "button", class: "more", onclick: grow }, `show ${rows.length - SHOWN} more lines`);
  /** @param {MouseEvent} click */
  function grow(click) {
    put(rows.slice(SHOWN));
    if (click.target instanceof Element) click.target.remove();
  }
  return h(
    "figure",
    { class: "diff" },
    h(
      "figcaption",
      null,
      h("span", { class: "path" }, ...visible(change.path ?? "")),
      h("span", { class: "tally" }, h("span", { class: "added" }, `+${tally.added}`), " ", h("span", { class: "removed" }, `−${tally.removed}`)),
    ),
    table,
    more,
  );
}

/** @param {Row} row */
function drawn(row) {
  const sign = row.sign === "@" ? " " : row.sign;
  return h(
    "div",
    { class: `diff-row ${CLASSES[row.sign]}`, role: "row" },
    h("span", { class: "number", role: "cell" }, row.sign === "@" ? "" : (row.new ?? row.old)),
    h("span", { class: "sign", role: "cell" }, sign),
    h("span", { class: "line", role: "cell" }, ...visible(row.text)),
  );
}
