// @ts-check
/** What agents wait for, one card at a time, above the composer. Each card is about one question and dies with it. */

import { h } from "../transcript/dom.js";
import { PermissionCard } from "./permission_card.js";
import { QuestionCard } from "./question_card.js";

export class Asking {
  /**
   * @param {(event: any) => import("./permission_card.js").About} about
   * @param {{decide(event: any, decision: import("./permission_card.js").Decision): Promise<unknown>, answer(event: any, values: any, action: string): Promise<unknown>}} hooks
   */
  constructor(about, hooks) {
    this.about = about;
    this.hooks = hooks;
    /** @type {PermissionCard | QuestionCard | null} */
    this.card = null;
    this.shown = "";
    /** @type {number | null} */
    this.seq = null;
    this.inner = h("div", { class: "asking-inner", "aria-live": "assertive" });
    this.element = h("div", { class: "asking", hidden: true }, this.inner);
  }

  /** @param {any[]} pending the questions that are open, the oldest first */
  show(pending) {
    const first = pending[0];
    const place = pending.length > 1 ? `1 of ${pending.length} questions` : "";
    const shown = first ? JSON.stringify([first.id, first.seq, place, this.about(first)]) : "";
    if (shown === this.shown) return;
    const same = first !== undefined && this.seq === first.seq;
    const focus = this.inner.contains(document.activeElement) ? document.activeElement : null;
    if (same && focus instanceof HTMLElement && /^(input|textarea)$/i.test(focus.tagName)) return; // somebody is answering it
    this.shown = shown;
    this.seq = first?.seq ?? null;
    this.card = first ? this._card(first, place) : null;
    this.element.hidden = this.card === null;
    this.inner.replaceChildren(...(this.card ? [this.card.element] : []));
    if (same && focus) this.focus();
  }

  /** @param {any} event @param {string} place */
  _card(event, place) {
    const about = { ...this.about(event), place };
    if (event.type === "permission_request") return new PermissionCard(event, about, (decision) => this.hooks.decide(event, decision));
    return new QuestionCard(event, about, (values, action) => this.hooks.answer(event, values, action));
  }

  /** @param {string} key */
  key(key) {
    return this.card?.key(key) ?? false;
  }

  focus() {
    this.card?.element.focus();
  }
}
