// @ts-check
/** Jump to a turn: what each began with. */

import { h } from "../transcript/dom.js";
import { dialog } from "./dialog.js";
import { mark } from "./badge.js";

/**
 * @param {{title: string | null, status: string}[]} turns
 * @param {(index: number) => void} go
 */
export function turnList(turns, go) {
  const rows = turns.map((turn, index) =>
    h(
      "li",
      null,
      h(
        "button",
        {
          type: "button",
          class: "palette-row",
          onclick: () => {
            element.close();
            go(index);
          },
        },
        h("span", { class: "number quiet" }, String(index + 1)),
        mark(turn.status),
        h("span", { class: "clip", dir: "auto" }, turn.title || `Turn ${index + 1}`),
      ),
    ),
  );
  const element = dialog({ title: "Turns", class: "palette" }, rows.length ? h("ol", { class: "palette-list" }, rows) : h("p", { class: "hint" }, "There is no turn yet."));
  const buttons = element.querySelectorAll("ol button");
  const last = buttons[buttons.length - 1];
  if (last instanceof HTMLElement) last.focus();
  element.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
    const all = [...buttons];
    const here = all.indexOf(/** @type {Element} */ (document.activeElement));
    const to = step === undefined ? undefined : all[here + step];
    if (to instanceof HTMLElement) {
      event.preventDefault();
      to.focus();
    }
  });
}
