/** The state of a session. The rules are those of src/hansard/events/state.py, and a test compares the two at many events of each recording. */

import { isKnown } from "./payload_shapes.js";
import { isMain, isReplaying, Tally } from "./usage_totals.js";
import { asObject, duration } from "./format.js";
import { EARLIEST_CALENDAR_MS, MAX_ENTRIES, PREVIEW_CHARACTERS, TITLE_CHARACTERS } from "./rules.js";

/** @typedef {import("./types").Event} Event */

/** So many characters of a text, as Python counts them. @param {string} text @param {number} size */
function cut(text, size) {
  return text.length <= size ? text : [...text.slice(0, 2 * size)].slice(0, size).join("");
}

/** Put something in; the oldest goes when there are too many. @template T @param {Map<string, T>} kept @param {string} name @param {T} value */
function keep(kept, name, value) {
  kept.set(name, value);
  if (kept.size > MAX_ENTRIES) kept.delete(/** @type {string} */ (kept.keys().next().value));
  return value;
}

/** @template T @param {Map<string, T>} kept @returns {Record<string, T>} */
function plain(kept) {
  return Object.fromEntries(kept);
}

/** @typedef {{status: string | null, memberId: string | null, text: string | null, detail: any}} TeamEntry */
/** @typedef {{status: string | null, members: Map<string, TeamEntry>, tasks: Map<string, TeamEntry>, messages: number}} Team */

/** @param {TeamEntry} entry @param {any} news */
function tell(entry, news) {
  entry.status = news.status ?? entry.status;
  entry.memberId = news.memberId ?? entry.memberId;
  entry.text = news.text ?? entry.text;
  entry.detail = news.detail ?? entry.detail;
}

/** @returns {TeamEntry} */
function nobody() {
  return { status: null, memberId: null, text: null, detail: null };
}

/** Commands that are only named, with what was told about them before. @param {any[]} named @param {any[]} known */
function described(named, known) {
  const about = new Map(known.filter((command) => typeof asObject(command).name === "string").map((command) => [command.name, command]));
  return named.map((command) => (typeof command === "string" ? (about.get(command) ?? command) : command));
}

export class State {
  constructor() {
    /** @type {string | null} */
    this.sessionId = null;
    this.seq = 0;
    /** @type {number | null} */
    this.created = null;
    /** @type {number | null} */
    this.updated = null;
    /** @type {string | null} */
    this.chosenTitle = null;
    /** @type {string | null} */
    this.firstMessage = null;
    /** @type {string | null} */
    this.firstAnswer = null;
    this.closed = false;
    /** Whether the process is gone, and nobody can be at work. */
    this.gone = false;
    /** The ids of the main agent's open turns; "" has none. @type {Set<string>} */
    this.turnsOpen = new Set();
    /** @type {string | null} */
    this.turnStatus = null;
    /** @type {string | null} */
    this.activity = null;
    /** @type {any} */
    this.activityDetail = null;
    /** @type {any} */
    this.init = null;
    /** @type {string | null} */
    this.agentId = null;
    /** @type {string | null} */
    this.providerSessionId = null;
    /** @type {string | null} */
    this.model = null;
    /** @type {string | null} */
    this.permissionMode = null;
    /** @type {string | null} */
    this.mode = null;
    /** @type {any[] | null} */
    this.commands = null;
    /** @type {any} */
    this.options = null;
    /** @type {Map<string, string>} */
    this.mcpServers = new Map();
    this.turns = 0;
    this.messages = 0;
    /** @type {any} */
    this.lastMessage = null;
    /** @type {string | null} */
    this.lastResponse = null;
    /** @type {Map<string, any>} */
    this.calls = new Map();
    /** @type {Map<string, Event>} */
    this.asked = new Map();
    /** Hansard's own queue: these messages are sent when their turn comes. @type {Map<string, string | null>} */
    this.queue = new Map();
    /** The agent's own queue. @type {Map<string, string | null>} */
    this.agentQueue = new Map();
    /** @type {any[]} */
    this.plan = [];
    /** @type {Map<string, Team>} */
    this.teams = new Map();
    this.tally = new Tally();
    /** @type {any} */
    this.rateLimit = null;
    /** @type {any} */
    this.error = null;
    this.replaying = false;
    /** Whether the log has a turn of the main agent. */
    this.hasTurn = false;
    /** What the newest event shows somebody doing. @type {string | null} */
    this.doing = null;
  }

  /** Take one event in. @param {Event} event */
  apply(event) {
    this.place(event);
    if (!isKnown(event)) return;
    this.tally.apply(event);
    if (event.type === "session_lifecycle") this.life(event);
    this.asks(event);
    this.work(event);
    this.settings(event);
    if (isMain(event)) {
      this.titles(event);
      this.openTurns(event);
      if (!this.replaying) {
        this.turn(event);
        this.speech(event);
      }
    }
  }

  /** @returns {"waiting" | "running" | "closed" | "idle"} */
  get phase() {
    if (this.asked.size > 0) return "waiting";
    return this.turnsOpen.size > 0 ? "running" : this.closed ? "closed" : "idle";
  }

  /** What somebody is doing now, in a word; null if nobody is. It is said by the log alone, so it cannot stick. */
  get running() {
    if (this.gone || this.closed || (this.turnsOpen.size === 0 && this.asked.size === 0)) return null;
    if (this.asked.size > 0) return { word: "waiting for your answer" };
    const calls = [...this.calls.values()];
    const call = calls[calls.length - 1];
    if (this.activity !== null && /retr/i.test(this.activity) && this.doing === "retrying") {
      const wait = asObject(this.activityDetail).retryDelayMs ?? asObject(this.activityDetail).retryInMs;
      return { word: typeof wait === "number" ? `retrying in ${duration(wait)}` : "retrying" };
    }
    if (call !== undefined) return { word: `running ${call.toolName}` };
    return { word: this.doing ?? "working" };
  }

  /** The same as Python's, field by field. */
  snapshot() {
    const init = this.init ?? {};
    const usage = this.tally.session();
    const asked = [...this.asked.values()];
    return {
      sessionId: this.sessionId,
      seq: this.seq,
      created: this.created,
      updated: this.updated,
      title: this.chosenTitle || this.firstMessage || this.firstAnswer,
      phase: this.phase,
      turnId: [...this.turnsOpen].pop() || null,
      turnStatus: this.turnStatus,
      activity: this.activity,
      agentId: init.agentId || null,
      agentVersion: init.agentVersion ?? null,
      providerSessionId: this.providerSessionId,
      model: this.model || this.tally.model,
      permissionMode: this.permissionMode,
      mode: this.mode,
      cwd: init.cwd ?? null,
      commands: this.commands,
      tools: init.tools ?? null,
      mcpServers: plain(this.mcpServers),
      turns: this.turns,
      messages: this.messages,
      lastMessage: this.lastMessage,
      calls: [...this.calls.values()],
      pendingPermissions: asked.filter((event) => event.type === "permission_request").map((event) => event.payload),
      pendingQuestions: asked.filter((event) => event.type === "question").map((event) => event.payload),
      queue: { ...plain(this.queue), ...plain(this.agentQueue) },
      plan: this.plan,
      teams: Object.fromEntries(
        [...this.teams].map(([name, team]) => [name, { ...team, members: plain(team.members), tasks: plain(team.tasks) }]),
      ),
      usage,
      costUsd: usage.costUsd,
      context: this.tally.context(),
      rateLimit: this.rateLimit,
      error: this.error,
    };
  }

  /** @param {Event} event */
  place(event) {
    this.seq = Math.max(this.seq, event.seq);
    this.sessionId = this.sessionId || event.sessionId || null;
    const at = event.timestamp;
    if (typeof at === "number" && at >= EARLIEST_CALENDAR_MS) {
      this.created ??= at;
      if (event.type !== "session_lifecycle") this.updated = at;
    }
  }

  /** @param {Event} event */
  life(event) {
    const life = event.payload;
    this.replaying = isReplaying(event, this.replaying, this.hasTurn);
    if (life.subtype === "created" && event.seq === 1) this.created = event.timestamp ?? null;
    const { title } = life.subtype === "checkpoint" && event.source === undefined ? asObject(life.detail) : life;
    const placeholder = life.subtype === "agent_named" || (life.subtype === "created" && event.source !== undefined);
    if (typeof title === "string" && !placeholder) this.chosenTitle = cut(title, TITLE_CHARACTERS) || this.chosenTitle;
    if (life.subtype === "launched" && event.source === undefined) {
      if (asObject(life.detail).run === 0) this.providerSessionId = null;
    } else if (isMain(event)) this.providerSessionId = life.providerSessionId ?? this.providerSessionId;
    if (life.subtype === "closed") this.closed = true;
  }

  /** @param {Event} event */
  asks(event) {
    const { requestId } = event.payload;
    if (event.type === "permission_request" || event.type === "question") keep(this.asked, requestId, event);
    else if (event.type === "permission_response" || event.type === "permission_cancelled" || event.type === "answer") this.asked.delete(requestId);
  }

  /** @param {Event} event */
  work(event) {
    const { payload } = event;
    if (event.type === "tool_call") {
      keep(this.calls, payload.toolCallId, {
        toolCallId: payload.toolCallId,
        toolName: payload.toolName,
        title: payload.title ?? null,
        parentToolCallId: event.parentToolCallId ?? null,
        turnId: event.turnId ?? null,
      });
    } else if (event.type === "tool_result") this.calls.delete(payload.toolCallId);
    else if (event.type === "process") this.gone = payload.event === "exited" || payload.event === "killed";
    else if (event.type.startsWith("team_")) this.team(event);
    this.doing = doingOf(event) ?? this.doing;
  }

  /** @param {Event} event */
  team(event) {
    const news = event.payload;
    const name = news.teamId || "";
    const team = this.teams.get(name) ?? keep(this.teams, name, { status: null, members: new Map(), tasks: new Map(), messages: 0 });
    if (event.type === "team_message") team.messages += 1;
    else if (event.type === "team_task_update" && typeof news.taskId === "string") {
      tell(team.tasks.get(news.taskId) ?? keep(team.tasks, news.taskId, nobody()), news);
    } else if (event.type === "team_state_change" && typeof news.memberId === "string") {
      tell(team.members.get(news.memberId) ?? keep(team.members, news.memberId, nobody()), news);
    } else team.status = news.status ?? team.status;
  }

  /** @param {Event} event */
  settings(event) {
    const { payload } = event;
    switch (event.type) {
      case "session_init":
        if (isMain(event)) this.introduced(payload);
        break;
      case "agent_switch":
        this.agentId = payload.toAgentId ?? this.agentId;
        break;
      case "configuration_change":
        if (!isMain(event)) break;
        this.model = payload.model || this.model;
        this.permissionMode = payload.permissionMode || this.permissionMode;
        this.mode = payload.modeId || this.mode;
        this.commands = payload.commands ?? this.commands;
        this.options = payload.subtype?.startsWith("config_option") ? (payload.options ?? this.options) : this.options;
        break;
      case "mcp_status":
        keep(this.mcpServers, payload.server, payload.state);
        break;
      case "rate_limit":
        this.rateLimit = payload;
        break;
      case "queue_update": {
        const own = event.source === undefined && typeof payload.itemId === "string";
        const queue = own ? this.queue : this.agentQueue;
        const name = own ? payload.itemId : payload.itemId || payload.text || "";
        if (payload.action === "queued" || (payload.action === "edited" && (!own || queue.has(name)))) keep(queue, name, payload.text ?? null);
        else queue.delete(name);
        break;
      }
      case "plan_update":
        if (isMain(event) && !this.replaying) this.plan = payload.entries;
        break;
      default:
    }
  }

  /** @param {any} init */
  introduced(init) {
    this.init = init;
    this.agentId = init.agentId || this.agentId;
    this.closed = false;
    this.gone = false;
    this.model = init.model || this.model;
    this.permissionMode = init.permissionMode || this.permissionMode;
    this.commands = Array.isArray(init.commands) ? described(init.commands, this.commands ?? []) : this.commands;
    this.providerSessionId = init.providerSessionId || this.providerSessionId;
  }

  /** What is open is open, also in a replay. The end of a turn closes what its own agent left open in it. @param {Event} event */
  openTurns(event) {
    const turn = event.turnId ?? "";
    if (event.type === "turn_start") {
      this.turnsOpen.add(turn);
      if (this.turnsOpen.size > MAX_ENTRIES) this.turnsOpen.delete(/** @type {string} */ (this.turnsOpen.values().next().value));
    } else if (event.type === "turn_end") {
      this.turnsOpen.delete(turn);
      for (const [name, call] of this.calls) if ((call.turnId ?? "") === turn && call.parentToolCallId === null) this.calls.delete(name);
      for (const [name, asked] of this.asked) if ((asked.turnId ?? "") === turn && asked.parentToolCallId === undefined) this.asked.delete(name);
    }
  }

  /** @param {Event} event */
  turn(event) {
    const { payload } = event;
    if (event.type === "turn_start") {
      this.turns += 1;
      this.hasTurn = true;
      this.error = null;
      this.closed = false;
      this.gone = false;
      this.doing = null;
    } else if (event.type === "turn_end") {
      this.hasTurn = true;
      this.turnStatus = payload.status;
      this.error = payload.error || this.error;
    } else if (event.type === "error") this.error = payload;
    else if (event.type === "status_change") {
      this.activity = payload.status;
      this.activityDetail = payload.detail ?? null;
    }
  }

  /** @param {Event} event */
  titles(event) {
    const { payload } = event;
    if (event.type === "user_message" && this.firstMessage === null && (payload.author ?? "human") === "human") this.firstMessage = titleOf(payload.text);
    if (event.type === "assistant_done" && this.firstAnswer === null) this.firstAnswer = titleOf(payload.text);
  }

  /** @param {Event} event */
  speech(event) {
    const { payload } = event;
    if (event.type === "user_message" && payload.author !== "harness") {
      this.said(event, "user", payload.text);
    } else if (event.type === "user_audio") this.said(event, "user", payload.transcription);
    else if (event.type === "assistant_done") {
      const again = event.responseId !== undefined && event.responseId === this.lastResponse;
      this.lastResponse = event.responseId ?? null;
      this.said(event, "assistant", payload.text, again ? 0 : 1);
    }
  }

  /** @param {Event} event @param {"user" | "assistant"} role @param {string} text @param {number} more */
  said(event, role, text, more = 1) {
    this.messages += more;
    const shown = cut(text, PREVIEW_CHARACTERS);
    const at = event.timestamp;
    this.lastMessage = { role, text: shown, cut: shown.length < text.length, timestamp: typeof at === "number" && at >= EARLIEST_CALENDAR_MS ? at : null };
  }
}

/** Without the white space around it, as Python knows white space. @param {string} text */
function trimmed(text) {
  return text.replace(/^(?:[^\S\ufeff]|[\u001c-\u001f\u0085])+|(?:[^\S\ufeff]|[\u001c-\u001f\u0085])+$/g, "");
}

/** The title that a message gives to a session; null if it has no text. @param {string} text */
function titleOf(text) {
  return cut(trimmed(text), TITLE_CHARACTERS) || null;
}

/** What an event shows somebody doing; null if it shows nothing. @param {Event} event */
function doingOf(event) {
  switch (event.type) {
    case "assistant_chunk":
      return "writing";
    case "thinking_chunk":
      return "thinking";
    case "tool_input_chunk":
      return event.payload.toolName ? `preparing ${event.payload.toolName}` : "preparing a call";
    case "assistant_done":
    case "thinking_done":
    case "tool_result":
      return "working";
    case "status_change":
      return /retr/i.test(event.payload.status) ? "retrying" : event.payload.status === "compacting" ? "compacting" : null;
    default:
      return null;
  }
}
