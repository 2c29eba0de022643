// @ts-check
/** Messages on their way: they are on view from the moment they are sent, until the log has them. */

import { h } from "../transcript/dom.js";

/** The events that have the text of a message, or end the wait for it. */
const ARRIVED = new Set(["user_message", "queue_update"]);
const FAILED = new Set(["error", "turn_end"]);

export class Unsent {
  /** @param {HTMLElement} room where they are shown, below everything else */
  constructor(room) {
    /** @type {{text: string, element: HTMLElement}[]} */
    this.waiting = [];
    this.element = h("div", { class: "unsent", hidden: true });
    room.append(this.element);
  }

  /** Show a message. @param {string} text @param {string} status @returns {() => void} takes it away again */
  add(text, status) {
    const said = h("div", { class: "said", dir: "auto" }, h("p", { class: "typed" }, text));
    const margin = h("div", { class: "margin" }, h("span", { class: "speaker" }, "You"));
    const element = h("article", { class: "user-message by-human", "aria-label": "You" }, margin, said, h("p", { class: "hint", role: "status" }, status));
    const one = { text, element };
    this.waiting.push(one);
    this._draw();
    return () => this._remove(one);
  }

  /** @param {import("./connection.js").Event} event */
  note(event) {
    if (this.waiting.length === 0 || event.parentToolCallId !== undefined) return;
    if (FAILED.has(event.type)) this.waiting.slice().forEach((one) => this._remove(one));
    if (!ARRIVED.has(event.type)) return;
    const isTyped = event.type === "user_message" && (event.payload?.author ?? "human") === "human";
    const found = this.waiting.find((one) => one.text === event.payload?.text) ?? (isTyped ? this.waiting[0] : undefined);
    if (found) this._remove(found);
  }

  /** @param {{text: string, element: HTMLElement}} one */
  _remove(one) {
    this.waiting = this.waiting.filter((other) => other !== one);
    this._draw();
  }

  _draw() {
    this.element.hidden = this.waiting.length === 0;
    this.element.replaceChildren(...this.waiting.map((one) => one.element));
  }
}
