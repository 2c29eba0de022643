/**
 * The fold from events to what is drawn: turns, in them what was said, answers and notices, in answers text, thinking and calls.
 *
 * It knows nothing of elements. Live and replay feed it the same events one by one, so it cannot tell them apart.
 */

import { noticeOf, noticeOfChange, noticeOfEnd, noticeOfInit, noticeOfPermission, NOTICED, unknown } from "./procedure.js";
import { isKnown } from "./payload_shapes.js";
import { toolInput } from "./tool_inputs.js";
import { asText, capital, textOf } from "./format.js";

/** @typedef {import("./types").Event} Event @typedef {import("./types").Turn} Turn @typedef {import("./types").Unit} Unit */
/** @typedef {import("./types").Item} Item @typedef {import("./types").ToolItem} ToolItem @typedef {import("./types").Lane} Lane */
/** @typedef {import("./types").TextItem} TextItem @typedef {import("./types").ThinkingItem} ThinkingItem @typedef {import("./types").Drawn} Drawn */

/** @typedef {{speaker?: string | null, responseId?: string | null, notice?: import("./types").Notice | null}} UnitFields */

/** What is drawn by more than a notice. */
const FOLDED = /** @type {Record<string, (flow: Flow, event: Event) => void>} */ ({
  turn_start: (flow, event) => flow.startTurn(event),
  turn_end: (flow, event) => flow.endTurn(event),
  user_message: (flow, event) => flow.said(event),
  user_audio: (flow, event) => flow.said(event),
  assistant_chunk: (flow, event) => flow.chunk(event, "text"),
  assistant_done: (flow, event) => flow.whole(event, "text"),
  thinking_chunk: (flow, event) => flow.chunk(event, "thinking"),
  thinking_done: (flow, event) => flow.whole(event, "thinking"),
  content_block: (flow, event) => flow.block(event),
  tool_call: (flow, event) => flow.toolCall(event),
  tool_input_chunk: (flow, event) => flow.toolInput(event),
  tool_output_chunk: (flow, event) => flow.toolOutput(event),
  tool_progress: (flow, event) => flow.toolProgress(event),
  tool_result: (flow, event) => flow.toolResult(event),
  agent_message: (flow, event) => flow.agentMessage(event),
  agent_callback: (flow, event) => flow.agentCallback(event),
  audio_chunk: (flow, event) => flow.audio(event),
  audio_done: (flow, event) => flow.audio(event),
  session_init: (flow, event) => flow.introduced(event),
  session_lifecycle: (flow, event) => flow.life(event),
  configuration_change: (flow, event) => flow.configured(event),
  usage: (flow, event) => flow.used(event),
  result: (flow, event) => flow.summedUp(event),
  permission_request: (flow, event) => flow.asked(event),
  permission_response: (flow, event) => flow.answered(event),
  permission_cancelled: (flow, event) => flow.answered(event),
  question: (flow, event) => flow.questioned(event),
  answer: (flow, event) => flow.answered(event),
  plan_update: (flow, event) => flow.plan(event),
  status_change: (flow, event) => flow.status(event),
  interrupt: (flow, event) => flow.interrupted(event),
  error: (flow, event) => flow.failed(event),
  agent_switch: (flow, event) => flow.switched(event),
});

const FOLDS_BY_TYPE = new Map(Object.entries(FOLDED));

/** Known, and shown by the inspector alone. */
export const UNDRAWN = ["heartbeat", "control_request", "queue_update"];
/** Every type that has a place here. A test compares the list with events.py. */
export const FOLDS = new Set([...Object.keys(FOLDED), ...NOTICED, ...UNDRAWN]);

/** The name of an event among elements. @param {Event} event */
export function nameOf(event) {
  return event.id || `${event.seq}`;
}

/** The lane of an event: "" is the main agent's. @param {Event} event */
function laneKey(event) {
  return event.parentToolCallId ?? (event.stream === undefined || event.stream.startsWith("@") ? "" : `\0${event.stream}`);
}

/** @param {string | null} id @returns {Turn} */
function newTurn(id) {
  return {
    id,
    units: [],
    start: null,
    end: null,
    interrupted: false,
    unfinished: false,
    answer: "",
    error: null,
    steps: 0,
    open: new Set(),
    element: null,
  };
}

/** @param {Event} event @param {Unit["kind"]} kind @param {Lane} lane @param {Turn} turn @param {UnitFields} fields @returns {Unit} */
function newUnit(event, kind, lane, turn, fields) {
  return {
    kind,
    event,
    lane,
    turn,
    dirty: false,
    element: null,
    speaker: fields.speaker ?? null,
    named: false,
    responseId: fields.responseId ?? null,
    items: [],
    usage: null,
    model: null,
    notice: fields.notice ?? null,
    answer: null,
    height: 0,
  };
}

/** @param {Event} event @param {string} id @param {string | null} name @param {Turn} turn @param {Unit} unit @returns {ToolItem} */
function newTool(event, id, name, turn, unit) {
  return {
    kind: "tool",
    event,
    dirty: true,
    element: null,
    id,
    name,
    family: null,
    title: null,
    server: null,
    called: null,
    args: undefined,
    input: "",
    output: [],
    outputSize: 0,
    progress: null,
    content: null,
    result: null,
    stopped: false,
    task: null,
    asked: null,
    answered: null,
    question: null,
    answer: null,
    lane: null,
    turn,
    unit,
    open: null,
    body: null,
  };
}

/** Whether a unit shows an error, or the agent's text about one. @param {Unit} unit */
function isErrorNotice(unit) {
  return unit.kind === "notice" && (unit.event.type === "error" || unit.event.type === "assistant_done");
}

export class Flow {
  constructor() {
    /** @type {Turn[]} */
    this.turns = [];
    /** @type {Map<string, Turn>} */
    this.turnsById = new Map();
    /** @type {Lane} */
    this.main = { key: "", owner: null, units: [], speaker: null };
    /** @type {Map<string, Lane>} */
    this.lanes = new Map([["", this.main]]);
    /** @type {Map<string, TextItem | ThinkingItem>} */
    this.speaking = new Map();
    /** The units these are in. @type {Map<string, Unit>} */
    this.speakingUnits = new Map();
    /** Those that still grow, until their end or the turn's. @type {Map<TextItem | ThinkingItem, Unit>} */
    this.unfinished = new Map();
    /** @type {Map<string, ToolItem>} */
    this.tools = new Map();
    /** Calls that wait for a permission or an answer, by the request. @type {Map<string, ToolItem>} */
    this.askingTools = new Map();
    /** The same without a call. @type {Map<string, Unit>} */
    this.asking = new Map();
    /** @type {Map<string, {item: import("./types").MessageItem, unit: Unit}>} */
    this.messages = new Map();
    /** @type {Map<string, Unit[]>} */
    this.byMessage = new Map();
    /** @type {Map<string, Unit>} */
    this.responses = new Map();
    /** Where each event is drawn, by its number. @type {(Drawn | undefined)[]} */
    this.places = [];
    /** Units that must be drawn anew. @type {Set<Unit>} */
    this.dirty = new Set();
    /** Whether units came or went. */
    this.changed = false;
    /** How many there are, in all lanes. */
    this.added = 0;
    this.agent = /** @type {string | null} */ (null);
    this.init = /** @type {any} */ (null);
    this.settings = { model: /** @type {string | null} */ (null), permissionMode: /** @type {string | null} */ (null), modeId: /** @type {string | null} */ (null) };
    /** The last text of the main agent. */
    this.answer = "";
  }

  /** Take one event in. @param {Event} event */
  apply(event) {
    if (event.replay) return;
    const fold = FOLDS_BY_TYPE.get(event.type);
    if (!isKnown(event)) this.note(event, unknown(event));
    else if (fold !== undefined) fold(this, event);
    else this.note(event, noticeOf(event));
  }

  // ---- places

  /** The turn of an event; without a turn, what comes between two. @param {Event} event @returns {Turn} */
  turnFor(event) {
    const last = this.turns[this.turns.length - 1];
    const id = event.turnId ?? null;
    const known = id === null ? undefined : this.turnsById.get(id);
    if (known !== undefined) return known;
    if (id === null && last !== undefined && (last.id === null || last.end === null)) return last;
    const turn = newTurn(id);
    this.turns.push(turn);
    if (id !== null) this.turnsById.set(id, turn);
    this.main.speaker = null;
    this.changed = true;
    return turn;
  }

  /** Who speaks: the main agent, or a sub-agent in the call that started it. @param {Event} event @returns {Lane} */
  laneFor(event) {
    const parent = event.parentToolCallId;
    const key = laneKey(event);
    const known = this.lanes.get(key);
    if (known !== undefined) return known;
    const owner = parent === undefined ? this.tool(event, key, event.stream ?? null, this.main) : this.toolOf(event, parent, this.main);
    /** @type {Lane} */
    const lane = { key, owner, units: [], speaker: null };
    owner.lane = lane;
    owner.family ??= "agent";
    this.lanes.set(key, lane);
    this.touchItem(owner, owner.unit, event);
    return lane;
  }

  /**
   * A new unit at the end of its lane.
   * @param {Event} event
   * @param {Unit["kind"]} kind
   * @param {UnitFields} [fields]
   * @param {Lane} [lane]
   * @returns {Unit}
   */
  unit(event, kind, fields = {}, lane = this.laneFor(event)) {
    const turn = this.turnFor(event);
    const unit = newUnit(event, kind, lane, turn, fields);
    if (unit.speaker !== null) {
      unit.named = unit.speaker !== lane.speaker;
      lane.speaker = unit.speaker;
    }
    (lane === this.main ? turn.units : lane.units).push(unit);
    this.changed = true;
    this.added += 1;
    this.place(event, unit);
    this.mark(unit);
    return unit;
  }

  /** @param {Event} event @param {Drawn} drawn */
  place(event, drawn) {
    this.places[event.seq] ??= drawn;
  }

  /** This unit must be drawn anew, and so must the call that it is in. @param {Unit} unit */
  mark(unit) {
    unit.dirty = true;
    const { owner } = unit.lane;
    if (owner === null) this.dirty.add(unit);
    else {
      owner.dirty = true;
      this.mark(owner.unit);
    }
  }

  /** @param {Item} item @param {Unit} unit @param {Event} event */
  touchItem(item, unit, event) {
    item.dirty = true;
    this.place(event, item);
    this.mark(unit);
  }

  /** The answer that an event belongs to. @param {Event} event @param {Lane} [lane] @returns {Unit} */
  response(event, lane = this.laneFor(event)) {
    const turn = this.turnFor(event);
    const units = lane === this.main ? turn.units : lane.units;
    const last = units[units.length - 1];
    const id = event.responseId ?? null;
    if (last?.kind === "response" && (id === null || id === last.responseId)) return last;
    const speaker = this.speaker(event, lane);
    const unit = this.unit(event, "response", { responseId: id, speaker }, lane);
    if (id !== null) this.responses.set(`${lane.key}\0${id}`, unit);
    return unit;
  }

  /** @param {Event} event @param {Lane} lane */
  speaker(event, lane) {
    if (lane.owner !== null) return "Sub-agent";
    return capital(this.agent ?? event.source ?? "agent");
  }

  /** @param {Event} event @param {import("./types").Notice | null} notice */
  note(event, notice) {
    if (notice === null) return;
    const lane = this.laneFor(event);
    const units = lane === this.main ? this.turnFor(event).units : lane.units;
    const last = units[units.length - 1];
    const again = last?.kind === "notice" && last.notice?.words === notice.words && last.notice.tone === notice.tone && notice.more === undefined;
    if (!again || last.notice === null) {
      this.unit(event, "notice", { notice });
      return;
    }
    last.notice.times = (last.notice.times ?? 1) + 1;
    this.place(event, last);
    this.mark(last);
  }

  // ---- turns

  /** @param {Event} event */
  startTurn(event) {
    this.turnFor(event).start ??= event;
  }

  /** @param {Event} event */
  endTurn(event) {
    const turn = this.turnFor(event);
    if (this.laneFor(event) !== this.main) return;
    turn.end = event;
    turn.unfinished = false;
    const isTold = event.payload.status === "interrupted" && turn.interrupted;
    if (event.payload.status === "interrupted") turn.interrupted = true;
    for (const tool of turn.open) this.touchItem(tool, tool.unit, event);
    turn.open.clear();
    for (const [item, unit] of this.unfinished) this.touchItem(item, unit, event);
    this.unfinished.clear();
    this.unit(event, "end", { notice: isTold ? null : noticeOfEnd(event.payload, turn.error) }, this.main);
  }

  /** @param {Event} event */
  interrupted(event) {
    this.turnFor(event).interrupted = true;
    this.note(event, noticeOf(event));
  }

  /** @param {Event} event */
  failed(event) {
    if (event.payload.code === "aborted" && this.turnFor(event).interrupted) return;
    const { units } = this.turnFor(event);
    const last = units[units.length - 1];
    const notice = noticeOf(event);
    if (typeof event.payload.retryAfterMs === "number" && last?.kind === "notice" && last.event.type === "status_change" && last.notice?.tone === "wait") {
      last.notice = { ...last.notice, code: notice?.code };
      this.place(event, last);
      this.mark(last);
      return;
    }
    const turn = this.turnFor(event);
    const message = asText(event.payload.message);
    turn.error = message;
    const known = this.laneFor(event) === this.main ? turn.units.find((unit) => isErrorNotice(unit) && unit.notice?.words.includes(message)) : undefined;
    if (known !== undefined && notice !== null) {
      const times = known.event.type === "error" ? (known.notice?.times ?? 1) + 1 : undefined;
      known.notice = { ...notice, words: known.notice?.words ?? "", times };
      this.place(event, known);
      this.mark(known);
      return;
    }
    const isAnswer = turn.answer !== "" && (turn.answer.includes(message) || message.endsWith(turn.answer));
    this.note(event, notice !== null && isAnswer ? { ...notice, words: "" } : notice);
  }

  /** @param {Event} event */
  status(event) {
    if (event.payload.status === "step_start") {
      const turn = this.turnFor(event);
      turn.steps += 1;
      const last = turn.units[turn.units.length - 1];
      if (turn.steps < 2 || this.laneFor(event) !== this.main || last?.kind !== "response") return;
      this.unit(event, "notice", { notice: { tone: "quiet", icon: "", words: `step ${turn.steps}` } });
      return;
    }
    this.note(event, noticeOf(event));
  }

  /** The turns that have not ended are unfinished, because the log is no longer written; or they are not. @param {boolean} isOver */
  leave(isOver) {
    for (const turn of this.turns) {
      if (turn.end !== null || turn.unfinished === isOver) continue;
      turn.unfinished = isOver;
      for (const tool of turn.open) {
        tool.dirty = true;
        this.mark(tool.unit);
      }
    }
  }

  /** Where subagents and background commands stand, by the state. @param {import("./types").Task[]} tasks */
  setTasks(tasks) {
    for (const task of tasks) {
      const tool = this.tools.get(task.id);
      if (tool === undefined || tool.task?.status === task.status) continue;
      tool.task = task;
      tool.dirty = true;
      this.mark(tool.unit);
    }
  }

  // ---- speech

  /** @param {Event} event */
  said(event) {
    const { author, messageId, fromAgentId } = event.payload;
    const lane = this.laneFor(event);
    const names = { agent: typeof fromAgentId === "string" ? capital(fromAgentId) : lane.owner === null ? "Agent" : "Task", harness: "Harness" };
    const speaker = event.type === "user_audio" ? "You" : (names[/** @type {"agent" | "harness"} */ (author)] ?? "You");
    const unit = this.unit(event, "said", { speaker }, lane);
    if (typeof messageId === "string") this.byMessage.set(messageId, [...(this.byMessage.get(messageId) ?? []), unit]);
  }

  /** @param {Event} event @param {"text" | "thinking"} kind */
  speakingKey(event, kind) {
    return [event.parentToolCallId ?? event.stream ?? "", event.responseId ?? "", event.blockIndex ?? "", kind].join("\0");
  }

  /** @param {Event} event @param {"text" | "thinking"} kind @returns {TextItem | ThinkingItem} */
  speech(event, kind) {
    const unit = this.response(event);
    const base = { event, last: event, dirty: true, element: null, text: "", done: false, interrupted: false, view: null };
    /** @type {TextItem | ThinkingItem} */
    const item = kind === "text" ? { ...base, kind, citations: null, phase: null } : { ...base, kind, redacted: false, durationMs: null };
    unit.items.push(item);
    const key = this.speakingKey(event, kind);
    this.speaking.set(key, item);
    this.speakingUnits.set(key, unit);
    this.unfinished.set(item, unit);
    this.touchItem(item, unit, event);
    return item;
  }

  /** @param {Event} event @param {"text" | "thinking"} kind */
  chunk(event, kind) {
    const key = this.speakingKey(event, kind);
    const open = this.speaking.get(key);
    const item = open === undefined || open.done ? this.speech(event, kind) : open;
    item.text += asText(event.payload.text);
    item.last = event;
    this.touchItem(item, this.speakingUnits.get(key) ?? this.response(event), event);
  }

  /** @param {Event} event @param {"text" | "thinking"} kind */
  whole(event, kind) {
    const key = this.speakingKey(event, kind);
    const said = event.payload;
    if (said.phase === "error" && !this.speaking.has(key) && this.laneFor(event) === this.main) {
      this.turnFor(event).error = asText(said.text);
      this.note(event, { tone: "bad", icon: "✗", words: asText(said.text) }); // the error that follows says the same
      return;
    }
    const item = this.speaking.get(key) ?? this.speech(event, kind);
    item.text = asText(said.text);
    item.done = true;
    this.unfinished.delete(item);
    item.interrupted = said.interrupted === true;
    item.last = event;
    if (item.kind === "text") {
      item.citations = Array.isArray(said.citations) ? said.citations : null;
      item.phase = textOf(said.phase);
      if (this.laneFor(event) === this.main) this.answer = this.turnFor(event).answer = item.text;
    } else {
      item.redacted = said.redacted !== undefined;
      item.durationMs = typeof said.durationMs === "number" ? said.durationMs : null;
    }
    this.touchItem(item, this.speakingUnits.get(key) ?? this.response(event), event);
    if (event.responseId === undefined || event.blockIndex === undefined) {
      this.speaking.delete(key);
      this.speakingUnits.delete(key);
    }
  }

  /** @param {Event} event */
  block(event) {
    const unit = this.response(event);
    unit.items.push({ kind: "block", event, dirty: true, element: null, block: event.payload.block });
    this.touchItem(unit.items[unit.items.length - 1], unit, event);
  }

  /** @param {Event} event */
  audio(event) {
    const unit = this.response(event);
    const last = unit.items[unit.items.length - 1];
    const open = last?.kind === "audio" && last.done === null ? last : null;
    /** @type {import("./types").AudioItem} */
    const item = open ?? { kind: "audio", event, dirty: true, element: null, chunks: [], done: null };
    if (open === null) unit.items.push(item);
    if (event.type === "audio_done") item.done = event;
    else item.chunks.push(event);
    this.touchItem(item, unit, event);
  }

  // ---- tools

  /** @param {Event} event @param {string} id @param {string | null} name @param {Lane} lane @returns {ToolItem} */
  tool(event, id, name, lane) {
    const unit = this.response(event, lane);
    const turn = this.turnFor(event);
    const item = newTool(event, id, name, turn, unit);
    unit.items.push(item);
    turn.open.add(item);
    this.tools.set(`${lane.key}\0${id}`, item);
    this.tools.set(id, item);
    this.touchItem(item, unit, event);
    return item;
  }

  /** The call of that id: of this lane, or of any. @param {Event} event @param {string} id @param {Lane} [lane] @returns {ToolItem} */
  toolOf(event, id, lane = this.laneFor(event)) {
    return this.tools.get(`${lane.key}\0${id}`) ?? this.tools.get(id) ?? this.tool(event, id, null, lane);
  }

  /** @param {Event} event */
  toolCall(event) {
    const call = event.payload;
    const lane = this.laneFor(event);
    const id = asText(call.toolCallId);
    const known = this.tools.get(`${lane.key}\0${id}`);
    const again = known !== undefined && known.result !== null && known.called !== null && known.turn !== this.turnFor(event);
    const item = known === undefined || again ? this.tool(event, id, null, lane) : known;
    item.called = event;
    item.name = asText(call.toolName);
    item.args = call.args;
    item.family = textOf(call.kind) ?? item.family;
    item.title = textOf(call.title) ?? item.title;
    item.server = textOf(call.server) ?? item.server;
    this.touchItem(item, item.unit, event);
  }

  /** @param {Event} event */
  toolInput(event) {
    const item = this.toolOf(event, asText(event.payload.toolCallId));
    item.name ??= textOf(event.payload.toolName);
    item.input += asText(event.payload.chunk);
    this.touchItem(item, item.unit, event);
  }

  /** @param {Event} event */
  toolOutput(event) {
    const item = this.toolOf(event, asText(event.payload.toolCallId));
    const text = asText(event.payload.chunk);
    const stream = textOf(event.payload.stream);
    const last = item.output[item.output.length - 1];
    if (last !== undefined && last.stream === stream) last.text += text;
    else item.output.push({ text, stream });
    item.outputSize += text.length;
    this.touchItem(item, item.unit, event);
  }

  /** @param {Event} event */
  toolProgress(event) {
    const progress = event.payload;
    const item = this.toolOf(event, asText(progress.toolCallId));
    item.name ??= textOf(progress.toolName);
    item.progress = textOf(progress.status);
    item.title = textOf(progress.title) ?? item.title;
    item.content = Array.isArray(progress.content) ? progress.content : item.content;
    this.touchItem(item, item.unit, event);
  }

  /** @param {Event} event */
  toolResult(event) {
    const item = this.toolOf(event, asText(event.payload.toolCallId));
    item.name ??= textOf(event.payload.toolName);
    item.result = event;
    item.stopped = event.synthetic === true || item.turn.interrupted;
    item.turn.open.delete(item);
    this.touchItem(item, item.unit, event);
  }

  // ---- agents among themselves

  /** @param {Event} event */
  agentMessage(event) {
    const unit = this.response(event);
    /** @type {import("./types").MessageItem} */
    const item = { kind: "message", event, dirty: true, element: null, callback: null };
    unit.items.push(item);
    this.messages.set(asText(event.payload.messageId), { item, unit });
    this.touchItem(item, unit, event);
  }

  /** @param {Event} event */
  agentCallback(event) {
    const sent = this.messages.get(asText(event.payload.messageId));
    if (sent === undefined) {
      this.unit(event, "said", { speaker: capital(textOf(event.payload.fromAgentId) ?? "agent") });
      return;
    }
    sent.item.callback = event;
    this.touchItem(sent.item, sent.unit, event);
  }

  /** @param {Event} event */
  switched(event) {
    this.agent = textOf(event.payload.toAgentId) ?? this.agent;
    this.note(event, noticeOf(event));
  }

  // ---- questions

  /** @param {Event} event */
  asked(event) {
    const id = textOf(event.payload.toolCallId);
    const tool = id === null ? undefined : (this.tools.get(`${this.laneFor(event).key}\0${id}`) ?? this.tools.get(id));
    if (tool !== undefined) {
      tool.asked = event;
      tool.answered = null;
      this.touchItem(tool, tool.unit, event);
      this.askingTools.set(asText(event.payload.requestId), tool);
      return;
    }
    const unit = this.unit(event, "notice", { notice: noticeOfPermission(event.payload, null) });
    this.asking.set(asText(event.payload.requestId), unit);
  }

  /** @param {Event} event */
  questioned(event) {
    const id = textOf(event.payload.toolCallId);
    const tool = id === null ? undefined : (this.tools.get(`${this.laneFor(event).key}\0${id}`) ?? this.tools.get(id));
    if (tool !== undefined) {
      tool.question = event;
      this.askingTools.set(asText(event.payload.requestId), tool);
      this.touchItem(tool, tool.unit, event);
      return;
    }
    this.asking.set(asText(event.payload.requestId), this.unit(event, "question"));
  }

  /** The answer to a permission or a question, or its end without one. @param {Event} event */
  answered(event) {
    const id = asText(event.payload.requestId);
    const tool = this.askingTools.get(id);
    const unit = this.asking.get(id);
    if (tool !== undefined) {
      if (event.type === "answer") tool.answer = event;
      else tool.answered = event;
      this.touchItem(tool, tool.unit, event);
      return;
    }
    if (unit === undefined) return;
    unit.answer = event;
    if (unit.kind === "notice") unit.notice = noticeOfPermission(unit.event.payload, event.payload);
    this.place(event, unit);
    this.mark(unit);
  }

  // ---- the session

  /** @param {Event} event */
  introduced(event) {
    if (this.laneFor(event) !== this.main) return;
    const init = event.payload;
    this.agent = textOf(init.agentId) ?? this.agent;
    const notice = noticeOfInit(init, this.init);
    this.init = init;
    this.settings.model = textOf(init.model) ?? this.settings.model;
    this.settings.permissionMode = textOf(init.permissionMode) ?? this.settings.permissionMode;
    this.note(event, notice);
  }

  /** @param {Event} event */
  configured(event) {
    const change = event.payload;
    if (this.laneFor(event) !== this.main) return;
    const notice = noticeOfChange(change, this.settings);
    this.settings.model = textOf(change.model) ?? this.settings.model;
    this.settings.permissionMode = textOf(change.permissionMode) ?? this.settings.permissionMode;
    this.settings.modeId = textOf(change.modeId) ?? this.settings.modeId;
    this.note(event, notice);
  }

  /** @param {Event} event */
  life(event) {
    const { subtype, messageId } = event.payload;
    if (subtype === "message_removed" && typeof messageId === "string") this.remove(messageId);
    this.note(event, noticeOf(event));
  }

  /** Mark what was removed; it stays on the record. @param {string} message */
  remove(message) {
    const answers = [...this.responses].filter(([key]) => key.endsWith(`\0${message}`)).map(([, unit]) => unit);
    for (const unit of [...(this.byMessage.get(message) ?? []), ...answers]) {
      unit.removed = true;
      this.mark(unit);
    }
  }

  /** @param {Event} event */
  plan(event) {
    const lane = this.laneFor(event);
    const units = lane === this.main ? this.turnFor(event).units : lane.units;
    const last = units[units.length - 1]?.items.at(-1);
    const said = last?.kind === "tool" && toolInput({ name: last.name ?? "", kind: last.family, args: last.args, server: null })?.action === "write_plan";
    if (last !== undefined && said) this.place(event, last);
    else this.unit(event, "plan");
  }

  /** @param {Event} event */
  used(event) {
    const used = event.payload;
    const lane = this.laneFor(event);
    const unit = this.responses.get(`${lane.key}\0${event.responseId ?? ""}`);
    if (used.scope === "message" && unit !== undefined) {
      unit.usage = used.usage;
      unit.model = textOf(used.model);
      this.mark(unit);
    }
  }

  /** The agent's own last word about a turn: drawn where nothing else says it. @param {Event} event */
  summedUp(event) {
    const result = event.payload;
    const turn = this.turnFor(event);
    if (this.laneFor(event) !== this.main) return;
    const blocks = [];
    const isNew = turn.answer === "" && result.text !== this.answer;
    if (typeof result.text === "string" && result.text !== "" && isNew && result.status === "completed") blocks.push({ type: "text", text: result.text });
    if (result.structuredOutput !== undefined && result.structuredOutput !== null) {
      blocks.push({ type: "code", language: "json", code: JSON.stringify(result.structuredOutput, null, 2) });
    }
    for (const block of blocks) {
      const unit = this.response(event, this.main);
      const item = { kind: /** @type {const} */ ("block"), event, dirty: true, element: null, block };
      unit.items.push(item);
      this.touchItem(item, unit, event);
    }
  }
}
