/** What a session used, each thing counted once. The rules are those of src/hansard/events/usage_totals.py, and a test compares every recording. */

import { asObject } from "./format.js";
import { COST, OPEN_TURNS, TOKENS, WHOLE } from "./rules.js";

/** @typedef {import("./types").Event} Event @typedef {Record<string, number>} Numbers */

/** Whether the main agent speaks, not a sub-agent. @param {Event} event */
export function isMain(event) {
  return event.parentToolCallId === undefined && event.stream === undefined;
}

/**
 * Whether an agent repeats the conversation after this event. The only copy of a conversation is not a repetition.
 * @param {Event} event
 * @param {boolean} before
 * @param {boolean} hasTurn
 */
export function isReplaying(event, before, hasTurn) {
  const { subtype } = event.payload;
  if (subtype === "replay_started") return hasTurn;
  return before && subtype !== "replay_ended" && !(subtype === "launched" && event.source === undefined);
}

/** Numbers added up by name, and the names that somebody was silent about. */
class Sum {
  /** @param {Numbers} [numbers] @param {Iterable<string>} [silent] */
  constructor(numbers = {}, silent = []) {
    this.numbers = { ...numbers };
    this.silent = new Set(silent);
  }

  /** @param {Numbers} numbers @param {Iterable<string>} silent */
  add(numbers, silent) {
    for (const [name, number] of Object.entries(numbers)) this.numbers[name] = (this.numbers[name] ?? 0) + number;
    for (const name of silent) this.silent.add(name);
  }

  spent() {
    /** @type {Record<string, any>} */
    const spent = {};
    for (const name of [...TOKENS, COST]) spent[name] = this.numbers[name] ?? null;
    spent.atLeast = [...this.silent].filter((name) => name in this.numbers).sort();
    return spent;
  }
}

/** @typedef {{numbers: Numbers, bySubagent: boolean}} Counted */

/** A turn whose counts may still change. */
class OpenTurn {
  /** @param {string | null} id @param {Numbers} ahead */
  constructor(id, ahead = {}) {
    this.id = id;
    this.ahead = ahead;
    this.ended = false;
    this.cut = false;
    this.repeated = false;
    /** @type {Map<string, Counted>} */
    this.messages = new Map();
    /** @type {Numbers | null} */
    this.own = null;
  }

  /** @returns {Numbers} */
  surplus() {
    if (this.cut || this.repeated || this.own === null || this.messages.size === 0) return {};
    const made = this.main();
    const more = Object.entries(this.own).filter(([name, number]) => (made.numbers[name] ?? 0) > number);
    return Object.fromEntries(more.map(([name, number]) => [name, made.numbers[name] - number]));
  }

  main() {
    return this.filled([...this.messages.values()].filter((one) => !one.bySubagent));
  }

  subagents() {
    const theirs = [...this.messages.values()].filter((one) => one.bySubagent);
    return theirs.length > 0 ? sumOf(theirs) : null;
  }

  /** @param {Counted[]} mine */
  filled(mine) {
    const made = sumOf(mine);
    const theirs = this.subagents()?.numbers ?? {};
    for (const [name, number] of Object.entries(this.repeated ? {} : (this.own ?? {}))) {
      const said = made.numbers[name] ?? 0;
      if (made.silent.has(name) || mine.length === 0) {
        made.numbers[name] = Math.max(number - (mine.length > 0 ? 0 : (this.ahead[name] ?? 0)), said);
        if (!this.cut) made.silent.delete(name);
      } else made.numbers[name] = Math.max(number - (theirs[name] ?? 0), said);
    }
    if (this.cut && mine.length === 0) for (const name of Object.keys(made.numbers)) made.silent.add(name);
    return made;
  }
}

/** @param {Counted[]} counts */
function sumOf(counts) {
  const made = new Sum();
  for (const one of counts) made.add(one.numbers, [...TOKENS, COST].filter((name) => !(name in one.numbers)));
  return made;
}

/** @param {any} usage @returns {Numbers} */
function numbersOf(usage) {
  const said = asObject(usage);
  return Object.fromEntries(TOKENS.filter((name) => typeof said[name] === "number").map((name) => [name, said[name]]));
}

/** @param {any} used @returns {Numbers} */
function counts(used) {
  return { ...numbersOf(used.usage), ...(typeof used.costUsd === "number" ? { [COST]: used.costUsd } : {}) };
}

/** The fold: `apply` every event in order, ask for `session` and `context` at any time. */
export class Tally {
  constructor() {
    this.total = new Sum();
    /** @type {OpenTurn[]} */
    this.open = [];
    /** @type {Set<string>} */
    this.counted = new Set();
    this.anonymous = 0;
    this.replaying = false;
    /** @type {string | null} */
    this.model = null;
    this.priced = false;
    /** @type {number | null} */
    this.runningCost = null;
    /** @type {number | null} */
    this.grownCost = null;
    /** @type {any} */
    this.reportedUsage = null;
    /** @type {any} */
    this.modelUsage = null;
    /** @type {number | null} */
    this.window = null;
    /** @type {number | null} */
    this.inContext = null;
    /** @type {any} */
    this.last = null;
  }

  /** @param {Event} event */
  apply(event) {
    const { payload } = event;
    if (event.type === "session_lifecycle") this.live(event);
    else if (event.type === "session_init" && isMain(event)) this.model = payload.model || this.model;
    else if (this.replaying) return;
    else if (event.type === "turn_start" && isMain(event)) this.begin(event.turnId ?? null);
    else if (event.type === "turn_end" && isMain(event)) {
      for (const turn of this.open) {
        if (turn.id === (event.turnId ?? null)) {
          turn.ended = true;
          turn.cut = !WHOLE.includes(payload.status);
        }
      }
    } else if (event.type === "usage") this.use(event);
    else if (event.type === "result" && isMain(event)) this.report(payload);
  }

  session() {
    const whole = new Sum(this.total.numbers, this.total.silent);
    for (const turn of this.open) {
      for (const part of [turn.main(), turn.subagents()]) if (part !== null) whole.add(part.numbers, part.silent);
    }
    if (!this.priced && this.grownCost !== null) {
      whole.numbers[COST] = this.grownCost;
      whole.silent.delete(COST);
    }
    for (const [name, number] of Object.entries(numbersOf(this.reportedUsage))) whole.numbers[name] ??= number;
    return whole.spent();
  }

  context() {
    if (this.inContext === null && this.window === null) return null;
    const percent = this.inContext !== null && this.window ? Math.round((10_000 * this.inContext) / this.window) / 100 : null;
    return { tokens: this.inContext, window: this.window, percent };
  }

  /** @param {Event} event */
  live(event) {
    this.replaying = isReplaying(event, this.replaying, this.open.length > 0);
    if (event.payload.subtype === "compacted") this.inContext = null;
  }

  /** @param {string | null} id */
  begin(id) {
    /** @type {Numbers} */
    let ahead = {};
    this.open = [...this.open.filter((turn) => turn.ended), ...this.open.filter((turn) => !turn.ended)];
    while (this.open.length > 0 && (this.open[0].ended || this.open[0].id === null || this.open.length >= OPEN_TURNS)) {
      ahead = this.open[0].surplus();
      this.settle();
    }
    this.open.push(new OpenTurn(id, ahead));
  }

  settle() {
    const turn = this.open.shift();
    if (turn === undefined) return;
    for (const part of [turn.main(), turn.subagents()]) if (part !== null) this.total.add(part.numbers, part.silent);
    for (const name of turn.messages.keys()) this.counted.add(name);
  }

  /** @param {Event} event */
  use(event) {
    const used = event.payload;
    if (used.scope === "message") this.message(event);
    else if (!isMain(event)) return;
    else if (used.scope === "turn") {
      this.turn(event).own = counts(used);
      this.priced = this.priced || typeof used.costUsd === "number";
    } else if (used.scope === "session") {
      this.reportedUsage = used.usage;
      this.running(used.costUsd);
      this.window = used.contextWindow || this.window;
    } else if (used.scope === "context") {
      this.fill(used);
      this.running(used.costUsd);
    }
  }

  /** @param {Event} event */
  message(event) {
    const used = event.payload;
    let name = event.responseId || event.id;
    if (!name) {
      this.anonymous += 1;
      name = `\0${this.anonymous}`;
    }
    if (this.counted.has(name)) {
      this.turn(event).repeated = true;
      return;
    }
    const known = name;
    const turn = this.open.find((one) => one.messages.has(known)) ?? this.turn(event);
    turn.messages.set(name, { numbers: counts(used), bySubagent: !isMain(event) });
    this.priced = this.priced || typeof used.costUsd === "number";
    if (isMain(event)) {
      this.last = used.usage;
      this.model = used.model || this.model;
      if (typeof used.contextWindow === "number") this.fill(used);
    }
  }

  /** The open turn an event belongs to: the one it names, or the newest. @param {Event} event */
  turn(event) {
    const named = this.open.filter((turn) => turn.id === (event.turnId ?? null));
    if (named.length === 0 && this.open.length === 0) this.open.push(new OpenTurn(event.turnId ?? null));
    const found = named.length > 0 ? named : this.open;
    return found[found.length - 1];
  }

  /** @param {any} used */
  fill(used) {
    this.inContext = used.usage?.totalTokens ?? used.usage?.inputTokens ?? null;
    this.window = used.contextWindow || this.window;
  }

  /** @param {number | null | undefined} cost */
  running(cost) {
    if (typeof cost !== "number") return;
    const before = this.runningCost ?? 0;
    const growth = cost >= before ? cost - before : cost;
    this.runningCost = cost;
    this.grownCost = (this.grownCost ?? 0) + growth;
  }

  /** @param {any} said */
  report(said) {
    this.running(said.costUsd);
    if (said.modelUsage !== undefined && said.modelUsage !== null) this.modelUsage = said.modelUsage;
    const window = asObject(asObject(this.modelUsage)[this.model ?? ""]).contextWindow;
    if (Number.isInteger(window) && window > 0) {
      this.window = window;
      if (this.last !== null) {
        const names = ["inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens"];
        this.inContext = names.reduce((sum, name) => sum + (this.last[name] ?? 0), 0);
        this.last = null;
      }
    }
  }
}
