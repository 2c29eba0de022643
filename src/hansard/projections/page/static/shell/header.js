// @ts-check
/** The line above a session: its title, who speaks, with which model and mode, what it does now, how full its memory is and what it cost. */

import { h } from "../transcript/dom.js";
import { badge, mark } from "./badge.js";
import { asked } from "./dialog.js";
import { Menu } from "./menu.js";
import { money, short } from "./labels.js";
import { plural } from "../transcript/format.js";
import { TITLE_CHARACTERS } from "../transcript/rules.js";

/**
 * @typedef {{
 *   title: string, agent: string | null, model: string | null, mode: string | null, models: any[] | null, modes: any[] | null, standing: string | null,
 *   place: string, parent: {words: string, href: string | null} | null, children: {title: string, href: string}[],
 *   doing: string | null, context: {tokens: number | null, window: number | null} | null, costUsd: number | null, readOnly: boolean, canModel: boolean, canMode: boolean
 * }} Facts
 * @typedef {{
 *   rename(title: string): void, model(name: string): void, mode(name: string): void, menu(): import("./menu.js").Item[],
 *   list(): void, turns(): void, find(): void, side(): void
 * }} Hooks
 */

export class Header {
  /** @param {Hooks} hooks */
  constructor(hooks) {
    this.hooks = hooks;
    /** @type {Facts | null} */
    this.now = null;
    this.shown = "";
    this.title = h("h1", { class: "title", dir: "auto" });
    this.title.addEventListener("click", () => this._rename());
    this.title.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.target !== this.title) return;
      event.preventDefault();
      this._rename();
    });
    this.who = h("span", { class: "who" });
    this.doing = h("span", { class: "doing", role: "status", "aria-live": "polite" });
    this.modelWord = h("span", { class: "clip" });
    this.modeWord = h("span", { class: "clip" });
    this.models = new Menu({ label: "Model", class: "picker" }, () => this._choices("model"), this.modelWord);
    this.modes = new Menu({ label: "Mode", class: "picker" }, () => this._choices("mode"), this.modeWord);
    this.origin = h("span", { class: "origin" });
    this.forkWord = h("span", { class: "clip" });
    this.forks = new Menu({ label: "Forks", class: "picker" }, () => this._forks(), this.forkWord);
    this.ring = h("span", { class: "ring", "aria-hidden": "true" });
    this.contextWord = h("span", { class: "number" });
    this.context = h("span", { class: "context", role: "img" }, this.ring, this.contextWord);
    this.cost = h("span", { class: "number cost", title: "What the session cost so far" });
    this.people = h("span", { class: "number people", role: "img", $hidden: true });
    const menu = new Menu({ label: "More", class: "icon", right: true }, () => hooks.menu(), "⋯");
    const side = h("button", { type: "button", class: "icon", "aria-label": "Inspector", title: "Inspector (i)", onclick: () => hooks.side() }, "◨");
    this.element = h(
      "header",
      { class: "header" },
      h("button", { type: "button", class: "icon only-narrow", "aria-label": "Sessions", onclick: () => hooks.list() }, "☰"),
      h("div", { class: "header-words" }, this.title, h("div", { class: "header-facts" }, this.who, this.origin, this.forks.element, this.models.element, this.modes.element, this.doing)),
      h(
        "div",
        { class: "header-tools" },
        this.people,
        this.context,
        this.cost,
        h("button", { type: "button", class: "icon wide-only", "aria-label": "Jump to a turn", title: "Jump to a turn (n)", onclick: () => hooks.turns() }, "≡"),
        h("button", { type: "button", class: "icon", "aria-label": "Find", title: "Find in this session (/)", onclick: () => hooks.find() }, "⌕"),
        side,
        menu.element,
      ),
    );
  }

  /** @param {Facts} facts */
  show(facts) {
    this.now = facts;
    const shown = JSON.stringify(facts);
    if (shown === this.shown) return;
    this.shown = shown;
    if (!this.title.querySelector("input")) this.title.textContent = facts.title;
    this.title.title = facts.readOnly ? facts.title : "Rename";
    this.title.tabIndex = facts.readOnly ? -1 : 0;
    this.who.replaceChildren(badge(facts.agent));
    this.who.title = facts.place;
    this.origin.replaceChildren(facts.parent ? h(facts.parent.href ? "a" : "span", { class: "clip", dir: "auto", href: facts.parent.href }, `⑂ ${facts.parent.words}`) : "");
    this.forks.element.hidden = facts.children.length === 0;
    this.forkWord.textContent = plural(facts.children.length, "fork");
    this._picker(this.models, this.modelWord, facts.model, facts.readOnly || !facts.canModel);
    this._picker(this.modes, this.modeWord, nameOf(facts.modes, facts.mode) ?? facts.mode, facts.readOnly || !facts.canMode);
    this.doing.replaceChildren(mark(facts.standing, facts.doing === null), facts.doing ? h("span", { class: "doing-word", dir: "auto" }, facts.doing) : "");
    this.cost.textContent = money(facts.costUsd);
    this._context(facts.context);
  }

  /** Who looks at this session; nothing is said of being alone. @param {{name: string, role: string}[]} people */
  present(people) {
    const words = `${people.length} are looking: ${people.map((one) => (one.name === one.role ? one.name : `${one.name} (${one.role})`)).join(", ")}`;
    this.people.hidden = people.length < 2;
    this.people.textContent = `◉ ${people.length}`;
    this.people.title = words;
    this.people.setAttribute("aria-label", words);
  }

  /** @param {Menu} menu @param {HTMLElement} word @param {string | null} value @param {boolean} fixed */
  _picker(menu, word, value, fixed) {
    menu.element.hidden = !value && fixed;
    word.textContent = value || menu.button.title.toLowerCase();
    menu.button.disabled = fixed;
  }

  /** @param {Facts["context"]} context */
  _context(context) {
    const used = context?.tokens ?? null;
    this.context.hidden = used === null;
    if (used === null) return;
    const window = context?.window ?? null;
    const part = window ? Math.min(1, used / window) : 0;
    this.ring.style.setProperty("--part", `${Math.round(part * 100)}%`);
    this.ring.hidden = !window;
    this.context.classList.toggle("full", part > 0.85);
    const words = window ? `${Math.round(part * 100)} % of the context is used: ${short(used)} of ${short(window)} tokens` : `${short(used)} tokens of context`;
    this.context.setAttribute("aria-label", words);
    this.context.title = words;
    this.contextWord.textContent = window ? `${Math.round(part * 100)} %` : short(used);
  }

  /** @returns {import("./menu.js").Item[]} */
  _forks() {
    return (this.now?.children ?? []).map((child) => ({ label: child.title, run: () => void (location.hash = child.href) }));
  }

  /** @param {"model" | "mode"} what @returns {import("./menu.js").Item[]} */
  _choices(what) {
    const now = this.now;
    const told = (what === "model" ? now?.models : now?.modes) ?? [];
    const current = what === "model" ? now?.model : now?.mode;
    const set = what === "model" ? this.hooks.model : this.hooks.mode;
    const items = told.map((one) => ({ label: labelOf(one), hint: one?.description ?? "", checked: idOf(one) === current, run: () => set(idOf(one)) }));
    const other = async () => {
      const name = await asked({ title: `Set the ${what}`, label: `The ${what}, as the agent calls it`, value: current ?? "", choices: told.map(idOf), yes: "Set" });
      if (name) set(name);
    };
    return [...items, { label: "Other …", rule: items.length > 0, run: other }];
  }

  _rename() {
    if (this.now === null || this.now.readOnly || this.title.querySelector("input")) return;
    const input = h("input", { class: "title-field", "aria-label": "Title", $value: this.now.title, maxlength: String(TITLE_CHARACTERS), dir: "auto" });
    let over = false;
    const leave = (/** @type {boolean} */ keep) => {
      if (over) return;
      over = true;
      const wanted = input.value.trim();
      this.title.textContent = this.now?.title ?? "";
      if (keep && wanted && wanted !== this.now?.title) this.hooks.rename(wanted);
      this.title.focus();
    };
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter") leave(true);
      else if (event.key === "Escape") leave(false);
    });
    input.addEventListener("blur", () => leave(true));
    this.title.replaceChildren(input);
    input.select();
  }
}

/** @param {any} one */
function idOf(one) {
  return String(typeof one === "string" ? one : one?.modelId ?? one?.id ?? one?.value ?? one?.name ?? "");
}

/** @param {any} one */
function labelOf(one) {
  return String(typeof one === "string" ? one : one?.name ?? one?.displayName ?? idOf(one));
}

/** @param {any[] | null} told @param {string | null} id */
function nameOf(told, id) {
  const found = told?.find((one) => idOf(one) === id);
  return found === undefined ? null : labelOf(found);
}
