// @ts-check
/** The list at the left: sessions by day, each with its agent, how it stands and what it cost; a filter, and a search through everything said. */

import { h, place } from "../transcript/dom.js";
import { plural } from "../transcript/format.js";
import { href } from "./address.js";
import * as api from "./api.js";
import { badge, mark } from "./badge.js";
import { Menu } from "./menu.js";
import { SessionFilter, parse } from "./session_filter.js";
import { failed } from "./toasts.js";
import { origin, standingOf, title } from "./session_list.js";
import { setTheme, theme } from "./theme.js";
import { clock, day, money } from "./labels.js";

const ROWS = 200;

export class Sidebar {
  /**
   * @param {import("./session_list.js").Sessions} sessions
   * @param {{create(): void, help(): void, close(): void}} hooks
   */
  constructor(sessions, hooks) {
    this.sessions = sessions;
    this.hooks = hooks;
    this.archived = false;
    this.shown = ROWS;
    /** @type {AbortController | null} */
    this.searching = null;
    /** @type {string | null} */
    this.current = null;
    /** The row of each session, kept as long as it says the same. @type {Map<string, {said: string, row: HTMLElement}>} */
    this.rows = new Map();
    /** @type {Map<string, {section: HTMLElement, list: HTMLElement}>} */
    this.days = new Map();
    this.input = h("input", {
      type: "search",
      class: "field",
      placeholder: "Filter, or search with ⏎",
      title: "Filter by title, or by since: until: project: agent: model: status: touched: person: cost:",
      "aria-label": "Filter sessions; Enter searches all that was said",
      oninput: () => this._typed(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this._key(event),
    });
    this.list = h("div", { class: "session-list" });
    this.results = h("div", { class: "search-results", hidden: true, "aria-live": "polite" });
    this.archive = h("button", { type: "button", class: "plain quiet", "aria-pressed": "false", onclick: () => this._archive() }, "Archived");
    this.create = h("button", { type: "button", class: "button primary wide", onclick: () => hooks.create() }, "New session");
    const look = new Menu({ label: "Light or dark", class: "plain quiet", up: true, right: true }, themes, "Theme");
    this.element = h(
      "nav",
      { class: "sidebar", "aria-label": "Sessions" },
      h(
        "div",
        { class: "sidebar-head" },
        h("a", { class: "brand", href: "#" }, h("span", { class: "brand-mark", "aria-hidden": "true" }, "§"), "hansard"),
        h("button", { type: "button", class: "icon only-narrow", "aria-label": "Close the list", onclick: () => hooks.close() }, "×"),
      ),
      this.input,
      h("div", { class: "sidebar-body" }, this.results, this.list),
      h(
        "div",
        { class: "sidebar-foot" },
        this.create,
        h("div", { class: "row" }, this.archive, h("span", { class: "spring" }), look.element, h("button", { type: "button", class: "plain quiet", onclick: () => hooks.help() }, "Keys")),
      ),
    );
    this.filter = new SessionFilter(() => this.draw());
    sessions.subscribe(() => {
      this.filter.refresh();
      this.draw();
    });
  }

  /** @param {string | null} id */
  select(id) {
    this.current = id;
    this.draw();
  }

  draw() {
    const found = this._found();
    place(this.list, found.length ? this._days(found) : [this._nothing()]);
  }

  _found() {
    return this.sessions.list(parse(this.input.value).words, this.archived).filter((info) => this.filter.has(info));
  }

  /** @param {import("./session_list.js").Info[]} found */
  _days(found) {
    const now = Date.now();
    /** @type {Map<string, Node[]>} */
    const days = new Map();
    for (const info of found.slice(0, this.shown)) {
      const name = day(info.updated, now);
      const rows = days.get(name) ?? [];
      if (rows.length === 0) days.set(name, rows);
      rows.push(this._row(info));
    }
    const drawn = [...days].map(([name, rows]) => {
      const { section, list } = this._day(name);
      place(list, rows);
      return section;
    });
    const left = found.length - this.shown;
    const more = h("button", { type: "button", class: "plain wide", onclick: () => this._more() }, `Show ${plural(Math.min(left, ROWS), "more session")}`);
    return left > 0 ? [...drawn, more] : drawn;
  }

  /** @param {string} name */
  _day(name) {
    const kept = this.days.get(name);
    if (kept) return kept;
    const list = h("ul");
    const made = { section: h("section", { class: "day" }, h("h2", null, name), list), list };
    this.days.set(name, made);
    return made;
  }

  _more() {
    this.shown += ROWS;
    this.draw();
  }

  /** @param {import("./session_list.js").Info} info */
  _row(info) {
    const current = info.id === this.current;
    const parent = info.parentSessionId ? this.sessions.get(info.parentSessionId) : undefined;
    const from = origin(info, parent ? title(parent) : null);
    const said = JSON.stringify([info.title, info.agent, standingOf(info), info.project, info.costUsd, info.updated, info.captured, info.problem, from, current]);
    const kept = this.rows.get(info.id);
    if (kept?.said === said) return kept.row;
    const row = h(
      "li",
      null,
      h(
        "a",
        { class: `session${current ? " current" : ""}`, href: href(info.id), "data-session-id": info.id, "aria-current": current ? "page" : null, onclick: () => this.hooks.close() },
        h("span", { class: "session-title", dir: "auto" }, title(info)),
        h(
          "span",
          { class: "session-facts" },
          badge(info.agent),
          from ? h("span", { class: "session-origin", role: "img", title: from, "aria-label": from }, "⑂") : null,
          info.project ? h("span", { class: "session-project", dir: "auto", title: info.repository ?? info.cwd ?? info.project }, info.project) : null,
          info.problem ? h("span", { class: "bad", title: info.problem }, "unreadable") : info.captured ? notRead() : mark(standingOf(info), true),
          h("span", { class: "spring" }),
          info.costUsd ? h("span", { class: "number" }, money(info.costUsd)) : null,
          h("span", { class: "number" }, clock(info.updated)),
        ),
      ),
    );
    this.rows.set(info.id, { said, row });
    return row;
  }

  _nothing() {
    if (!this.sessions.known) return h("p", { class: "hint" }, "Reading the list …");
    if (this.filter.problem) return h("p", { class: "hint" }, this.filter.problem);
    if (this.filter.parameters) return h("p", { class: "hint" }, "No session is like that.");
    if (this.input.value) return h("p", { class: "hint" }, "No title has these words. Enter looks through all that was said.");
    return h("p", { class: "hint" }, this.archived ? "Nothing is archived." : "No session yet.");
  }

  _archive() {
    this.archived = !this.archived;
    this.archive.setAttribute("aria-pressed", String(this.archived));
    this.draw();
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const { words, parameters } = parse(this.input.value);
    if (event.key === "Enter" && words) this._search(words, parameters).catch(failed("Search"));
    else if (event.key === "Escape") this._clear();
    else return;
    event.preventDefault();
  }

  _clear() {
    this.input.value = "";
    this._typed();
  }

  _typed() {
    this.searching?.abort();
    this.filter.set(parse(this.input.value).parameters);
    this._results(null);
    this.draw();
  }

  /** @param {string} words @param {string} parameters those of the filters */
  async _search(words, parameters) {
    this.searching?.abort();
    const search = (this.searching = new AbortController());
    /** The matches of each session. @type {Map<string, HTMLElement>} */
    const lists = new Map();
    const groups = h("div");
    const head = h("p", { class: "hint" }, `Searching for “${words}” …`);
    this._results([head, groups]);
    let count = 0;
    try {
      let complete = null;
      for await (const part of api.lines(`api/search?q=${encodeURIComponent(words)}&${parameters}`, search.signal)) {
        for (const match of part.matches) {
          const list = lists.get(match.sessionId) ?? h("ul");
          if (!lists.has(match.sessionId)) groups.append(this._group(match, list));
          lists.set(match.sessionId, list);
          list.append(this._match(match));
        }
        count += part.matches.length;
        complete = part.complete ?? null;
        head.textContent = summary(words, count, complete, part.size ? part.read / part.size : 1);
      }
      if (complete === null) throw new Error("the connection was lost before everything was searched");
    } catch (problem) {
      if (!search.signal.aborted) {
        head.textContent = `${plural(count, "match", "matches")} for “${words}”, but not everything was searched.`;
        throw problem;
      }
    }
  }

  /** A session that was found, and the list of its matches. @param {{sessionId: string, title?: string}} match @param {HTMLElement} list */
  _group(match, list) {
    const info = this.sessions.get(match.sessionId);
    const name = h("span", { class: "clip", dir: "auto" }, title({ title: match.title ?? info?.title }));
    return h("section", { class: "found" }, h("h2", null, name, h("span", { class: "spring" }), badge(info?.agent)), list);
  }

  /** @param {{sessionId: string, seq: number, text: string}} match */
  _match(match) {
    return h(
      "li",
      null,
      h(
        "a",
        { class: "session match", href: href(match.sessionId, match.seq), onclick: () => this.hooks.close() },
        h("span", { class: "session-title two", dir: "auto" }, match.text),
        h("span", { class: "number quiet small" }, `§${match.seq}`),
      ),
    );
  }

  /** @param {Node[] | null} nodes */
  _results(nodes) {
    this.results.hidden = nodes === null;
    this.list.hidden = nodes !== null && this._found().length === 0;
    this.results.replaceChildren(...(nodes ?? []));
  }
}

/**
 * What a search found. `complete` is null while it goes on: then `done` is how much of the logs was searched.
 * @param {string} words @param {number} count @param {boolean | null} complete @param {number} done
 */
export function summary(words, count, complete, done = 1) {
  const found = `${plural(count, "match", "matches")} for “${words}”`;
  if (complete === null) return `Searching for “${words}”: ${plural(count, "match", "matches")} so far, ${Math.floor(100 * Math.min(done, 1))} % searched`;
  if (!complete) return `The first ${found}`;
  return count ? found : `No matches for “${words}”.`;
}

/** @returns {import("./menu.js").Item[]} */
function themes() {
  const names = /** @type {const} */ (["system", "light", "dark"]);
  return names.map((name) => ({ label: name === "system" ? "As the system" : name === "light" ? "Light" : "Dark", checked: theme() === name, run: () => setTheme(name) }));
}

/** The mark of a session of which the files were only copied so far. */
function notRead() {
  return h("span", { class: "quiet", title: "Its files are safe. They are read when you open it, or soon." }, "not read yet");
}
