/**
 * One session on the page. Live and replay are the same: `renderEvent` folds one event, `flush` draws what changed.
 *
 * The fold is in units.js and state.js, the drawing in painter.js. This file brings them together and follows the reader.
 */

import { copyCode, Menu, wordsOf } from "./event_menu.js";
import { h } from "./dom.js";
import { Painter } from "./painter.js";
import { highlight, matches } from "./search.js";
import { Flow, nameOf } from "./units.js";
import { Pane } from "./viewport.js";
import { State } from "./state.js";
import { count } from "./format.js";

/** @typedef {import("./types").Event} Event @typedef {import("./types").Hooks} Hooks @typedef {import("./types").Unit} Unit */
/** @typedef {import("./types").ToolItem} ToolItem */

/** So near to the end is at the end, in pixels. */
const AT_END = 32;

export class Transcript {
  /** @param {HTMLElement} container @param {Hooks} [hooks] */
  constructor(container, hooks = {}) {
    this.hooks = hooks;
    this.log = h("div", { class: "chat-log", role: "log", "aria-live": "off", "aria-label": "Transcript" });
    this.now = h("div", { class: "now", role: "status", "aria-live": "off" });
    this.scroller = h("div", { class: "transcript", tabindex: "-1" }, this.log, this.now);
    this.pill = h("button", { type: "button", class: "new-pill", hidden: true, onclick: () => this.toEnd() });
    this.announcer = h("div", { class: "unheard", role: "status", "aria-live": "polite" });
    container.append(this.scroller, this.pill, this.announcer);
    this.painter = new Painter(hooks);
    this.pane = new Pane(this.scroller, this.log, (unit) => this.painter.unit(unit));
    this.menu = new Menu(this.scroller, hooks, (words) => this.announce(words));
    /** @type {((state: Transcript["state"]) => void)[]} */
    this.listeners = [];
    this.following = true;
    this.frame = 0;
    this.lastTop = 0;
    this.resized = new ResizeObserver(() => {
      if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
    });
    this.flow = new Flow();
    this.fold = new State();
    /** @type {Event[]} */
    this.events = [];
    /** The lines of the log that are no events, each shown once where it stands. @type {Set<string>} */
    this.damaged = new Set();
    this.stale = true;
    this.unseen = 0;
    this.spoken = "";
    /** @type {import("./search.js").Match[]} */
    this.found = [];
    this.foundAt = -1;
    this.wanted = "";
    this.chosen = 0;
    this.listen();
  }

  // ---- events

  /** Fold one event; `flush` draws it. @param {Event} event */
  renderEvent(event) {
    const name = nameOf(event);
    if (event.seq === 0 ? this.damaged.has(name) : event.seq <= this.fold.seq) return;
    if (event.seq === 0) this.damaged.add(name);
    this.events.push(event);
    this.flow.apply(event);
    this.fold.apply(event);
    this.stale = true;
  }

  /** Draw a session from its beginning. @param {Event[]} events */
  replayEvents(events) {
    this.clear();
    for (const event of events) this.renderEvent(event);
    this.following = true;
    this.flush();
  }

  /** An event that just happened. @param {Event} event */
  handleNewEvent(event) {
    const before = this.flow.added;
    this.renderEvent(event);
    if (!this.following) this.unseen += this.flow.added - before;
    if (event.type === "assistant_done" && event.parentToolCallId === undefined) this.spoken = String(event.payload?.text ?? "");
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.flush());
  }

  /** Draw now. */
  flush() {
    if (this.frame !== 0) cancelAnimationFrame(this.frame);
    this.frame = 0;
    const { flow } = this;
    if (flow.changed) {
      flow.changed = false;
      this.arrange();
    } else for (const unit of flow.dirty) if (this.pane.mounted.has(unit)) this.painter.unit(unit);
    flow.dirty.clear();
    this.drawNow();
    this.drawPill();
    if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
    if (this.spoken !== "") this.announce(this.spoken);
    this.spoken = "";
    if (!this.stale) return;
    this.stale = false;
    const { state } = this;
    for (const listener of this.listeners) listener(state);
  }

  clear() {
    this.flow = new Flow();
    this.fold = new State();
    this.events = [];
    this.damaged.clear();
    this.stale = true;
    this.unseen = 0;
    this.spoken = "";
    this.found = [];
    this.foundAt = -1;
    this.wanted = "";
    this.chosen = 0;
    this.menu.close();
    this.pane.clear();
  }

  /** The units that pass the filter, in order, into the page. */
  arrange() {
    const units = this.flow.turns.flatMap((turn) => turn.units);
    this.pane.show(this.painter.types === null ? units : units.filter((unit) => this.painter.shows(unit)), this.following);
  }

  // ---- what others read

  /** Where the session stands. */
  get state() {
    const { fold } = this;
    const turns = () => this.turns();
    const snapshot = fold.snapshot();
    return {
      ...snapshot,
      agent: fold.agentId ?? snapshot.agentId,
      status: snapshot.phase,
      running: fold.running,
      modes: fold.init?.modes ?? null,
      models: fold.init?.models ?? null,
      capabilities: fold.init?.capabilities ?? null,
      options: fold.options,
      get turns() {
        return turns();
      },
      pending: [...fold.asked.values()],
      team: snapshot.teams,
      context: snapshot.context === null ? null : { used: snapshot.context.tokens, window: snapshot.context.window, percent: snapshot.context.percent },
      lastSeq: fold.seq,
      count: this.events.length,
    };
  }

  turns() {
    return this.flow.turns
      .filter((turn) => turn.id !== null)
      .map((turn) => ({
        id: turn.id,
        title: turn.title,
        seq: turn.start?.seq ?? turn.units[0]?.event.seq ?? 0,
        status: turn.end === null ? "running" : String(turn.end.payload.status),
        startedAt: turn.firstAt,
        costUsd: turn.costUsd,
      }));
  }

  /** Be told when something changed. @param {(state: Transcript["state"]) => void} listener @returns {() => void} to be told no more */
  subscribe(listener) {
    this.listeners.push(listener);
    return () => {
      this.listeners = this.listeners.filter((one) => one !== listener);
    };
  }

  /** How many events there are of each type, drawn or not. */
  types() {
    /** @type {Map<string, number>} */
    const found = new Map();
    for (const event of this.events) found.set(event.type, (found.get(event.type) ?? 0) + 1);
    return found;
  }

  // ---- what the reader does

  openAll() {
    this.fix(true);
  }

  closeAll() {
    this.fix(false);
  }

  /** @param {boolean} open */
  fix(open) {
    this.painter.toolsOpen = open;
    for (const tool of this.flow.tools.values()) {
      tool.open = null;
      if (tool.element instanceof HTMLDetailsElement) tool.element.open = open;
      tool.dirty = true;
      this.flow.mark(tool.unit);
    }
    this.flush();
  }

  get toolsOpen() {
    return this.painter.toolsOpen;
  }

  /** @param {boolean} show */
  showThinking(show) {
    this.painter.thinkingOpen = show;
    for (const element of this.log.querySelectorAll("details.thinking")) Reflect.set(element, "open", show);
  }

  get thinkingShown() {
    return this.painter.thinkingOpen;
  }

  /** Show events of these types alone; null shows all. @param {Iterable<string> | null} types */
  filter(types) {
    this.painter.types = types === null ? null : new Set(types);
    for (const turn of this.flow.turns) for (const unit of turn.units) unit.dirty = true;
    for (const tool of this.flow.tools.values()) tool.dirty = true;
    this.flow.changed = true;
    this.flush();
  }

  /** Look for words; "" ends it. @param {string} words */
  find(words) {
    this.wanted = words;
    this.found = words === "" ? [] : matches(this.pane.units, words);
    this.foundAt = -1;
    if (words === "") highlight([], "");
    else if (this.found.length > 0) this.findNext();
    return { count: this.found.length, index: this.foundAt, next: () => this.findNext(), previous: () => this.findNext(-1) };
  }

  /** @param {number} step */
  findNext(step = 1) {
    if (this.found.length === 0) return { count: 0, index: -1 };
    const from = this.foundAt === -1 && step < 0 ? 0 : this.foundAt;
    this.foundAt = (from + step + this.found.length) % this.found.length;
    const { unit, item } = this.found[this.foundAt];
    this.reveal(unit);
    if (item !== null && item.element instanceof HTMLDetailsElement) item.element.open = true;
    if (item?.kind === "tool") this.painter.toggled(item);
    const element = item?.element ?? unit.element;
    element?.scrollIntoView({ block: "center" });
    const shown = [...this.pane.mounted].flatMap((one) => (one.element === null ? [] : [one.element]));
    highlight(shown, this.wanted);
    return { count: this.found.length, index: this.foundAt };
  }

  /** The element of a turn, by its place in `state.turns`. @param {number} index */
  turnElement(index) {
    const turn = this.flow.turns.filter((one) => one.id !== null)[index];
    if (turn === undefined || turn.units.length === 0) return null;
    this.reveal(turn.units[0]);
    return turn.element;
  }

  /** @param {Unit} unit */
  reveal(unit) {
    let outer = unit;
    while (outer.lane.owner !== null) {
      const { owner } = outer.lane;
      owner.open = true;
      owner.dirty = true;
      if (owner.element instanceof HTMLDetailsElement) owner.element.open = true;
      this.flow.mark(owner.unit);
      outer = owner.unit;
    }
    this.following = false;
    this.pane.reveal(outer);
    this.flush();
  }

  /** Show an event and mark it; false if it is not drawn. @param {number} seq */
  select(seq) {
    this.log.querySelectorAll(".selected").forEach((element) => element.classList.remove("selected"));
    this.chosen = seq;
    const drawn = /** @type {any} */ (this.flow.places[seq]);
    if (drawn === undefined) return false;
    this.reveal(drawn.unit ?? (drawn.items === undefined ? this.unitOf(drawn) : drawn));
    drawn.element?.classList.add("selected");
    drawn.element?.scrollIntoView({ block: "center" });
    return drawn.element !== null;
  }

  /** @param {any} item @returns {Unit} */
  unitOf(item) {
    const units = [...this.flow.turns.flatMap((turn) => turn.units), ...[...this.flow.lanes.values()].flatMap((lane) => lane.units)];
    return /** @type {Unit} */ (units.find((unit) => unit.items.includes(item)));
  }

  /** Go to the end, and follow. */
  toEnd() {
    this.following = true;
    this.unseen = 0;
    this.arrange();
    this.flush();
  }

  /** It is shown no more. */
  close() {
    cancelAnimationFrame(this.frame);
    this.resized.disconnect();
    for (const element of [this.scroller, this.pill, this.announcer]) element.remove();
  }

  // ---- around

  listen() {
    let waiting = false;
    const moved = () => {
      waiting = false;
      const { scrollTop, scrollHeight, clientHeight } = this.scroller;
      const atEnd = scrollHeight - scrollTop - clientHeight <= AT_END;
      if (atEnd && this.pane.to === this.pane.units.length) {
        this.following = true;
        this.unseen = 0;
        this.drawPill();
      } else if (scrollTop < this.lastTop - 1) this.following = false;
      this.lastTop = scrollTop;
      if (!this.following) this.pane.scrolled();
    };
    this.scroller.addEventListener("scroll", () => {
      if (!waiting) requestAnimationFrame(moved);
      waiting = true;
    }, { passive: true });
    this.resized.observe(this.log);
    this.scroller.addEventListener("click", (click) => this.clicked(click));
  }

  /** @param {MouseEvent} click */
  clicked(click) {
    const target = click.target instanceof Element ? click.target : null;
    const cite = target?.closest("a.cite");
    if (copyCode(click, (words) => this.announce(words))) return;
    if (cite instanceof HTMLElement && !click.ctrlKey && !click.metaKey && !click.shiftKey) {
      click.preventDefault();
      const seq = Number(cite.dataset.seq);
      const event = this.event(seq);
      this.mark(cite);
      this.chosen = seq;
      this.hooks.onSelect?.(seq);
      if (event !== undefined) this.menu.open(cite, event, wordsOf(event, this.flow.places[seq]));
    } else if (!target?.closest(".cite-menu")) this.menu.close();
  }

  /** @param {HTMLElement} cite */
  mark(cite) {
    this.log.querySelectorAll(".selected").forEach((element) => element.classList.remove("selected"));
    cite.closest("[data-event-id]")?.classList.add("selected");
  }

  /** The event of that number. @param {number} seq */
  event(seq) {
    let low = 0;
    let high = this.events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      let numbered = middle;
      while (numbered > low && this.events[numbered].seq === 0) numbered -= 1; // a damaged line has no number
      if (this.events[numbered].seq < seq) low = middle + 1;
      else high = numbered;
    }
    return this.events[low]?.seq === seq ? this.events[low] : undefined;
  }

  /** A spinner never stands without a word. */
  drawNow() {
    const { running } = this.fold;
    if (this.now.textContent === (running?.word ?? "")) return;
    this.now.replaceChildren(...(running === null ? [] : [h("span", { class: "pulse", "aria-hidden": "true" }), h("span", { class: "now-word" }, running.word)]));
  }

  drawPill() {
    this.pill.hidden = this.following || this.unseen === 0;
    this.pill.textContent = `${count(this.unseen)} new ↓`;
    this.hooks.onUnseen?.(this.following ? 0 : this.unseen);
  }

  /** Tell those who listen to the page. @param {string} words */
  announce(words) {
    this.announcer.textContent = words.slice(0, 2000);
  }
}
