// @ts-check
/**
 * The socket of docs/protocol.md, from the page's side: it comes back by itself, goes on at each log's cursor, and keeps every command
 * until it is answered. It knows no DOM; clock, chance and sockets are given to it, so that a test can be all three.
 */

const PROTOCOL = 2;
const BACKOFF = { first: 500, most: 10_000 };
const HEARTBEAT = 15_000;
/** So that the banner, which waits a second, is there within twenty seconds of the last word. */
const GRACE = 3_000;
/** A server whose store is away is asked again after so long. */
const AWAY = 2_000;

/**
 * @typedef {import("../transcript/types").Event} Event
 * @typedef {{logId: string, seq: number}} Cursor
 * @typedef {{send(text: string): void, close(code?: number): void, onopen: any, onmessage: any, onclose: any, readyState: number}} Socket
 * @typedef {{now(): number, after(ms: number, work: () => void): any, cancel(timer: any): void, chance(): number}} Clock
 * @typedef {{
 *   events(events: Event[]): void, live(seq: number): void, subscribed(head: number, logId: string): void,
 *   lost(code: string, message: string, had: Cursor): void, present?(people: {name: string, role: string}[]): void,
 *   state?(changed: Record<string, any>, large: string[]): void
 * }} Reader
 * @typedef {{
 *   state(state: State): void, sessions(all: boolean, changed: any[], removed: string[]): void, hello(hello: any): void,
 *   whole(session: string, seq: number): Promise<Event>, allowed(): Promise<boolean>
 * }} Hooks
 * @typedef {{name: "connecting" | "open" | "waiting" | "shut", reason?: string, retryAt?: number}} State
 */

/** @type {Clock} */
const browserClock = {
  now: () => performance.now(),
  after: (ms, work) => setTimeout(work, ms),
  cancel: (timer) => clearTimeout(timer),
  chance: () => Math.random(),
};

/** What the server did not do, and why. */
export class Refused extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** Milliseconds until the next try: twice as long each time, up to ten seconds, and never quite the same. @param {number} tries @param {number} chance */
export function pause(tries, chance) {
  return Math.min(BACKOFF.first * 2 ** tries, BACKOFF.most) * (0.5 + chance / 2);
}

/** One subscription: where it has got to, and whom it tells. */
class Subscription {
  /** @param {string} session @param {Reader} reader */
  constructor(session, reader) {
    this.session = session;
    this.reader = reader;
    /** Its name on the socket, another one each time it is asked for. */
    this.name = "";
    /** @type {Cursor | null} */
    this.cursor = null;
    /** The gap after this number is the log's own: it was asked for again and came back. */
    this.gap = -1;
    /** What is to be handed on in order, when one of the events has to be fetched. */
    this.order = Promise.resolve();
    this.busy = 0;
  }

  /** Hand something on after all that came before it. @param {() => any} work */
  then(work) {
    if (this.busy === 0) work();
    else this.wait(work);
  }

  /** Hand something on that has to be waited for. @param {() => any} work */
  wait(work) {
    this.busy += 1;
    this.order = this.order.then(work).finally(() => (this.busy -= 1));
  }
}

export class Connection {
  /**
   * @param {() => Socket} open a new socket
   * @param {Hooks} hooks
   * @param {Clock} clock
   */
  constructor(open, hooks, clock = browserClock) {
    this._open = open;
    this.hooks = hooks;
    this.clock = clock;
    /** @type {Map<string, Subscription>} */
    this.subscriptions = new Map();
    /** @type {Map<string, {frame: any, done: (seq: number) => void, refused: (problem: Refused) => void}>} */
    this.commands = new Map();
    /** @type {Socket | null} */
    this.socket = null;
    /** @type {State} */
    this.state = { name: "connecting" };
    this.watching = false;
    this.tries = 0;
    this.names = 0;
    this.heartbeat = HEARTBEAT;
    this.heard = this.said = clock.now();
    /** @type {any} */
    this.timer = null;
  }

  /** Connect now, also when a try was planned for later. */
  connect() {
    this.clock.cancel(this.timer);
    this._drop();
    this._to({ name: "connecting", reason: this.state.reason });
    const socket = (this.socket = this._open());
    this.heard = this.clock.now();
    socket.onmessage = (/** @type {{data: string}} */ message) => socket === this.socket && this._message(message.data);
    socket.onclose = (/** @type {{code: number}} */ close) => socket === this.socket && this._closed(close.code);
    this._listen();
  }

  /** Hear of every session, now and whenever something changes. */
  watch() {
    this.watching = true;
    this._say({ type: "watch" });
  }

  /**
   * Everything of a session after a cursor, then everything as it is written.
   * @param {string} session @param {Reader} reader @param {Cursor | null} after
   */
  subscribe(session, reader, after = null) {
    const subscription = new Subscription(session, reader);
    subscription.cursor = after;
    this._subscribe(subscription);
    return subscription;
  }

  /** @param {Subscription} subscription */
  unsubscribe(subscription) {
    if (this.subscriptions.delete(subscription.name)) this._say({ type: "unsubscribe", id: subscription.name });
  }

  /**
   * Send a command, which is an event; resolves to its seq. It is sent again, with the same id, until it is answered.
   * @param {string} session @param {string} type @param {object} payload
   * @returns {Promise<number>}
   */
  command(session, type, payload) {
    const commandId = crypto.randomUUID();
    const frame = { type: "command", session, event: { type, commandId, payload } };
    return new Promise((done, refused) => {
      this.commands.set(commandId, { frame, done, refused });
      this._say(frame);
    });
  }

  /** Whether everything that was asked for has been answered. */
  get settled() {
    return this.commands.size === 0;
  }

  // ---- what is heard

  /** @param {string} text */
  _message(text) {
    this.heard = this.clock.now();
    const message = JSON.parse(text);
    switch (message.type) {
      case "hello":
        return this._hello(message);
      case "ping":
        return this._say({ type: "pong" });
      case "sessions":
        this._reached();
        return this.hooks.sessions(message.all === true, message.changed ?? [], message.removed ?? []);
      case "subscribed":
        return this._subscribed(message);
      case "events":
        return this._events(message);
      case "live":
        return this._live(message);
      case "state":
        return this._state(message);
      case "presence":
        return this.subscriptions.get(message.id)?.reader.present?.(message.people);
      case "done":
        return this._answered(message.commandId)?.done(message.seq);
      case "refused":
        return this._answered(message.commandId)?.refused(new Refused(message.code, message.message));
      case "error":
        return this._error(message);
    }
  }

  /** @param {any} hello */
  _hello(hello) {
    if (hello.protocol !== PROTOCOL) {
      this._drop();
      return this._to({ name: "shut", reason: "This page is older than its server. Load it again." });
    }
    this.tries = 0;
    this.heartbeat = hello.heartbeatMs ?? HEARTBEAT;
    this._to({ name: "open" });
    this.hooks.hello(hello);
    if (this.watching) this._say({ type: "watch" });
    for (const subscription of [...this.subscriptions.values()]) this._subscribe(subscription);
    for (const { frame } of this.commands.values()) this._say(frame);
  }

  /** @param {any} message */
  _subscribed(message) {
    const subscription = this.subscriptions.get(message.id);
    this._reached();
    subscription?.then(() => {
      subscription.cursor ??= { logId: message.logId, seq: 0 };
      subscription.reader.subscribed(message.head, message.logId);
    });
  }

  /** @param {any} message */
  _live(message) {
    const subscription = this.subscriptions.get(message.id);
    subscription?.then(() => this._is(subscription) && subscription.reader.live(message.seq));
  }

  /** @param {any} message */
  _state(message) {
    const subscription = this.subscriptions.get(message.id);
    subscription?.then(() => this._is(subscription) && subscription.reader.state?.(message.changed, message.large ?? []));
  }

  /** @param {any} message */
  _events(message) {
    const subscription = this.subscriptions.get(message.id);
    if (subscription === undefined) return;
    /** @type {Event[]} */
    const events = message.events;
    if (!events.some((event) => event.large)) {
      return subscription.then(() => this._take(subscription, message.id, events, message.to));
    }
    subscription.wait(async () => {
      const whole = await Promise.all(events.map((event) => this._whole(subscription.session, event)));
      this._take(subscription, message.id, whole, message.to);
    });
  }

  /** The event itself, if the frame had no room for it. @param {string} session @param {Event} event */
  _whole(session, event) {
    return event.large ? this.hooks.whole(session, event.seq).catch(() => event) : event;
  }

  /** @param {Subscription} subscription @param {string} name @param {Event[]} events @param {number} to */
  _take(subscription, name, events, to) {
    const cursor = subscription.cursor;
    if (cursor === null || subscription.name !== name || !this._is(subscription)) return;
    /** @type {Event[]} */
    const fresh = [];
    for (const event of events) {
      if (event.seq !== 0 && event.seq <= cursor.seq) continue; // seq 0 is a damaged line of the log, shown in its place
      const damaged = fresh.at(-1)?.seq === 0;
      if (event.seq > cursor.seq + 1 && !damaged && subscription.gap !== cursor.seq) {
        subscription.gap = cursor.seq;
        if (fresh.length) subscription.reader.events(fresh);
        this.unsubscribe(subscription);
        return this._subscribe(subscription);
      }
      cursor.seq = Math.max(cursor.seq, event.seq);
      fresh.push(event);
    }
    cursor.seq = Math.max(cursor.seq, to ?? 0);
    if (fresh.length) subscription.reader.events(fresh);
  }

  /** Whether somebody still listens. @param {Subscription} subscription */
  _is(subscription) {
    return this.subscriptions.get(subscription.name) === subscription;
  }

  /** @param {string} commandId */
  _answered(commandId) {
    const command = this.commands.get(commandId);
    this.commands.delete(commandId);
    return command;
  }

  /** @param {any} message */
  _error(message) {
    const subscription = this.subscriptions.get(message.id);
    if (message.code === "away") return this._away(message.message, subscription);
    if (subscription === undefined) return;
    this.subscriptions.delete(message.id);
    subscription.reader.lost(message.code, message.message, subscription.cursor ?? { logId: "", seq: 0 });
  }

  /** The server is there, and what it reads from is not. @param {string} why @param {Subscription | undefined} subscription */
  _away(why, subscription) {
    this._to({ name: "open", reason: `The server does not reach its store: ${why}.` });
    const name = subscription?.name;
    if (subscription) this.clock.after(AWAY, () => subscription.name === name && this._is(subscription) && this._subscribe(subscription));
  }

  _reached() {
    if (this.state.name === "open" && this.state.reason) this._to({ name: "open" });
  }

  // ---- what is said

  /** @param {Subscription} subscription */
  _subscribe(subscription) {
    this.subscriptions.delete(subscription.name);
    subscription.name = `s${++this.names}`;
    this.subscriptions.set(subscription.name, subscription);
    const { name: id, session, cursor, reader } = subscription;
    this._say({ type: "subscribe", id, session, ...(cursor && { after: { ...cursor } }), ...(reader.present && { presence: true }), ...(reader.state && { state: true }) });
  }

  /** @param {object} message */
  _say(message) {
    if (this.state.name !== "open" || this.socket?.readyState !== 1) return; // it is said after the next hello
    this.socket.send(JSON.stringify(message));
    this.said = this.clock.now();
  }

  // ---- life

  /** Ping after some silence of ours, and take the connection for dead after more of theirs. */
  _listen() {
    this.clock.cancel(this.timer);
    const now = this.clock.now();
    const silence = this.heartbeat + GRACE;
    if (now - this.heard >= silence) return this._closed(0);
    if (now - this.said >= this.heartbeat) this._say({ type: "ping" });
    this.timer = this.clock.after(1000, () => this._listen());
  }

  /** Look at once whether anybody is there: a sleeping tab has missed its timers. */
  check() {
    if (this.state.name === "waiting") this.connect();
    else if (this.state.name !== "shut") this._listen();
  }

  /** @param {number} code */
  _closed(code) {
    this._drop();
    const reason = code === 1012 ? "The server has stopped." : code === 0 ? "The server is silent." : "The connection is gone.";
    const ms = pause(this.tries++, this.clock.chance());
    this._to({ name: "waiting", reason, retryAt: this.clock.now() + ms });
    this.timer = this.clock.after(ms, () => this._again());
  }

  async _again() {
    if (this.tries > 1 && !(await this.hooks.allowed())) {
      return this._to({ name: "shut", reason: "The server does not know this link any more. Open the one it printed when it started." });
    }
    if (this.state.name === "waiting") this.connect();
  }

  _drop() {
    this.clock.cancel(this.timer);
    const socket = this.socket;
    this.socket = null;
    if (socket !== null) socket.close();
  }

  /** @param {State} state */
  _to(state) {
    this.state = state;
    this.hooks.state(state);
  }
}
