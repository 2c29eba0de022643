// @ts-check
/**
 * One open session: its place in the log, its transcript, and what the rest of the page reads of it. Everything that is shown comes from
 * the log; what a person does goes to the server, and comes back as events.
 */

import { Transcript } from "../transcript/transcript.js";
import { h } from "../transcript/dom.js";
import { Inspector } from "../transcript/inspector.js";
import { href } from "./address.js";
import * as api from "./api.js";
import { withinSentence } from "./labels.js";
import { tell } from "./toasts.js";
import { Unsent } from "./unsent.js";

/** While a log is read, how far it has got is told this often, and what is there is drawn so often. */
const TOLD = 250;
const DRAWN = 2_000;
/** A log with more events is read from near its end; of what is before, some can be read too. */
const LONG = 150_000;
const NEAR = 50_000;
/** The number of events at the beginning of a long log that are read for what they say about the session. */
const FIRST = 500;
const ABOUT = new Set(["session_lifecycle", "session_init", "configuration_change"]);

export class View {
  /**
   * @param {string} session
   * @param {import("./connection.js").Connection} connection
   * @param {HTMLElement} workbench where the inspector goes
   * @param {{
   *   changed(): void, gone(why: string): void, open(session: string): void, select(seq: number): void,
   *   present(people: {name: string, role: string}[]): void
   * }} hooks
   */
  constructor(session, connection, workbench, hooks) {
    this.session = session;
    this.connection = connection;
    this.hooks = hooks;
    this.isLive = false;
    this.head = 0;
    this.lastSeq = 0;
    this.logId = "";
    /** What comes after this number is read; null until the length of the log is known. @type {number | null} */
    this.from = null;
    /** The questions that were asked before `from`. @type {Map<number, import("./connection.js").Event | null>} */
    this.askedBefore = new Map();
    /** The changes of files that calls announced. @type {Map<string, any[]>} */
    this.changes = new Map();
    /** @type {number | null} */
    this.wanted = null;
    this.toldAt = this.drawnAt = -Infinity;
    this.reading = h("p", { class: "reading hint", role: "status" }, "Reading …");
    this.container = h("div", { class: "transcript-room" });
    this.before = h("p", { class: "before hint", hidden: true });
    this.element = h("div", { class: "reader" }, this.reading, this.before, this.container);
    this.transcript = this._draw();
    this.unsent = new Unsent(this.transcript.scroller);
    this.inspector = new Inspector(workbench, this.transcript);
    this.subscription = this._read();
  }

  _draw() {
    const transcript = new Transcript(this.container, {
      original: (seq) => api.text(`${api.at(this.session)}/events/${seq}/original`),
      blob: (sha256) => api.blob(this.session, sha256),
      href: (seq) => href(this.session, seq),
      onSelect: (seq) => this._selected(seq),
      open: (session) => this.hooks.open(session),
    });
    transcript.subscribe(() => this.hooks.changed());
    new ResizeObserver(() => this._measure()).observe(transcript.log);
    return transcript;
  }

  /** @param {number} seq */
  _selected(seq) {
    this.inspector.select(seq);
    this.hooks.select(seq);
  }

  /** @param {import("./connection.js").Cursor | null} after */
  _read(after = null) {
    return this.connection.subscribe(
      this.session,
      {
        subscribed: (head, logId) => this._subscribed(head, logId),
        events: (events) => this._events(events),
        live: () => this._live(),
        state: (changed, large) => void this._state(changed, large),
        lost: (code, message, had) => this._lost(code, message, had),
        present: (people) => this.hooks.present(people),
      },
      after,
    );
  }

  /** @param {number} head @param {string} logId */
  _subscribed(head, logId) {
    this.head = head;
    this.logId = logId;
    if (this.from !== null) return;
    const from = head > LONG ? Math.min(head - NEAR, (this.wanted ?? head) - FIRST) : 0;
    if (from > 0) void this._start(from);
    else this.from = 0;
  }

  /** Read a long log from somewhere on, and from its beginning only what says what session it is. @param {number} from */
  async _start(from) {
    this.from = Math.max(0, from);
    this.connection.unsubscribe(this.subscription);
    this._clear();
    const until = this.from;
    if (until > 0) {
      const { events } = await api.get(`${api.at(this.session)}/events?limit=${FIRST}`).catch(() => ({ events: [] }));
      if (this.from !== until || !this.element.isConnected) return; // somebody went elsewhere meanwhile
      this._events(events.filter((/** @type {any} */ event) => event.seq <= until && ABOUT.has(event.type)));
    }
    this.subscription = this._read({ logId: this.logId, seq: until });
  }

  /** Say what of the log is not here, and offer it. */
  _offer() {
    const from = this.from ?? 0;
    this.before.hidden = from === 0;
    if (from === 0) return;
    const offer = (/** @type {string} */ words, /** @type {number} */ to) => h("button", { type: "button", class: "plain", onclick: () => void this._start(to) }, words);
    const earlier = from > NEAR ? offer(`Show ${NEAR.toLocaleString()} more`, from - NEAR) : "";
    this.before.replaceChildren(`This session is long: what comes after §${from.toLocaleString()} is shown.`, earlier, offer("Show all of it", 0));
  }

  /** The state of the session; null until it is known. */
  get state() {
    return this.transcript.state;
  }

  /** Whether all of the session is here. */
  get isWhole() {
    return this.isLive && this.from === 0;
  }

  /** The agent that was started here, if one was: its name, as the server knows it. */
  get driven() {
    return this.state?.launchedAgent ?? null;
  }

  /** The questions that are open, the oldest first. */
  get pending() {
    const found = (this.state?.requests ?? []).map(({ seq }) => this.transcript.event(seq) ?? this._fetch(seq));
    return found.filter((event) => event !== null);
  }

  /** An event that is not here; null until it is. @param {number} seq */
  _fetch(seq) {
    const known = this.askedBefore.get(seq);
    if (known !== undefined) return known;
    this.askedBefore.set(seq, null);
    void api.get(`${api.at(this.session)}/events/${seq}`).then((event) => {
      this.askedBefore.set(seq, event);
      this.hooks.changed();
    }, () => this.askedBefore.delete(seq));
    return null;
  }

  /** @param {Record<string, any>} changed @param {string[]} large the fields that have to be fetched */
  async _state(changed, large) {
    this.transcript.updateState(changed);
    this.transcript.drawSoon();
    this.element.dataset.state = "";
    if (large.length === 0) return;
    const all = await api.get(`${api.at(this.session)}/state`).catch(() => ({}));
    this.transcript.updateState(Object.fromEntries(large.filter((name) => name in all).map((name) => [name, all[name]])));
    this.transcript.drawSoon();
  }

  close() {
    this.connection.unsubscribe(this.subscription);
    this.inspector.close();
    this.element.remove();
  }

  /** @param {import("./connection.js").Event[]} events */
  _events(events) {
    for (const event of events) {
      this._note(event);
      if (this.isLive) this.transcript.handleNewEvent(event);
      else this.transcript.renderEvent(event);
    }
    this.element.dataset.seq = String(this.lastSeq);
    if (!this.isLive) this._progress();
  }

  /** @param {import("./connection.js").Event} event */
  _note(event) {
    this.lastSeq = Math.max(this.lastSeq, event.seq);
    this.unsent.note(event);
    const told = event.payload;
    if (event.type === "tool_progress" && Array.isArray(told?.content)) {
      const changes = told.content.filter((/** @type {any} */ block) => block?.type === "diff");
      if (changes.length) this.changes.set(told.toolCallId, changes);
    }
    if (event.type === "tool_result") this.changes.delete(told?.toolCallId);
  }

  /** Show how far it has got, and what is there already. */
  _progress() {
    const now = performance.now();
    if (now - this.toldAt > TOLD) {
      this.toldAt = now;
      this.reading.textContent = `Reading ${this.lastSeq.toLocaleString()} of ${this.head.toLocaleString()} events …`;
    }
    if (now - this.drawnAt > DRAWN) {
      this.drawnAt = now;
      this.transcript.flush();
    }
  }

  /** What stands below the transcript is in line with it, and as wide. */
  _measure() {
    const { scroller, log } = this.transcript;
    const { style } = document.documentElement;
    style.setProperty("--gutter", `${scroller.offsetWidth - scroller.clientWidth}px`);
    style.setProperty("--log-width", `${log.offsetWidth}px`);
  }

  _live() {
    this.isLive = true;
    this.reading.hidden = true;
    this._offer();
    this.transcript.flush();
    this.go(this.wanted);
    this.element.dataset.live = "";
    this.hooks.changed();
  }

  /** @param {string} code @param {string} message @param {import("./connection.js").Cursor} had */
  _lost(code, message, had) {
    if (code !== "unknown_cursor") return this.hooks.gone(code === "unknown_session" ? "This session is not on the server any more." : message);
    tell(`The log of this session is another one than the one you were reading (up to §${had.seq}). It is read again from its beginning.`, "bad");
    this.from = null;
    this._clear();
    this.subscription = this._read();
  }

  /** Nothing is read. */
  _clear() {
    this.reading.hidden = false;
    this.before.hidden = true;
    this.isLive = false;
    delete this.element.dataset.live;
    delete this.element.dataset.state;
    this.lastSeq = 0;
    this.askedBefore.clear();
    this.transcript.clear();
  }

  /** Go to an event, as soon as it is there. @param {number | null} seq */
  go(seq) {
    this.wanted = seq;
    if (seq === null || !this.isLive) return;
    if (seq <= (this.from ?? 0)) return void this._start(seq - FIRST);
    this.transcript.select(seq);
    this.inspector.select(seq);
  }

  toEnd() {
    this.transcript.toEnd();
  }

  toBeginning() {
    this.transcript.toBeginning();
  }

  /** Go to the next turn, or to the one before. @param {1 | -1} by */
  turn(by) {
    const { scroller } = this.transcript;
    const top = scroller.getBoundingClientRect().top;
    const turns = [...scroller.querySelectorAll(".turn")];
    const here = turns.findIndex((turn) => turn.getBoundingClientRect().bottom > top + 8);
    const first = turns[here];
    const inside = first !== undefined && first.getBoundingClientRect().top < top - 8;
    const to = turns[by === 1 ? here + 1 : inside ? here : here - 1];
    if (to) to.scrollIntoView({ block: "start" });
    else if (by === 1) this.toEnd();
  }

  // ---- what a person does

  /** Send a message. It is on view until the log has it, or until it is refused. @param {{text: string}} message */
  async send(message) {
    const forget = this.unsent.add(message.text, "Sending …");
    this.toEnd();
    try {
      return await this.command("user_message", message);
    } finally {
      forget();
    }
  }

  /** Show the first message while the agent starts. @param {string} text @param {string} agent */
  starts(text, agent) {
    this.unsent.add(text, `Starting ${withinSentence(agent)} …`);
  }

  /** @param {string} type @param {object} payload */
  command(type, payload) {
    return this.connection.command(this.session, type, payload);
  }
}
