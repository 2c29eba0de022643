// @ts-check
/** The page: it puts the parts together and carries words between them. What each part does is said in its own file. */

import { h } from "../transcript/dom.js";
import { href, link, place } from "./address.js";
import { agents } from "./agents.js";
import * as api from "./api.js";
import { Asking } from "./request_stack.js";
import { Banner } from "./offline_banner.js";
import { Composer } from "./composer.js";
import { Connection, Refused } from "./connection.js";
import { confirmed } from "./dialog.js";
import { exportDialog } from "./export_dialog.js";
import { filterDialog } from "./type_filter.js";
import { FindBar } from "./find_bar.js";
import { Header } from "./header.js";
import { help, welcome } from "./help.js";
import { isTyping, Keys } from "./keys.js";
import { failed, notices, tell } from "./toasts.js";
import { palette } from "./palette.js";
import { waitingMessages } from "./queue.js";
import { isOver, origin, Sessions, standingOf, title } from "./session_list.js";
import { Side } from "./details_panel.js";
import { Sidebar } from "./sidebar.js";
import { newSession } from "./new_session.js";
import { showInTab } from "./tab_title.js";
import { turnList } from "./turn_menu.js";
import { View } from "./session_view.js";
import { standing } from "./labels.js";
import { placeWords, workWords } from "../transcript/format.js";

const OBSERVER = "You are looking on: this link may read, and nothing else.";
const RECORD = "This is a record: nobody waits for an answer any more.";
const TWICE = 3_000;

export class Page {
  /** @param {HTMLElement} body */
  constructor(body) {
    this.body = body;
    this.sessions = new Sessions();
    this.role = "participant";
    /** @type {import("./agents.js").Agent[]} */
    this.agents = [];
    /** @type {View | null} */
    this.view = null;
    /** @type {Set<string> | null} */
    this.types = null;
    this.interruptAsked = 0;
    /** The request for the agents; null if none was made, or it failed. @type {Promise<void> | null} */
    this.agentsAsked = null;
    this.connection = new Connection(() => new WebSocket(socketAddress()), {
      state: (state) => this._connected(state),
      sessions: (all, changed, removed) => this.sessions.tell(all, changed, removed),
      hello: (hello) => this._hello(hello),
      whole: (session, seq) => api.get(`${api.at(session)}/events/${seq}`),
      allowed: api.allowed,
    });
    this.sidebar = new Sidebar(this.sessions, { create: () => this.create(), help: () => help(this.keys.keys), close: () => this.sheet(false) });
    this.header = new Header(this._headerHooks());
    this.banner = new Banner(() => this.connection.connect());
    this.asking = new Asking((event) => this._about(event), {
      decide: (event, decision) => this._decide(event, decision),
      answer: (event, values, action) => this._answered(this._do("answer", { requestId: event.payload.requestId, values, action })),
    });
    this.composer = new Composer(this._composerHooks());
    this.findBar = new FindBar(() => this.view);
    this.side = new Side(() => this.view?.inspector.update());
    this.keys = new Keys(this._keys());
    this.room = h("div", { class: "room" });
    this.main = h("main", { class: "main" }, this.banner.element, this.header.element, this.findBar.element, this.room, this.asking.element, this.composer.element);
    this.shade = h("div", { class: "shade", onclick: () => this.sheet(false) });
  }

  start() {
    this.body.replaceChildren(h("a", { class: "skip", href: "#", onclick: (/** @type {Event} */ event) => this._skip(event) }, "Skip to the message"), h("div", { class: "app" }, this.sidebar.element, this.main, this.side.element, this.shade), notices);
    this.sessions.subscribe(() => this._listed());
    addEventListener("hashchange", () => this._go());
    addEventListener("keydown", (event) => this._key(event));
    addEventListener("online", () => this.connection.check());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.connection.check());
    addEventListener("beforeunload", (event) => {
      if (!this.connection.settled && this.connection.state.name !== "open") event.preventDefault();
    });
    this.connection.watch();
    this.connection.connect();
    void this._needAgents();
    this._go();
  }

  // ---- where we are

  _go() {
    const { session, seq } = place(location.hash);
    if (session !== this.view?.session) this._show(session);
    if (seq !== null) this.view?.go(seq);
    this.sidebar.select(session);
  }

  /** @param {string | null} session */
  _show(session) {
    this.view?.close();
    this.findBar.close();
    this.types = null;
    this.header.present([]);
    this.view = session === null ? null : new View(session, this.connection, this.side.inspector, this._viewHooks());
    this.main.classList.toggle("empty", this.view === null);
    this.room.replaceChildren(this.view ? this.view.element : this._welcome());
    if (this.view === null && matchMedia("(max-width: 720px)").matches) this.sheet(true);
    this._changed();
  }

  _welcome() {
    return welcome(this.sessions, () => this.create());
  }

  _listed() {
    if (this.view) this._changed();
    else this.room.replaceChildren(this._welcome());
  }

  _viewHooks() {
    return {
      present: (/** @type {{name: string, role: string}[]} */ people) => this.header.present(people),
      changed: () => this._changed(),
      gone: (/** @type {string} */ why) => {
        tell(why, "bad");
        location.hash = "";
      },
      open: (/** @type {string} */ session) => (location.hash = href(session)),
      select: (/** @type {number} */ seq) => this._select(seq),
    };
  }

  /** The parent of a session, at the place that it continues from, and the sessions that come from it. @param {import("./session_list.js").Info | undefined} info */
  _family(info) {
    const id = info?.parentSessionId;
    const parent = id ? this.sessions.get(id) : undefined;
    const words = info ? origin(info, parent ? title(parent) : null) : "";
    return {
      parent: words ? { words, href: parent ? href(parent.id, info?.parentSeq ?? null) : null } : null,
      children: info ? this.sessions.children(info.id).map((child) => ({ title: title(child), href: href(child.id) })) : [],
    };
  }

  /** @param {number} seq */
  _select(seq) {
    if (this.view) history.replaceState(null, "", href(this.view.session, seq));
  }

  // ---- what is shown

  _changed() {
    const view = this.view;
    const info = view ? this.sessions.get(view.session) : undefined;
    if (view === null) {
      showInTab(null, "idle");
      this.asking.show([]);
      return;
    }
    const state = view.state;
    const pending = view.isLive ? view.pending : [];
    view.transcript.end(info !== undefined && isOver(info) && (info.head ?? 0) >= view.lastSeq); // else the list does not know it yet
    const running = view.transcript.running;
    const ended = state?.running && !running ? "unfinished" : (state?.turnStatus ?? (info ? standingOf(info) ?? null : null));
    const now = pending.length ? "waiting" : running ? "running" : ended;
    const known = state ?? info;
    const name = known ? title(known) : "";
    const agent = this._agent();
    this.header.show({
      title: name,
      agent: view.driven ?? state?.agentId ?? info?.agent ?? null,
      place: placeWords(state?.cwd ?? null, state?.workspace ?? null, state?.lastCommit ?? null),
      ...this._family(info),
      model: state?.model ?? null,
      mode: state?.mode ?? state?.permissionMode ?? null,
      models: state?.models ?? null,
      modes: state?.modes ?? null,
      standing: now,
      doing: workWords(running),
      context: state?.context ?? null,
      costUsd: known?.costUsd ?? null,
      readOnly: this.role === "observer",
      canModel: view.driven !== null && agent?.can.model !== false,
      canMode: view.driven !== null && agent?.can.mode !== false,
    });
    const before = this.asking.card;
    this.asking.show(pending);
    if (this.asking.card !== before) this._askedOrAnswered();
    this.composer.show({
      session: view.session,
      agent: agent?.title ?? state?.agentId ?? "the agent",
      can: agent?.can,
      running: running !== null && view.driven !== null,
      isKnown: state !== null,
      commands: state?.commands ?? null,
      queue: waitingMessages(state),
      readOnly: this.role === "observer" ? OBSERVER : null,
      record: state !== null && view.driven === null && view.isLive,
      agents: this.agents,
      current: view.driven,
      offline: this.connection.state.name !== "open",
    });
    this.side.show(state?.plan ?? [], state?.teams ?? {});
    showInTab(name, standing(now));
  }

  /** The agent of this session, if this server can drive it. */
  _agent() {
    return this.agents.find((agent) => agent.name === this.view?.driven);
  }

  /** The keyboard goes to a new card, unless somebody is writing; and back to the message. */
  _askedOrAnswered() {
    const focus = document.activeElement;
    const free = focus === document.body || focus === null || !focus.isConnected || (focus === this.composer.input && this.composer.input.value === "");
    if (!free) return;
    if (this.asking.card) this.asking.focus();
    else if (matchMedia("(hover: hover)").matches) this.composer.focus();
  }

  /** @param {any} event */
  _about(event) {
    const agent = this._agent();
    const view = this.view;
    return {
      agent: agent?.title ?? view?.state?.agentId ?? "The agent",
      canEdit: agent?.can.edits === true,
      disabled: this.role === "observer" ? OBSERVER : view?.driven === null ? RECORD : null,
      place: "",
      changes: view?.changes.get(event.payload.toolCallId) ?? [],
    };
  }

  /** @param {import("./connection.js").State} state */
  _connected(state) {
    this.banner?.show(state, this.connection?.commands.size ?? 0);
    this.body.dataset.connection = state.name;
    if (state.name === "open") void this._needAgents();
  }

  /** @param {any} hello */
  _hello(hello) {
    this.role = hello.role;
    this.sidebar.create.disabled = hello.role === "observer";
    if (this.view) this._changed();
  }

  /** Load the list of agents, unless it is here or on its way. A failure is told. */
  _needAgents() {
    this.agentsAsked ??= this._loadAgents();
    return this.agentsAsked;
  }

  async _loadAgents() {
    const found = await agents().catch(failed("The list of agents"));
    if (found) this.agents = found;
    else this.agentsAsked = null;
    if (this.view) this._changed();
  }

  // ---- what is done

  /** @param {string} type @param {object} payload */
  _do(type, payload) {
    if (this.view === null) return Promise.reject(new Error("No session is open."));
    const done = this.view.command(type, payload);
    if (this.connection.state.name !== "open") this._connected(this.connection.state);
    return done;
  }

  /** @param {any} event @param {import("./permission_card.js").Decision} decision */
  _decide(event, decision) {
    const { requestId, inputHash } = event.payload;
    return this._answered(this._do("permission_response", { requestId, inputHash, ...decision }));
  }

  /** An answer that came too late is told, also when its card is gone. @param {Promise<number>} answer */
  async _answered(answer) {
    try {
      await answer;
    } catch (problem) {
      failed("Your answer was not taken")(problem);
      throw problem;
    }
  }

  /** Send a message. An agent that cannot resume its own session can have the conversation in a new one. @param {{text: string}} message */
  async _say(message) {
    try {
      await this._send(message);
    } catch (problem) {
      if (problem instanceof Refused && problem.code === "resume_failed" && (await this._handedOff())) {
        await this._send(message);
        return;
      }
      failed("The message was not sent")(problem);
      throw problem;
    }
  }

  /** Send a message, which is shown from now on. @param {{text: string}} message */
  _send(message) {
    const sent = this.view?.send(message);
    if (this.connection.state.name !== "open") this._connected(this.connection.state);
    return sent;
  }

  /** Whether the conversation was handed off to a new session of the same agent. */
  async _handedOff() {
    const agent = this._agent();
    if (agent === undefined) return false;
    const sure = await confirmed({
      title: `Continue in a new session of ${agent.title}?`,
      text: `${agent.title} cannot resume its own session. The log has the whole conversation: a new session can continue from it.`,
      yes: "Continue",
      no: "Cancel",
      harmless: true,
    });
    if (sure) await this._do("agent_switch", { toAgentId: agent.name });
    return sure;
  }

  _composerHooks() {
    return {
      say: async (/** @type {string} */ text, /** @type {any[]} */ blocks, /** @type {boolean} */ steer) => {
        const content = blocks.length ? { content: [...(text ? [{ type: "text", text }] : []), ...blocks] } : {};
        await this._say({ text, ...content, ...(steer && { steer }) });
      },
      interrupt: () => this.interrupt(),
      edit: (/** @type {string} */ itemId, /** @type {string} */ text) => void this._do("queue_update", { action: "edited", itemId, text }).catch(failed("It was not changed")),
      cancel: (/** @type {string} */ itemId) => void this._do("queue_update", { action: "cancelled", itemId }).catch(failed("It was not taken back")),
      change: (/** @type {string} */ agent) => void this._do("agent_switch", { toAgentId: agent }).catch(failed("The agent was not changed")),
      needAgents: () => void this._needAgents(),
    };
  }

  _headerHooks() {
    return {
      rename: (/** @type {string} */ wanted) => void this._do("session_lifecycle", { subtype: "renamed", title: wanted }).catch(failed("It was not renamed")),
      model: (/** @type {string} */ model) => void this._do("configuration_change", { subtype: "set_model", model }).catch(failed("The model was not changed")),
      mode: (/** @type {string} */ mode) => void this._do("configuration_change", this.view?.state?.modes?.length ? { subtype: "set_mode", modeId: mode } : { subtype: "set_permission_mode", permissionMode: mode }).catch(failed("The mode was not changed")),
      menu: () => this._menu(),
      list: () => this.sheet(true),
      turns: () => this._turns(),
      find: () => this.findBar.open(),
      side: () => this.side.toggle(),
    };
  }

  /** @returns {import("./menu.js").Item[]} */
  _menu() {
    const view = this.view;
    if (view === null) return [];
    const seq = place(location.hash).seq;
    const archived = Boolean(this.sessions.get(view.session)?.archived);
    const fixed = this.role === "observer";
    return [
      { label: "Copy link", run: () => void copy(link(view.session, seq)) },
      { label: "Export as …", run: () => void exportDialog(view.session) },
      { label: "Jump to a turn …", hint: "n", run: () => this._turns() },
      { label: view.transcript?.procedureShown ? "Show the conversation alone" : "Show the procedure, too", hint: "a", run: () => view.transcript?.showProcedure(!view.transcript.procedureShown) },
      { label: "Show types of events …", hint: "f", run: () => this._filter() },
      { label: seq === null ? "Fork here" : `Fork after §${seq}`, rule: true, disabled: fixed, run: () => void this._fork(seq) },
      { label: archived ? "Take out of the archive" : "Archive", disabled: fixed, run: () => void this._do("session_lifecycle", { subtype: archived ? "unarchived" : "archived" }).catch(failed("It was not archived")) },
      { label: "End the agent", disabled: fixed || view.driven === null, run: () => void this._do("session_lifecycle", { subtype: "closed" }).catch(failed("It was not ended")) },
      { label: "Delete …", danger: true, rule: true, disabled: fixed, run: () => void this._delete() },
    ];
  }

  /** @param {number | null} seq */
  async _fork(seq) {
    const view = this.view;
    if (view === null) return;
    const made = await api.send("POST", `${api.at(view.session)}/fork`, seq === null ? {} : { seq }).catch(failed("It was not forked"));
    if (made) location.hash = href(made.id);
  }

  async _delete() {
    const view = this.view;
    if (view === null) return;
    const name = title(this.sessions.get(view.session) ?? { id: view.session });
    const sure = await confirmed({ title: "Delete this session?", text: `“${name}” and everything that belongs to it is removed from the disk. Nothing brings it back.`, yes: "Delete" });
    if (!sure) return;
    const gone = await api.send("DELETE", api.at(view.session)).catch(failed("It was not deleted"));
    if (gone) location.hash = "";
  }

  async create() {
    if (this.role === "observer") return tell(OBSERVER, "bad");
    this.sheet(false);
    await this._needAgents();
    newSession(this.agents, (session, agent, text) => {
      history.pushState(null, "", href(session));
      this._go();
      if (text) this.view?.starts(text, agent);
      this.composer.focus();
    });
  }

  interrupt() {
    void this._do("interrupt", { reason: "user_cancel" }).catch(failed("It was not interrupted"));
  }

  /** Stop the agent, if it is asked for twice. */
  _interruptTwice() {
    if (!this.view?.transcript.running || this.view.driven === null || this.role === "observer") return;
    const now = performance.now();
    if (now - this.interruptAsked < TWICE) {
      this.interruptAsked = 0;
      return this.interrupt();
    }
    this.interruptAsked = now;
    tell("Esc again stops the agent.");
  }

  _turns() {
    const view = this.view;
    if (view) turnList([...view.transcript.turns.values()], (turn) => view.go(turn.seq));
  }

  _filter() {
    const view = this.view;
    if (view === null) return;
    filterDialog(view.transcript.types(), this.types, (types) => {
      this.types = types;
      view.transcript.filter(types);
    });
  }

  /** The list as a sheet, where there is no room for it. @param {boolean} open */
  sheet(open) {
    this.body.classList.toggle("sheet-open", open);
  }

  /** @param {Event} event */
  _skip(event) {
    event.preventDefault();
    this.composer.focus();
  }

  // ---- keys

  _keys() {
    const at = () => this.view?.transcript;
    return [
      { keys: "j", what: "the next turn", run: () => this.view?.turn(1) },
      { keys: "k", what: "the turn before", run: () => this.view?.turn(-1) },
      { keys: "g g", what: "the beginning", run: () => this.view?.toBeginning() },
      { keys: "G", what: "the end", run: () => this.view?.toEnd() },
      { keys: "n", what: "jump to a turn", run: () => this._turns() },
      { keys: "/, Ctrl-f", what: "find in this session", run: () => this.view && this.findBar.open() },
      { keys: "f", what: "show only some types of events", run: () => this._filter() },
      { keys: "i", what: "inspector: every event, and what the wire said", run: () => this.side.toggle() },
      { keys: "a", what: "the procedure too, or the conversation alone", run: () => at()?.showProcedure(!at()?.procedureShown) },
      { keys: "t", what: "thinking, open or folded", run: () => at()?.showThinking(!at()?.thinkingShown) },
      { keys: "o", what: "all tools, open or folded", run: () => (at()?.toolsOpen ? at()?.closeAll() : at()?.openAll()) },
      { keys: "m", what: "write a message", run: () => this.composer.focus() },
      { keys: "c", what: "a new session", run: () => this.create() },
      { keys: "Ctrl-k", what: "go to another session", run: () => palette(this.sessions) },
      { keys: "Escape", what: "no to a question; twice: stop the agent", run: () => this._escape() },
      { keys: "?", what: "this help", run: () => help(this.keys.keys) },
    ];
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (!isTyping(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey && /^[1-9]$/.test(event.key) && this.asking.key(event.key)) return event.preventDefault();
    this.keys.take(event);
  }

  _escape() {
    if (this.body.classList.contains("sheet-open")) return this.sheet(false);
    const writing = document.activeElement === this.composer.input && this.composer.input.value !== "";
    if (this.asking.card && !writing && this.asking.key("Escape")) return;
    this._interruptTwice();
  }
}

function socketAddress() {
  const address = new URL("ws", location.href.split("#")[0]);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  address.search = "";
  return address;
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    tell("Copied.");
  } catch {
    tell(text);
  }
}
