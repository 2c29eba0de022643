/** What a program printed: colours become classes, and every other control character can be seen but does nothing. */

import { h, visible } from "./dom.js";

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const SEQUENCE = /\u001b\[([0-9;:]*)m/g;

/** How text looks from here on. */
class Pen {
  constructor() {
    this.colour = "";
    this.marks = new Set();
  }

  /** @param {string} codes */
  take(codes) {
    const numbers = codes.split(/[;:]/).map((code) => Number(code || 0));
    for (let index = 0; index < numbers.length; index += 1) {
      const code = numbers[index];
      if (code === 0) {
        this.colour = "";
        this.marks.clear();
      } else if (code === 1) this.marks.add("bold");
      else if (code === 2) this.marks.add("dim");
      else if (code === 3) this.marks.add("italic");
      else if (code === 4) this.marks.add("underline");
      else if (code === 22) ["bold", "dim"].forEach((mark) => this.marks.delete(mark));
      else if (code === 23) this.marks.delete("italic");
      else if (code === 24) this.marks.delete("underline");
      else if (code === 38 || code === 48) index += numbers[index + 1] === 2 ? 4 : 2;
      else if (code === 39) this.colour = "";
      else if (code >= 30 && code <= 37) this.colour = COLOURS[code - 30];
      else if (code >= 90 && code <= 97) this.colour = COLOURS[code - 90];
    }
  }

  get classes() {
    return [this.colour && `ansi-${this.colour}`, ...[...this.marks].map((mark) => `ansi-${mark}`)].filter(Boolean).join(" ");
  }
}

/**
 * The output as nodes.
 * @param {string} text
 * @returns {(Node | string)[]}
 */
export function printed(text) {
  const lines = text.replaceAll("\r\n", "\n");
  if (!lines.includes("\u001b[")) return visible(lines);
  const pen = new Pen();
  /** @type {(Node | string)[]} */
  const parts = [];
  let from = 0;
  /** @param {string} piece */
  const put = (piece) => {
    if (piece === "") return;
    const nodes = visible(piece);
    if (pen.classes) parts.push(h("span", { class: pen.classes }, nodes));
    else parts.push(...nodes);
  };
  for (const match of lines.matchAll(SEQUENCE)) {
    put(lines.slice(from, match.index));
    pen.take(match[1]);
    from = match.index + match[0].length;
  }
  put(lines.slice(from));
  return parts;
}

/**
 * The end of an output: so many lines, and how many are before them.
 * @param {string} text
 * @param {number} rows
 */
export function tail(text, rows) {
  let from = text.endsWith("\n") ? text.length - 1 : text.length;
  for (let row = 0; row < rows; row += 1) {
    const newline = text.lastIndexOf("\n", from - 1);
    if (newline === -1 || from === 0) return { text, before: 0 };
    from = newline;
  }
  let before = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < from; at = text.indexOf("\n", at + 1)) before += 1;
  return { text: text.slice(from + 1), before };
}
