// @ts-check
/** Messages that wait for their turn: ours can be changed or taken back until they are sent; those in the agent's own queue cannot. */

import { h } from "../transcript/dom.js";

/** @typedef {{itemId: string | null, text: string, canEdit: boolean}} Waiting an item without an id is in the agent's queue */

/** What waits, by the state of the session. @param {import("../transcript/types").State | null} state @returns {Waiting[]} */
export function waitingMessages(state) {
  if (state === null) return [];
  const ours = Object.entries(state.queue).map(([itemId, text]) => ({ itemId, text: text ?? "the answer of another agent", canEdit: text !== null }));
  return [...state.agentQueue.map((text) => ({ itemId: null, text: text ?? "a message", canEdit: false })), ...ours];
}

export class Queue {
  /** @param {{edit(itemId: string, text: string): void, cancel(itemId: string): void}} hooks */
  constructor(hooks) {
    this.hooks = hooks;
    /** @type {Waiting[]} */
    this.waiting = [];
    this.readOnly = false;
    this.shown = "";
    /** @type {string | null} */
    this.editing = null;
    this.element = h("ol", { class: "queue", "aria-label": "Messages that wait for their turn", hidden: true });
  }

  /** @param {Waiting[]} waiting @param {boolean} readOnly */
  show(waiting, readOnly) {
    this.waiting = waiting;
    this.readOnly = readOnly;
    if (!waiting.some((one) => one.canEdit && one.itemId === this.editing)) this.editing = null;
    if (this.editing === null) this.draw(); // a field that somebody types in stays as it is
  }

  draw() {
    const shown = JSON.stringify([this.waiting, this.readOnly, this.editing]);
    if (shown === this.shown) return;
    this.shown = shown;
    this.element.hidden = this.waiting.length === 0;
    this.element.replaceChildren(...this.waiting.map((one) => (one.canEdit && one.itemId === this.editing ? this._field(one) : this._row(one))));
    this.element.querySelector("input")?.focus();
  }

  /** @param {string | null} itemId */
  edit(itemId) {
    this.editing = itemId;
    this.draw();
  }

  /** Edit the newest message that can be edited. */
  editLast() {
    this.edit(this.waiting.findLast((one) => one.canEdit)?.itemId ?? null);
  }

  /** @param {Waiting} one */
  _row(one) {
    const { itemId } = one;
    const edit = h("button", { type: "button", class: "plain", onclick: () => this.edit(itemId) }, "Edit");
    const cancel = itemId === null ? null : h("button", { type: "button", class: "plain", onclick: () => this.hooks.cancel(itemId) }, "Cancel");
    return h(
      "li",
      { class: "waiting-message", "data-item-id": itemId },
      h("span", { class: "quiet small" }, "waits"),
      h("span", { class: "clip", dir: "auto" }, one.text),
      this.readOnly || !one.canEdit ? null : edit,
      this.readOnly ? null : cancel,
    );
  }

  /** @param {Waiting} one */
  _field(one) {
    const field = h("input", { class: "field", "aria-label": "The message that waits", $value: one.text, dir: "auto" });
    const keep = (/** @type {Event} */ event) => {
      event.preventDefault();
      if (field.value.trim() && one.itemId !== null) this.hooks.edit(one.itemId, field.value);
      this.edit(null);
    };
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.edit(null);
    });
    const leave = h("button", { type: "button", class: "plain", onclick: () => this.edit(null) }, "Leave");
    return h("li", { class: "waiting-message", "data-item-id": one.itemId }, h("form", { class: "row", onsubmit: keep }, field, h("button", { class: "button" }, "Keep"), leave));
  }
}
