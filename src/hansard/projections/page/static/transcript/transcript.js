/**
 * One session on the page. Live and replay are the same: `renderEvent` folds one event, `flush` draws what changed.
 *
 * What is drawn is folded in units.js and drawn by painter.js. The state comes from outside: the server, or the exported file.
 * This file brings them together and follows the reader.
 */

import { copyCode, Menu, wordsOf } from "./event_menu.js";
import { h } from "./dom.js";
import { Painter } from "./painter.js";
import { inConversationOrder } from "./order.js";
import { highlight, matches } from "./search.js";
import { Flow, nameOf } from "./units.js";
import { Pane } from "./viewport.js";
import { count, workWords } from "./format.js";

/** @typedef {import("./types").Event} Event @typedef {import("./types").Hooks} Hooks @typedef {import("./types").Unit} Unit */
/** @typedef {import("./types").ToolItem} ToolItem @typedef {import("./types").State} State @typedef {import("./types").TurnState} TurnState */

/** So near to the end is at the end, in pixels. */
const AT_END = 32;
/** While late events arrive, the page rests so many times as long as it took to put them in their places. */
const REST = 10;

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
    this.pane = new Pane(this.scroller, this.log, (unit) => this.painter.unit(unit), (turn) => this.nameOfTurn(turn));
    this.menu = new Menu(this.scroller, hooks, (words) => this.announce(words));
    /** @type {((state: State | null) => void)[]} */
    this.listeners = [];
    this.following = true;
    this.frame = 0;
    this.lastTop = 0;
    this.resized = new ResizeObserver(() => {
      if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
    });
    this.flow = new Flow();
    /** The state of the session; null until it is known. @type {State | null} */
    this.state = null;
    /** Whether nothing more is written: a turn that has not ended is unfinished, and nothing is running. */
    this.isOver = false;
    this.lastSeq = 0;
    /** @type {Event[]} */
    this.events = [];
    /** The lines of the log that are no events, each shown once where it stands. @type {Set<string>} */
    this.damaged = new Set();
    /** Whether events are waiting that belong further up, and until when they wait. */
    this.late = false;
    this.restingUntil = 0;
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
    if (event.seq === 0 ? this.damaged.has(name) : event.seq <= this.lastSeq) return;
    if (event.seq === 0) this.damaged.add(name);
    this.events.push(event);
    this.lastSeq = Math.max(this.lastSeq, event.seq);
    if (event.after === undefined) this.flow.apply(event);
    else this.late ||= event.replay !== true;
    this.stale = true;
  }

  /** Fold everything anew, with late events in their places. What the reader opened, and where they read, stays. */
  reorder() {
    const began = performance.now();
    const { tools } = this.flow;
    const anchor = this.following ? undefined : this.topUnit();
    this.late = false;
    this.flow = new Flow();
    for (const event of inConversationOrder(this.events)) this.flow.apply(event);
    for (const [id, tool] of this.flow.tools) tool.open = tools.get(id)?.open ?? null;
    this.finish();
    this.arrange();
    this.flow.changed = false;
    if (anchor !== undefined) this.keepAt(anchor);
    this.restingUntil = performance.now() + REST * (performance.now() - began);
  }

  /** The first unit that the reader sees, and how far below the top it is. */
  topUnit() {
    const { top } = this.scroller.getBoundingClientRect();
    for (const unit of this.pane.units) {
      const place = unit.element?.getBoundingClientRect();
      if (place !== undefined && place.bottom > top) return { seq: unit.event.seq, top: place.top };
    }
    return undefined;
  }

  /** Scroll until a unit is where it was. @param {{seq: number, top: number}} anchor */
  keepAt(anchor) {
    const unit = this.pane.units.find((one) => one.event.seq === anchor.seq);
    if (unit === undefined) return;
    this.pane.reveal(unit);
    this.scroller.scrollTop += (unit.element?.getBoundingClientRect().top ?? anchor.top) - anchor.top;
  }

  /** What changed in the state of the session; the first time all of it. `flush` draws it. @param {Partial<State> & {turnList?: TurnState[]}} changed */
  updateState({ turnList = [], ...changed }) {
    this.state = /** @type {State} */ ({ ...this.state, ...changed });
    if (changed.tasks) this._setTasks();
    for (const turn of turnList) {
      this.turns.set(turn.id, turn);
      const drawn = this.flow.turnsById.get(turn.id);
      for (const unit of drawn?.units ?? []) if (unit.kind === "end") this.flow.mark(unit);
      if (drawn?.element) this.pane.frame(drawn);
    }
    this.stale = true;
  }

  /** The name of a turn, if the state has its number: this may be a part of the session. @param {import("./types").Turn} turn */
  nameOfTurn(turn) {
    const known = this.turns.get(turn.id ?? "");
    return known === undefined ? null : `Turn ${known.number}`;
  }

  /** The turns of the session, by id, also those that are not drawn. */
  get turns() {
    return this.painter.turns;
  }

  /** Draw a session from its beginning. @param {Event[]} events @param {any} [state] */
  replayEvents(events, state) {
    this.clear();
    for (const event of events) this.renderEvent(event);
    if (state !== undefined) this.updateState(state);
    this.following = true;
    this.flush();
  }

  /** An event that just happened. @param {Event} event */
  handleNewEvent(event) {
    const before = this.flow.added;
    this.renderEvent(event);
    if (!this.following) this.unseen += this.flow.added - before;
    if (event.type === "assistant_done" && event.parentToolCallId === undefined && event.after === undefined) this.spoken = String(event.payload?.text ?? "");
    this.drawSoon();
  }

  drawSoon() {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.flush());
  }

  /** Draw now. */
  flush() {
    if (this.frame !== 0) cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (this.late) {
      const rest = this.restingUntil - performance.now();
      if (rest > 0) setTimeout(() => this.drawSoon(), rest);
      else this.reorder();
    }
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
    for (const listener of this.listeners) listener(this.state);
  }

  clear() {
    this.flow = new Flow();
    this.state = null;
    this.isOver = false;
    this.turns.clear();
    this.lastSeq = 0;
    this.events = [];
    this.damaged.clear();
    this.late = false;
    this.restingUntil = 0;
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

  /** The units that are shown, in order, into the page. */
  arrange() {
    const units = this.flow.turns.flatMap((turn) => turn.units);
    this.pane.show(units.filter((unit) => this.painter.shows(unit)), this.following);
  }

  // ---- what others read

  /** Be told when something changed. @param {(state: State | null) => void} listener @returns {() => void} to be told no more */
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

  /** Show the procedure too, or the conversation alone. @param {boolean} show */
  showProcedure(show) {
    this.painter.procedure = show;
    this.redraw();
  }

  get procedureShown() {
    return this.painter.procedure;
  }

  /** Show events of these types alone; null shows all. @param {Iterable<string> | null} types */
  filter(types) {
    this.painter.types = types === null ? null : new Set(types);
    this.redraw();
  }

  redraw() {
    for (const turn of this.flow.turns) for (const unit of turn.units) unit.dirty = true;
    for (const tool of this.flow.tools.values()) tool.dirty = true;
    this.flow.changed = true;
    this.flush();
  }

  /** Look for words; "" ends it. @param {string} words */
  find(words) {
    this.wanted = words;
    const units = this.flow.turns.flatMap((turn) => turn.units).filter((unit) => this.painter.matches(unit));
    this.found = words === "" ? [] : matches(units, words);
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

  /** Go to the first turn that is here. */
  toBeginning() {
    const turn = this.flow.turns.find((one) => one.id !== null && one.units.length > 0);
    if (turn === undefined) return;
    this.reveal(turn.units.find((unit) => this.painter.shows(unit)) ?? turn.units[0]);
    turn.element?.scrollIntoView({ block: "start" });
  }

  /** @param {Unit} unit */
  reveal(unit) {
    if (!this.painter.shows(unit)) this.showProcedure(true);
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

  /** Show an event and mark it, or the beginning of the turn that it starts; false if it is not drawn. @param {number} seq */
  select(seq) {
    this.log.querySelectorAll(".selected").forEach((element) => element.classList.remove("selected"));
    this.chosen = seq;
    const drawn = /** @type {any} */ (this.flow.places[seq] ?? this.flow.turns.find((turn) => turn.start?.seq === seq)?.units[0]);
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

  /** @param {boolean} isOver whether the log is no longer written */
  end(isOver) {
    if (isOver === this.isOver) return;
    this.isOver = isOver;
    this.finish();
    this.drawSoon();
  }

  /** Turns and tasks that have not ended are unfinished, if nothing more is written. */
  finish() {
    this.flow.leave(this.isOver);
    this._setTasks();
  }

  _setTasks() {
    const tasks = this.state?.tasks ?? [];
    this.flow.setTasks(tasks.map((task) => (this.isOver && task.status === "running" ? { ...task, status: "unfinished" } : task)));
  }

  /** What is being done now. */
  get running() {
    return this.isOver ? null : (this.state?.running ?? null);
  }

  /** A spinner never stands without a word. */
  drawNow() {
    const words = workWords(this.running);
    if (this.now.textContent === (words ?? "")) return;
    this.now.replaceChildren(...(words === null ? [] : [h("span", { class: "pulse", "aria-hidden": "true" }), h("span", { class: "now-word" }, words)]));
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
