// @ts-check
/** Says when the page does not hear the server. A short break is not worth a word. */

import { h } from "../transcript/dom.js";

const PATIENCE = 900;

export class Banner {
  /** @param {() => void} retry */
  constructor(retry) {
    this.words = h("span");
    this.again = h("button", { type: "button", class: "plain", onclick: retry }, "Try now");
    this.element = h("div", { class: "banner", role: "status", "aria-live": "polite", hidden: true }, h("span", { class: "standing waiting" }, h("span", { class: "shape", "aria-hidden": "true" })), this.words, this.again);
    /** @type {any} */
    this.timer = null;
  }

  /** @param {import("./connection.js").State} state @param {number} unanswered */
  show(state, unanswered) {
    clearTimeout(this.timer);
    if (state.name === "open" && state.reason === undefined) {
      this.element.hidden = true;
      return;
    }
    if (state.name === "open") {
      this.words.textContent = `${state.reason} It goes on by itself when it is back.`;
      this.again.hidden = true;
      this.element.hidden = false;
      return;
    }
    const waits = unanswered ? ` ${unanswered === 1 ? "One thing you did is" : `${unanswered} things you did are`} sent when it is back.` : "";
    this.words.textContent = state.name === "shut" ? state.reason ?? "" : `${state.reason ?? ""} Reconnecting …${waits}`.trim();
    this.again.hidden = state.name === "shut";
    const show = () => (this.element.hidden = false);
    if (state.name === "shut" || !this.element.hidden) show();
    else this.timer = setTimeout(show, PATIENCE);
  }
}
