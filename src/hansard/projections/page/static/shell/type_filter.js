// @ts-check
/** Show only some types of events in the transcript. */

import { h } from "../transcript/dom.js";
import { dialog } from "./dialog.js";

/**
 * @param {Map<string, number>} counts how many there are of each type
 * @param {Set<string> | null} chosen null: everything is shown
 * @param {(types: Set<string> | null) => void} set
 */
export function filterDialog(counts, chosen, set) {
  const boxes = [...counts].sort((a, b) => b[1] - a[1]).map(([type, count]) => {
    const box = h("input", { type: "checkbox", value: type, $checked: chosen === null || chosen.has(type), onchange: () => change() });
    return { type, box, row: h("label", { class: "option" }, box, h("span", { class: "mono" }, type), h("span", { class: "spring" }), h("span", { class: "number quiet" }, count.toLocaleString())) };
  });
  const change = () => {
    const wanted = boxes.filter(({ box }) => box.checked).map(({ type }) => type);
    set(wanted.length === boxes.length ? null : new Set(wanted));
  };
  const all = (/** @type {boolean} */ on) => {
    for (const { box } of boxes) box.checked = on;
    change();
  };
  dialog(
    { title: "Show types of events", class: "narrow" },
    h("div", { class: "row" }, h("button", { type: "button", class: "button", onclick: () => all(true) }, "Everything"), h("button", { type: "button", class: "button", onclick: () => all(false) }, "Nothing")),
    h("div", { class: "options" }, boxes.map(({ row }) => row)),
  );
}
