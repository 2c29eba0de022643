// @ts-check
/** Short words at the edge of the page: something was done, or was not. They are read out, and go by themselves unless they are bad news. */

import { h } from "../transcript/dom.js";

const element = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
const STAYS = 5_000;

export const notices = element;

/** @param {string} text @param {"good" | "bad"} [kind] */
export function tell(text, kind = "good") {
  const close = h("button", { type: "button", class: "icon", "aria-label": "Dismiss", onclick: () => notice.remove() }, "×");
  const notice = h("div", { class: `toast ${kind}` }, h("span", { dir: "auto" }, text), close);
  element.append(notice);
  setTimeout(() => notice.remove(), kind === "bad" ? STAYS * 4 : STAYS);
}

/** Say what went wrong in doing something. @param {string} what */
export function failed(what) {
  return (/** @type {unknown} */ problem) => tell(`${what}: ${problem instanceof Error ? problem.message : problem}`, "bad");
}
