// @ts-check
/** A button with a menu: arrows move, Enter chooses, Escape goes back to the button. */

import { h } from "../transcript/dom.js";

/**
 * @typedef {{
 *   label: string, hint?: string, checked?: boolean, disabled?: boolean, danger?: boolean, rule?: boolean,
 *   run: () => void
 * }} Item
 */

export class Menu {
  /**
   * @param {{label: string, class?: string, up?: boolean, right?: boolean}} look
   * @param {() => Item[]} items asked each time it opens
   * @param {...any} face what the button shows
   */
  constructor(look, items, ...face) {
    this.items = items;
    this.button = h(
      "button",
      { type: "button", class: look.class ?? "plain", "aria-haspopup": "menu", "aria-expanded": "false", "aria-label": look.label, title: look.label },
      ...face,
    );
    this.list = h("div", { class: `menu${look.up ? " up" : ""}${look.right ? " right" : ""}`, role: "menu", "aria-label": look.label, hidden: true });
    this.element = h("div", { class: "with-menu" }, this.button, this.list);
    this.button.addEventListener("click", () => this.toggle());
    this.element.addEventListener("keydown", (event) => this._key(event));
    this.element.addEventListener("focusout", (event) => {
      const to = event.relatedTarget;
      if (!(to instanceof Node && this.element.contains(to))) this.close(false);
    });
  }

  get isOpen() {
    return !this.list.hidden;
  }

  toggle() {
    if (this.isOpen) this.close();
    else this.open();
  }

  open() {
    this.list.replaceChildren(...this.items().map((item) => this._row(item)));
    this.list.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    const rows = this._rows();
    (rows.find((row) => row.getAttribute("aria-checked") === "true") ?? rows[0])?.focus();
  }

  /** @param {boolean} [back] whether the button gets the focus again */
  close(back = true) {
    if (!this.isOpen) return;
    this.list.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
    if (back) this.button.focus();
  }

  /** @param {Item} item */
  _row(item) {
    const radio = item.checked !== undefined;
    return h(
      "button",
      {
        type: "button",
        class: `menu-item${item.danger ? " danger" : ""}${item.rule ? " rule" : ""}`,
        role: radio ? "menuitemradio" : "menuitem",
        "aria-checked": radio ? String(item.checked) : null,
        disabled: item.disabled,
        tabindex: "-1",
        onclick: () => {
          this.close();
          item.run();
        },
      },
      h("span", { class: "menu-label" }, item.label),
      item.hint ? h("span", { class: "menu-hint" }, item.hint) : null,
    );
  }

  /** @returns {HTMLElement[]} */
  _rows() {
    return [...this.list.querySelectorAll("button:not(:disabled)")].filter((row) => row instanceof HTMLElement);
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (!this.isOpen) {
      if (event.key === "ArrowDown") {
        event.preventDefault();
        this.open();
      }
      return;
    }
    const rows = this._rows();
    const here = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    /** @type {Record<string, number>} */
    const to = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: rows.length - 1 };
    if (event.key in to) rows.at((to[event.key] ?? 0) % rows.length)?.focus();
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
