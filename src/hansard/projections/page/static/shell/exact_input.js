// @ts-check
/** What exactly will be done, so that nothing can hide in it: invisible characters, long runs of blanks and the middle of long texts are told. */

import { h, visible } from "../transcript/dom.js";
import { size } from "../transcript/format.js";

const LONG = 12_000;
const SHOWN = 4_000;
/** Letters that are drawn as nothing: fillers, variation selectors, tags. In speech they are part of emoji; in a command they hide something. */
const EMPTY = /([\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}])/u;
const BLANKS = /[ \t\u00a0\u2000-\u200a\u3000]{24,}|(?:\r?\n[ \t]*){8,}/g;

/** @param {string} text @returns {Node[]} */
export function exact(text) {
  if (text.length <= LONG) return runs(text);
  const left = text.length - 2 * SHOWN;
  return [
    ...runs(text.slice(0, SHOWN)),
    h("span", { class: "left-out" }, ` … ${size(left)} more, ${size(text.length)} in all; the end: … `),
    ...runs(text.slice(-SHOWN)),
  ];
}

/** @param {string} text @returns {Node[]} */
function runs(text) {
  /** @type {Node[]} */
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(BLANKS)) {
    parts.push(...seen(text.slice(from, match.index)));
    const lines = match[0].split("\n").length - 1;
    parts.push(h("span", { class: "left-out" }, lines ? ` ${lines} empty lines ` : ` ${match[0].length} blanks `));
    from = match.index + match[0].length;
  }
  return [...parts, ...seen(text.slice(from))];
}

/** @param {string} text @returns {Node[]} */
function seen(text) {
  return text.split(EMPTY).flatMap((part, index) => (index % 2 ? [code(part)] : shown(part)));
}

/** @param {string} text @returns {Node[]} */
function shown(text) {
  return visible(text).map((part) => (typeof part === "string" ? document.createTextNode(part) : part));
}

/** @param {string} character */
function code(character) {
  const number = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  return h("span", { class: "unseen", title: `U+${number}` }, `U+${number}`);
}

/** A value of any kind: a text as it is, everything else as JSON. @param {unknown} value */
export function spelled(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
