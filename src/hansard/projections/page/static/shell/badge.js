// @ts-check
/** Who an agent is and how a session stands: a small badge with the agent's hue, and a shape with its word. */

import { h } from "../transcript/dom.js";
import { standing, standingWord } from "./labels.js";

const HUES = 8;
/** The families whose hue does not depend on chance. @type {[RegExp, number][]} */
const FAMILIES = [
  [/claude|anthropic|agent.sdk/i, 0],
  [/codex|openai/i, 1],
  [/opencode/i, 2],
  [/gemini|google/i, 3],
  [/qwen/i, 4],
  [/copilot|github/i, 5],
  [/cursor/i, 6],
  [/demo/i, 7],
];

/** @param {string} agent */
function hue(agent) {
  const family = FAMILIES.find(([pattern]) => pattern.test(agent));
  if (family) return family[1];
  return [...agent].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % HUES;
}

/** @param {string | null | undefined} agent */
export function badge(agent) {
  return h("span", { class: `badge hue-${agent ? hue(agent) : "none"}` }, agent || "unknown");
}

/** The shape alone; its word stands beside it or is read out. @param {string | null | undefined} status @param {boolean} [word] */
export function mark(status, word = false) {
  const label = standingWord(status);
  return h(
    "span",
    { class: `standing ${standing(status)}`, title: label },
    h("span", { class: "shape", "aria-hidden": "true" }),
    h("span", { class: word ? "word" : "read-out" }, label),
  );
}
