// @ts-check
/** The commands of an agent, while somebody types a slash: arrows choose, Tab or Enter takes, Escape closes. */

import { h } from "../transcript/dom.js";

const ROWS = 8;

/** @typedef {{name: string, about: string, hint: string}} Command */

/** What an agent told of its commands, in one shape. @param {any[] | null | undefined} told @returns {Command[]} */
export function commandsOf(told) {
  return (told ?? []).flatMap((one) => {
    const name = String((typeof one === "string" ? one : one?.name) ?? "").replace(/^\/+/, "");
    if (!name) return [];
    const hint = one?.argumentHint ?? one?.input?.hint ?? "";
    return [{ name, about: String(one?.description ?? ""), hint: String(hint) }];
  });
}

/** Those that begin with the letters first, then those that have them. @param {Command[]} commands @param {string} letters */
function matching(commands, letters) {
  const wanted = letters.toLowerCase();
  const begins = commands.filter((command) => command.name.toLowerCase().startsWith(wanted));
  const has = commands.filter((command) => !begins.includes(command) && command.name.toLowerCase().includes(wanted));
  return [...begins, ...has];
}

export class SlashMenu {
  /** @param {HTMLTextAreaElement} input @param {() => Command[]} commands */
  constructor(input, commands) {
    this.input = input;
    this.commands = commands;
    this.at = 0;
    /** @type {Command[]} */
    this.found = [];
    this.element = h("div", { class: "slash", role: "listbox", id: "slash-menu", "aria-label": "Commands of the agent", hidden: true });
    input.setAttribute("aria-controls", "slash-menu");
    input.setAttribute("aria-autocomplete", "list");
    input.addEventListener("input", () => this.draw(0));
    input.addEventListener("blur", () => this.close());
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /** @param {number} at */
  draw(at) {
    const typed = /^\/(\S*)$/.exec(this.input.value);
    this.found = typed ? matching(this.commands(), typed[1] ?? "") : [];
    this.at = Math.max(0, Math.min(at, this.found.length - 1));
    this.element.hidden = this.found.length === 0;
    const from = Math.max(0, Math.min(this.at - ROWS + 1, this.found.length - ROWS));
    this.element.replaceChildren(...this.found.slice(from, from + ROWS).map((command, index) => this._row(command, from + index === this.at)));
    if (this.found.length > ROWS) this.element.append(h("p", { class: "hint" }, `${this.at + 1} of ${this.found.length}`));
  }

  close() {
    this.element.hidden = true;
  }

  /** @param {Command} command @param {boolean} chosen */
  _row(command, chosen) {
    return h(
      "div",
      {
        class: `slash-row${chosen ? " chosen" : ""}`,
        role: "option",
        "aria-selected": String(chosen),
        onmousedown: (/** @type {MouseEvent} */ event) => {
          event.preventDefault();
          this._take(command);
        },
      },
      h("span", { class: "slash-name" }, `/${command.name}`),
      command.hint ? h("span", { class: "quiet" }, command.hint) : null,
      h("span", { class: "clip quiet", dir: "auto" }, command.about),
    );
  }

  /** @param {Command} command */
  _take(command) {
    this.input.value = `/${command.name} `;
    this.close();
    this.input.focus();
    this.input.dispatchEvent(new Event("input"));
  }

  /** True if the key was for the menu. @param {KeyboardEvent} event */
  key(event) {
    if (!this.isOpen) return false;
    const chosen = this.found[this.at];
    if (event.key === "ArrowDown") this.draw(this.at + 1);
    else if (event.key === "ArrowUp") this.draw(this.at - 1);
    else if (event.key === "Escape") this.close();
    else if (event.key === "Tab" && chosen) this._take(chosen);
    else if (event.key === "Enter" && chosen && this.input.value !== `/${chosen.name}`) this._take(chosen);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }
}
