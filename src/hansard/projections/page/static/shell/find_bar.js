// @ts-check
/** Find in the session: what matches is counted, Enter goes to the next, Shift-Enter to the one before. */

import { h } from "../transcript/dom.js";

export class FindBar {
  /** @param {() => import("./session_view.js").View | null} view */
  constructor(view) {
    this.view = view;
    this.input = h("input", { type: "search", class: "field", placeholder: "Find in this session", "aria-label": "Find in this session", oninput: () => this._find(), onkeydown: (/** @type {KeyboardEvent} */ event) => this._key(event) });
    this.told = h("span", { class: "number quiet small", role: "status" });
    this.element = h(
      "div",
      { class: "find-bar", role: "search", hidden: true },
      this.input,
      this.told,
      h("button", { type: "button", class: "icon", "aria-label": "Previous match", title: "Previous (Shift-Enter)", onclick: () => this.step(-1) }, "↑"),
      h("button", { type: "button", class: "icon", "aria-label": "Next match", title: "Next (Enter)", onclick: () => this.step(1) }, "↓"),
      h("button", { type: "button", class: "icon", "aria-label": "Close", title: "Close (Esc)", onclick: () => this.close() }, "×"),
    );
  }

  open() {
    this.element.hidden = false;
    this.input.focus();
    this.input.select();
    if (this.input.value) this._find();
  }

  close() {
    if (this.element.hidden) return;
    const within = this.element.contains(document.activeElement);
    this.element.hidden = true;
    const transcript = this.view()?.transcript;
    transcript?.find("");
    if (within) transcript?.scroller.focus({ preventScroll: true });
  }

  /** @param {1 | -1} by */
  step(by) {
    const transcript = this.view()?.transcript;
    if (transcript) this._tell(transcript.findNext(by));
  }

  _find() {
    const transcript = this.view()?.transcript;
    if (transcript) this._tell(transcript.find(this.input.value));
  }

  /** @param {{count: number, index: number}} found */
  _tell(found) {
    const place = found.count ? `${found.index + 1} of ${found.count}` : "No matches";
    this.told.textContent = this.input.value ? `${place}${this.view()?.isWhole ? "" : " in what is loaded"}` : "";
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
