/** The part of a long transcript that is in the page: all of a short one, of a long one what is near the reader. */

import { h, place } from "./dom.js";

/** @typedef {import("./types").Unit} Unit @typedef {import("./types").Turn} Turn */

/** A transcript of so many units is in the page as a whole. */
export const WHOLE = 400;
/** Of a longer one, so many at the end while the reader follows. */
export const NEAR = 120;
/** The height of a unit nobody has seen yet. */
const GUESS = 96;

export class Pane {
  /**
   * @param {HTMLElement} scroller
   * @param {HTMLElement} log
   * @param {(unit: Unit) => HTMLElement} draw
   * @param {(turn: Turn) => string | null} name
   */
  constructor(scroller, log, draw, name) {
    this.scroller = scroller;
    this.log = log;
    this.draw = draw;
    this.name = name;
    this.before = h("div", { class: "spacer", "aria-hidden": "true" });
    this.after = h("div", { class: "spacer", "aria-hidden": "true" });
    /** @type {Unit[]} */
    this.units = [];
    this.from = 0;
    this.to = 0;
    /** @type {Set<Unit>} */
    this.mounted = new Set();
  }

  /** Everything there is, and whether the reader is at its end. @param {Unit[]} units @param {boolean} following */
  show(units, following) {
    this.units = units;
    if (units.length <= WHOLE) this.mount(0, units.length);
    else if (following || this.to === 0) this.mount(units.length - NEAR, units.length);
    else this.mount(Math.min(this.from, units.length - NEAR), Math.min(this.to, units.length));
  }

  /** Put these into the page, and nothing else. @param {number} from @param {number} to */
  mount(from, to) {
    this.measure();
    this.from = Math.max(0, from);
    this.to = Math.min(this.units.length, to);
    const shown = this.units.slice(this.from, this.to);
    const wanted = new Set(shown);
    for (const unit of this.mounted) if (!wanted.has(unit)) forget(unit);
    this.mounted = wanted;
    /** @type {Map<Turn, HTMLElement[]>} */
    const turns = new Map();
    for (const unit of shown) {
      const elements = turns.get(unit.turn) ?? [];
      elements.push(this.draw(unit));
      turns.set(unit.turn, elements);
    }
    for (const [turn, elements] of turns) place(this.frame(turn), elements);
    place(this.log, [this.before, ...[...turns.keys()].map((turn) => this.frame(turn)), this.after]);
    this.space();
  }

  /** The element of a turn, with its name. @param {Turn} turn */
  frame(turn) {
    turn.element ??= h("section", { class: turn.id === null ? "turn between" : "turn", "data-turn-id": turn.id, role: "group" });
    const name = this.name(turn);
    if (name !== null) turn.element.setAttribute("aria-label", name);
    return turn.element;
  }

  /** How high the units in the page are: they may leave it. */
  measure() {
    if (this.units.length <= WHOLE) return;
    for (const unit of this.mounted) if (unit.element?.isConnected) unit.height = unit.element.offsetHeight || unit.height;
  }

  space() {
    const height = (/** @type {Unit[]} */ units) => units.reduce((sum, unit) => sum + (unit.height || GUESS), 0);
    this.before.style.height = `${height(this.units.slice(0, this.from))}px`;
    this.after.style.height = `${height(this.units.slice(this.to))}px`;
  }

  /** The reader is somewhere else now. */
  scrolled() {
    if (this.units.length <= WHOLE) return;
    const view = this.scroller.clientHeight;
    const top = this.scroller.scrollTop - this.log.offsetTop;
    const first = this.before.offsetHeight;
    const last = this.log.offsetHeight - this.after.offsetHeight;
    const startsIn = top - view < first && this.from > 0;
    const endsIn = top + 2 * view > last && this.to < this.units.length;
    if (!startsIn && !endsIn) return;
    this.measure();
    const from = this.at(top - 2 * view);
    const to = this.at(top + 3 * view) + 1;
    this.mount(from, Math.max(to, from + 20));
  }

  /** The unit at a height. @param {number} height */
  at(height) {
    let sum = 0;
    const index = this.units.findIndex((unit) => (sum += unit.height || GUESS) > height);
    return index === -1 ? this.units.length - 1 : index;
  }

  /** See that a unit is in the page. @param {Unit} unit */
  reveal(unit) {
    const index = this.units.indexOf(unit);
    if (index === -1 || (index >= this.from && index < this.to)) return;
    this.mount(index - NEAR / 3, index + (2 * NEAR) / 3);
  }

  clear() {
    this.units = [];
    this.mounted.clear();
    this.from = this.to = 0;
    this.log.replaceChildren();
  }
}

/** What is not in the page costs no elements. @param {Unit} unit */
function forget(unit) {
  unit.element = null;
  unit.dirty = true;
  for (const item of unit.items) {
    item.element = null;
    item.dirty = true;
    if (item.kind === "text" || item.kind === "thinking") item.view = null;
    if (item.kind === "tool") {
      item.body = null;
      item.lane?.units.forEach(forget);
    }
  }
}
