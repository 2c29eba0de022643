// @ts-check
/** Ctrl-K: type a few letters of a title, Enter goes there. */

import { h } from "../transcript/dom.js";
import { href } from "./address.js";
import { badge, mark } from "./badge.js";
import { dialog } from "./dialog.js";
import { standingOf, title } from "./session_list.js";
import { day } from "./labels.js";

const ROWS = 12;

/** @param {import("./session_list.js").Sessions} sessions */
export function palette(sessions) {
  let at = 0;
  /** @type {HTMLElement[]} */
  let rows = [];
  const list = h("div", { class: "palette-list", role: "listbox", id: "palette-list", "aria-label": "Sessions" });
  const input = h("input", {
    class: "field large",
    placeholder: "Go to a session",
    "aria-label": "Go to a session",
    role: "combobox",
    "aria-expanded": "true",
    "aria-controls": "palette-list",
    autocomplete: "off",
    oninput: () => draw(0),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "ArrowDown") draw(at + 1);
      else if (event.key === "ArrowUp") draw(at - 1);
      else if (event.key === "Enter") rows[at]?.click();
      else return;
      event.preventDefault();
    },
  });
  const draw = (/** @type {number} */ wanted) => {
    const found = [...sessions.list(input.value), ...sessions.list(input.value, true)].slice(0, ROWS);
    at = Math.max(0, Math.min(wanted, found.length - 1));
    rows = found.map((info, index) => row(info, index === at));
    list.replaceChildren(...(rows.length ? rows : [h("p", { class: "hint" }, "No session is called that.")]));
    input.setAttribute("aria-activedescendant", rows[at]?.id ?? "");
  };
  const row = (/** @type {import("./session_list.js").Info} */ info, /** @type {boolean} */ chosen) =>
    h(
      "a",
      { class: `palette-row${chosen ? " chosen" : ""}`, id: `palette-${info.id}`, role: "option", "aria-selected": String(chosen), href: href(info.id), onclick: () => element.close() },
      mark(standingOf(info)),
      h("span", { class: "clip", dir: "auto" }, title(info)),
      h("span", { class: "spring" }),
      badge(info.agent),
      h("span", { class: "quiet small" }, day(info.updated, Date.now())),
    );
  const unsubscribe = sessions.subscribe(() => rows.length === 0 && draw(0)); // rows that are there do not move
  const element = dialog({ title: "Sessions", class: "palette", closed: unsubscribe }, input, list);
  draw(0);
  input.focus();
}
