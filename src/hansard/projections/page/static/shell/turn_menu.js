// @ts-check
/** Jump to a turn: what each began with. */

import { h } from "../transcript/dom.js";
import { dialog } from "./dialog.js";
import { line } from "../transcript/format.js";
import { mark } from "./badge.js";

/**
 * @param {import("../transcript/types").TurnState[]} turns
 * @param {(turn: import("../transcript/types").TurnState) => void} go
 */
export function turnList(turns, go) {
  const rows = turns.map((turn) =>
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
            go(turn);
          },
        },
        h("span", { class: "number quiet" }, String(turn.number)),
        mark(turn.status),
        h("span", { class: "clip", dir: "auto" }, line(turn.title ?? "", 80) || `Turn ${turn.number}`),
      ),
    ),
  );
  const key = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
    const all = [...buttons];
    const here = all.indexOf(/** @type {Element} */ (document.activeElement));
    const to = step === undefined ? undefined : all[here + step];
    if (to instanceof HTMLElement) {
      event.preventDefault();
      to.focus();
    }
  };
  const element = dialog({ title: "Turns", class: "palette", key }, rows.length ? h("ol", { class: "palette-list" }, rows) : h("p", { class: "hint" }, "There is no turn yet."));
  const buttons = element.querySelectorAll("ol button");
  const last = buttons[buttons.length - 1];
  if (last instanceof HTMLElement) last.focus();
}
