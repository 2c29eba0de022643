/** Finding words in a whole session: in what the log says, not in what happens to be in the page. */

import { inputOf } from "./tools.js";
import { subject } from "./tool_inputs.js";
import { asList, asObject, asText } from "./format.js";

/** @typedef {import("./types").Unit} Unit @typedef {import("./types").Item} Item @typedef {{unit: Unit, item: Item | null}} Match */

/** @param {Item} item */
function itemText(item) {
  switch (item.kind) {
    case "text":
    case "thinking":
      return item.text;
    case "tool": {
      const given = item.result?.payload;
      const content = asList(given?.content).map((block) => asText(asObject(block).text ?? block));
      const args = item.args === undefined ? item.input : asText(item.args);
      return [item.name, subject(inputOf(item), item.title), args, ...content, content.length > 0 ? "" : asText(given?.result), ...item.output.map((part) => part.text)].join("\n");
    }
    case "message":
      return [asText(item.event.payload.message), asText(item.callback?.payload.result)].join("\n");
    case "block":
      return asText(item.block);
    default:
      return asText(item.done?.payload.transcript);
  }
}

/**
 * Where the words are, in order.
 * @param {Unit[]} units
 * @param {string} words
 * @returns {Match[]}
 */
export function matches(units, words) {
  const wanted = words.toLowerCase();
  /** @type {Match[]} */
  const found = [];
  for (const unit of units) {
    if (unit.kind === "response") {
      for (const item of unit.items) {
        const inside = item.kind === "tool" && item.lane !== null ? matches(item.lane.units, words).length > 0 : false;
        if (inside || itemText(item).toLowerCase().includes(wanted)) found.push({ unit, item });
      }
    } else {
      const text = unit.notice === null ? asText(unit.event.payload.text ?? unit.event.payload.transcription ?? unit.event.payload) : unit.notice.words;
      if (text.toLowerCase().includes(wanted)) found.push({ unit, item: null });
    }
  }
  return found;
}

/**
 * Mark the words in elements, without touching them.
 * @param {HTMLElement[]} elements
 * @param {string} words
 */
export function highlight(elements, words) {
  if (!("highlights" in CSS)) return;
  const wanted = words.toLowerCase();
  /** @type {Range[]} */
  const ranges = [];
  for (const element of wanted === "" ? [] : elements) {
    const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
      const text = (node.nodeValue ?? "").toLowerCase();
      for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, Math.min(at + wanted.length, node.nodeValue?.length ?? 0));
        ranges.push(range);
      }
    }
  }
  if (ranges.length === 0) CSS.highlights.delete("found");
  else CSS.highlights.set("found", new Highlight(...ranges));
}
