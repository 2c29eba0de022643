/** Units as elements. Each is drawn from what the fold knows, and from nothing else; what did not change is not touched. */

import { blockView, folded, json } from "./blocks.js";
import { h, place, visible } from "./dom.js";
import { nameOf } from "./units.js";
import { MarkdownView, link, prose } from "./markdown.js";
import { levelOf, planWords } from "./procedure.js";
import { bodyOf, planView, questionView, stateOf, summaryOf, tailOf } from "./tools.js";
import { HANDOFF_BEGINNING, HANDOFF_URI } from "./rules.js";
import { asList, asObject, asText, between, clock, count, duration, line, money, textOf } from "./format.js";

/** @typedef {import("./types").Unit} Unit @typedef {import("./types").Item} Item @typedef {import("./types").ToolItem} ToolItem */
/** @typedef {import("./types").Hooks} Hooks @typedef {import("./types").Event} Event */

/** Whether a block is the conversation that was sent along with a message at a hand-off. @param {Record<string, unknown>} block */
const isHandoff = (block) => block.uri === HANDOFF_URI || (block.type === "text" && asText(block.text).startsWith(HANDOFF_BEGINNING));

/** So many steps of a sub-agent are drawn at once. */
const NESTED = 200;
/** What somebody said is shown up to here; the rest when asked for. */
const LONG = 6000;

/** Which types of events each kind of item shows. */
const SHOWS = {
  text: ["assistant_chunk", "assistant_done"],
  thinking: ["thinking_chunk", "thinking_done"],
  tool: ["tool_call", "tool_input_chunk", "tool_output_chunk", "tool_progress", "tool_result", "permission_request", "permission_response", "permission_cancelled", "question", "answer"],
  message: ["agent_message", "agent_callback"],
  block: ["content_block", "result"],
  audio: ["audio_chunk", "audio_done"],
};

export class Painter {
  /** @param {Hooks} hooks */
  constructor(hooks) {
    this.hooks = hooks;
    this.toolsOpen = false;
    this.thinkingOpen = false;
    /** Whether the procedure is shown, too. */
    this.procedure = false;
    /** @type {Set<string> | null} */
    this.types = null;
    /** What is known of each turn, by its id. @type {Map<string, import("./types").TurnState>} */
    this.turns = new Map();
  }

  /** Whether anything of a unit passes the filter and belongs to the reading level. @param {Unit} unit */
  shows(unit) {
    return this.matches(unit) && (this.procedure || this.types !== null || !isProcedure(unit));
  }

  /** Whether anything of a unit passes the filter. @param {Unit} unit */
  matches(unit) {
    if (this.types === null) return true;
    return unit.kind === "response" ? unit.items.some((item) => this.showsItem(item)) : this.types.has(unit.event.type);
  }

  /** @param {Item} item */
  showsItem(item) {
    return this.types === null || SHOWS[item.kind].some((type) => this.types?.has(type));
  }

  /** The element of a unit, as it has to be now. @param {Unit} unit @returns {HTMLElement} */
  unit(unit) {
    if (unit.element !== null && !unit.dirty) return unit.element;
    unit.element ??= this.frame(unit);
    unit.dirty = false;
    unit.element.classList.toggle("struck", unit.removed === true);
    place(unit.element, [this.margin(unit), ...this.inside(unit)]);
    return unit.element;
  }

  /** @param {Unit} unit @returns {HTMLElement} */
  frame(unit) {
    const { event } = unit;
    switch (unit.kind) {
      case "said":
        return h("article", { class: `user-message by-${author(event)}`, "data-event-id": nameOf(event), "aria-label": unit.speaker });
      case "response":
        return h("article", { class: "assistant-response", "data-response-id": unit.responseId, "aria-label": unit.speaker });
      case "end":
        return h("div", { class: "turn-end", "data-event-id": nameOf(event), role: "note" });
      case "question":
        return h("div", { class: "asked", "data-event-id": nameOf(event), role: "group", "aria-label": "Question" });
      case "plan":
        return h("div", { class: "notice plan-notice", "data-event-id": nameOf(event), role: "note" });
      default:
        return h("div", { class: "notice", "data-event-id": nameOf(event), role: "note" });
    }
  }

  /** What stands in the margin: who speaks, and the number to cite. @param {Unit} unit */
  margin(unit) {
    const about = unit.kind === "response" ? usageWords(unit) : null;
    const known = unit.element?.querySelector(":scope > .margin");
    if (known && (known.querySelector(".used")?.textContent ?? null) === about) return known;
    return h(
      "div",
      { class: "margin" },
      unit.named && h("span", { class: "speaker", title: clock(unit.event.timestamp) }, ...visible(unit.speaker ?? "")),
      unit.kind === "response" ? null : this.cite(unit.event),
      about && h("span", { class: "used" }, ...visible(about)),
    );
  }

  /** @param {Event} event */
  cite(event) {
    return h("a", { class: "cite", href: this.hooks.href?.(event.seq) ?? `#${event.seq}`, "data-seq": event.seq, "aria-label": `Event ${event.seq}` }, `§${event.seq}`);
  }

  /** @param {Unit} unit @returns {Node[]} */
  inside(unit) {
    const removed = unit.removed ? [h("span", { class: "struck-word" }, "⌫ removed")] : [];
    switch (unit.kind) {
      case "said":
        return [...removed, this.said(unit)];
      case "response":
        return [...removed, ...this.items(unit)];
      case "end":
        return [this.end(unit)];
      case "question":
        return [h("div", { class: "asked-body" }, h("p", { class: "asked-word" }, "The agent asks"), questionView(unit.event, unit.answer))];
      case "plan":
        return [planNotice(unit.event)];
      default:
        return [this.notice(unit)];
    }
  }

  // ---- what was said to the agent

  /** @param {Unit} unit */
  said(unit) {
    const { event } = unit;
    if (event.type === "user_audio") {
      return blockView({ type: "audio", blob: event.payload.audio, transcript: event.payload.transcription, durationMs: event.payload.durationMs }, this.hooks);
    }
    if (event.type === "agent_callback") return h("div", { class: "said" }, resultView(event));
    const text = asText(event.payload.text ?? "");
    if (author(event) === "harness") {
      return folded(line(text, 90) || "context", () => h("pre", { class: "harness-text" }, ...visible(text)));
    }
    const blocks = asList(event.payload.content).map(asObject).filter((block) => !isHandoff(block));
    const isCommand = blocks.some((block) => block.type === "slash_command");
    const shown = blocks.filter((block) => !(isCommand && (block.type === "text" || block.type === "slash_command"))); // as it was typed
    const own = shown.some((block) => block.type === "text") ? [] : [text];
    return h(
      "div",
      { class: "said", dir: "auto" },
      own.filter((words) => words !== "").map((words) => spoken(words, author(event))),
      shown.map((block) => (block.type === "text" ? spoken(asText(block.text), author(event)) : blockView(block, this.hooks))),
      event.payload.queued === true && h("span", { class: "about" }, "from the queue"),
    );
  }

  // ---- answers

  /** What an answer consists of, in its order; calls that follow each other stand together. @param {Unit} unit @returns {HTMLElement[]} */
  items(unit) {
    /** @type {{name: string, items: HTMLElement[]}[]} */
    const groups = [];
    for (const item of unit.items) {
      if (!this.showsItem(item)) continue;
      const name = item.kind === "tool" ? "tool-calls" : item.kind === "message" ? "agent-messages" : "";
      const last = groups[groups.length - 1];
      if (name !== "" && last?.name === name) last.items.push(this.item(item, unit));
      else groups.push({ name, items: [this.item(item, unit)] });
    }
    return groups.map(({ name, items }) => (name === "" ? items[0] : this.group(name, items)));
  }

  /** @param {string} name @param {HTMLElement[]} items */
  group(name, items) {
    const known = items[0].parentElement;
    const words = name === "tool-calls" ? "Tools" : "Messages to agents";
    const element = known?.classList.contains(name) ? known : h("div", { class: name, role: "group", "aria-label": words });
    place(element, items);
    return element;
  }

  /** @param {Item} item @param {Unit} unit @returns {HTMLElement} */
  item(item, unit) {
    if (item.element !== null && !item.dirty) return item.element;
    item.dirty = false;
    switch (item.kind) {
      case "text":
        return this.text(item, unit);
      case "thinking":
        return this.thinking(item, unit);
      case "tool":
        return this.tool(item);
      case "message":
        return this.replace(item, this.message(item));
      case "block":
        return this.replace(item, h("div", { class: "content-block", "data-event-id": nameOf(item.event) }, this.cite(item.event), blockView(item.block, this.hooks)));
      default:
        return this.replace(item, this.audio(item));
    }
  }

  /** @param {Item} item @param {HTMLElement} element */
  replace(item, element) {
    item.element = element;
    return element;
  }

  /** @param {import("./types").TextItem} item @param {Unit} unit */
  text(item, unit) {
    item.view ??= new MarkdownView();
    item.element ??= h("div", { class: "assistant-text", "data-event-id": nameOf(item.event) });
    item.view.update(item.text);
    const streaming = !item.done && unit.turn.end === null;
    item.element.classList.toggle("streaming", streaming);
    item.element.classList.toggle("aside", item.phase !== null && item.phase !== "final_answer" && item.phase !== "final");
    const cut = item.interrupted || (!item.done && !streaming);
    place(item.element, [
      item.element.querySelector(":scope > .cite") ?? this.cite(item.event),
      item.view.element,
      ...(cut ? [h("span", { class: "cut" }, "✂ cut off here")] : []),
      ...(item.citations === null || item.citations.length === 0 ? [] : [citations(item.citations)]),
    ]);
    return item.element;
  }

  /** @param {import("./types").ThinkingItem} item @param {Unit} unit */
  thinking(item, unit) {
    const streaming = !item.done && unit.turn.end === null;
    const took = item.durationMs ?? between(item.event.timestamp, item.last.timestamp);
    const words = streaming ? "thinking" : took === null || took < 50 ? "thought" : `thought for ${duration(took)}`;
    const element = item.element ?? h("details", { class: "thinking", "data-event-id": nameOf(item.event), $open: this.thinkingOpen });
    if (item.element === null) element.addEventListener("toggle", () => this.think(item, /** @type {HTMLDetailsElement} */ (element)));
    item.element = element;
    element.classList.toggle("streaming", streaming);
    const withheld = item.text === "" && item.done;
    const end = streaming ? line(item.text.slice(-160), 120) : line(item.text, 100);
    const summary = h(
      "summary",
      null,
      this.cite(item.event),
      h("span", { class: "thought-word" }, words),
      h("span", { class: "thought-line" }, ...visible(withheld ? (item.redacted ? "sealed by the provider" : "no text") : end)),
    );
    const body = item.view?.element?.parentElement ?? h("div", { class: "thinking-text" });
    place(element, [summary, body]);
    this.think(item, /** @type {HTMLDetailsElement} */ (element));
    return element;
  }

  /** The thought itself, when somebody looks. @param {import("./types").ThinkingItem} item @param {HTMLDetailsElement} element */
  think(item, element) {
    if (!element.open) return;
    if (item.view === null) {
      item.view = new MarkdownView();
      element.lastElementChild?.append(item.view.element);
    }
    item.view.update(item.text);
  }

  /** @param {ToolItem} item */
  tool(item) {
    const element = item.element ?? h("details", { class: "tool-call", "data-tool-call-id": item.id, "data-event-id": nameOf(item.event) });
    if (item.element === null) {
      element.addEventListener("toggle", () => this.toggled(item));
      Reflect.set(element, "open", this.isOpen(item));
    }
    item.element = element;
    element.setAttribute("data-state", stateOf(item));
    element.setAttribute("data-kind", item.family ?? "other");
    const open = this.isOpen(item);
    const summary = h("summary", null, this.cite(item.event), ...summaryOf(item));
    const tail = open ? null : tailOf(item);
    place(element, [summary, ...(open ? [this.body(item)] : [])]);
    if (tail !== null) summary.append(tail);
    return element;
  }

  /** @param {ToolItem} item */
  isOpen(item) {
    return item.open ?? this.toolsOpen;
  }

  /** @param {ToolItem} item */
  toggled(item) {
    if (!(item.element instanceof HTMLDetailsElement) || item.element.open === this.isOpen(item)) return;
    item.open = item.element.open;
    this.tool(item);
  }

  /** @param {ToolItem} item */
  body(item) {
    item.body ??= h("div", { class: "tool-body" });
    const nested = item.lane === null ? null : this.nested(item);
    place(item.body, bodyOf(item, this.hooks, nested));
    return item.body;
  }

  /** What a sub-agent said, inside the call that started it. @param {ToolItem} item */
  nested(item) {
    const units = (item.lane?.units ?? []).filter((unit) => this.shows(unit));
    const element = /** @type {HTMLElement} */ (item.body?.querySelector(":scope > .sub-agent") ?? h("div", { class: "sub-agent", role: "group", "aria-label": "Sub-agent" }));
    const from = element.hasAttribute("data-all") ? 0 : Math.max(0, units.length - NESTED);
    const earlier = h("button", { type: "button", class: "more", onclick: () => this.all(item, element) }, `show ${count(from)} earlier steps`);
    place(element, [...(from > 0 ? [earlier] : []), ...units.slice(from).filter((unit) => this.shows(unit)).map((unit) => this.unit(unit))]);
    return element;
  }

  /** @param {ToolItem} item @param {HTMLElement} element */
  all(item, element) {
    element.setAttribute("data-all", "");
    this.tool(item);
  }

  /** @param {import("./types").MessageItem} item */
  message(item) {
    const sent = item.event.payload;
    const { callback } = item;
    const failed = typeof callback?.payload.error === "string";
    const state = callback === null ? "pending" : failed ? "failed" : "resolved";
    const session = textOf(callback?.payload.fromSessionId) ?? textOf(sent.targetSessionId);
    const { open } = this.hooks;
    return h(
      "div",
      { class: `agent-message ${state}`, "data-message-id": asText(sent.messageId), "data-event-id": nameOf(item.event) },
      this.cite(item.event),
      h(
        "p",
        { class: "agent-line" },
        h("span", { class: "mark", "aria-hidden": "true" }, callback === null ? "◐" : failed ? "✗" : "✓"),
        h("span", { class: "agent-name" }, ...visible(asText(sent.targetAgentId))),
        h("span", { class: "word" }, callback === null ? "asked, no answer yet" : failed ? "gave no answer" : "answered"),
        session !== null && open !== undefined && h("button", { type: "button", class: "open-session", onclick: () => open(session) }, "open its session"),
      ),
      h("div", { class: "agent-asked", dir: "auto" }, prose(asText(sent.message))),
      callback !== null && h("div", { class: "agent-result", "data-event-id": nameOf(callback) }, resultView(callback)),
    );
  }

  /** @param {import("./types").AudioItem} item */
  audio(item) {
    const done = item.done?.payload;
    const parts = item.chunks.map((event) => event.payload);
    const data = parts.every((part) => typeof part.data === "string") && parts.length > 0 ? joined(parts.map((part) => part.data)) : null;
    const block = {
      type: "audio",
      mediaType: textOf(parts.find((part) => typeof part.mediaType === "string")?.mediaType),
      ...(textOf(done?.audio) === null ? { data } : { blob: done.audio }),
      ...{ transcript: done?.transcript, durationMs: done?.durationMs },
    };
    const view = item.done === null ? h("p", { class: "about" }, `speaking: ${count(parts.length)} pieces`) : blockView(block, this.hooks);
    return h("div", { class: "content-block", "data-event-id": nameOf(item.event) }, this.cite(item.event), view);
  }

  // ---- procedure

  /** @param {Unit} unit */
  notice(unit) {
    const { notice, event } = unit;
    if (notice === null) return h("span");
    unit.element?.setAttribute("data-tone", notice.tone);
    const { original } = this.hooks;
    const raw = event.type === "raw" || notice.icon === "?";
    return h(
      "div",
      { class: "notice-body" },
      h("span", { class: "notice-icon", "aria-hidden": "true" }, notice.icon),
      h(
        "div",
        { class: "notice-text" },
        h("span", { class: "notice-words", dir: "auto" }, ...visible(notice.words)),
        notice.times !== undefined && h("span", { class: "notice-times" }, `× ${count(notice.times)}`),
        notice.code && h("span", { class: "code-word" }, ...visible(notice.code)),
        notice.next && h("span", { class: "notice-next" }, notice.next),
        notice.more !== undefined && notice.more !== null && folded("more", () => json(notice.more)),
        raw && event.original !== undefined && folded("original", () => json(event.original)),
        raw && event.original === undefined && original !== undefined && folded("original", () => later(original(event.seq))),
      ),
    );
  }

  /** @param {Unit} unit */
  end(unit) {
    const turn = this.turns.get(unit.turn.id ?? "");
    const cost = turn?.usage?.costUsd;
    const facts = [typeof turn?.durationMs === "number" ? duration(turn.durationMs) : null, tokenWords(turn?.usage), cost ? money(cost) : null];
    const words = facts.filter(Boolean).join(" · ");
    return h("div", { class: "turn-facts" }, unit.notice !== null && this.noticeOfEnd(unit), h("span", { class: "facts" }, words));
  }

  /** @param {Unit} unit */
  noticeOfEnd(unit) {
    const inner = this.notice(unit);
    inner.className = unit.notice?.next || unit.notice?.code ? "notice-body ended" : "notice-body ended plain";
    return inner;
  }
}

/** Whether a unit is procedure. Answers, questions and ends are not, whatever event they begin with. @param {Unit} unit */
function isProcedure(unit) {
  return (unit.kind === "notice" || unit.kind === "said") && levelOf(unit.event) !== "conversation";
}

/** @param {Event} event */
function author(event) {
  const said = event.payload.author;
  return said === "agent" || said === "harness" ? said : "human";
}

/** What a person typed stands as typed; what an agent wrote is Markdown. @param {string} text @param {string} by */
function spoken(text, by) {
  if (by === "agent") return prose(text);
  if (text.length <= LONG) return h("p", { class: "typed", dir: "auto" }, ...visible(text, true));
  const element = h("p", { class: "typed", dir: "auto" }, ...visible(text.slice(0, LONG), true));
  const more = h("button", { type: "button", class: "more", onclick: () => element.replaceChildren(...visible(text, true)) }, `… show all ${count(text.length)} characters`);
  element.append(more);
  return element;
}

/** @param {Event} callback */
function resultView(callback) {
  const { result, error } = callback.payload;
  return h(
    "div",
    null,
    typeof error === "string" && h("p", { class: "tool-error" }, ...visible(error)),
    typeof result === "string" ? prose(result) : result === null || result === undefined ? null : json(result),
  );
}

/** @param {any[]} list */
function citations(list) {
  return h(
    "ol",
    { class: "citations" },
    list.map((one) => {
      const about = asObject(one);
      const address = textOf(about.url) ?? textOf(about.source) ?? textOf(about.uri);
      const words = textOf(about.title) ?? textOf(about.document_title) ?? address ?? line(asText(about.cited_text ?? one), 120);
      return h("li", null, address === null ? h("span", null, ...visible(words)) : link(address, ...visible(words)));
    }),
  );
}

/** @param {Event} event */
function planNotice(event) {
  const entries = asList(event.payload.entries).map(asObject);
  const now = entries.find((entry) => entry.status === "in_progress");
  return h(
    "details",
    { class: "plan-details" },
    h(
      "summary",
      { class: "notice-body" },
      h("span", { class: "notice-icon", "aria-hidden": "true" }, "☰"),
      h("span", { class: "notice-words" }, planWords(event.payload), now === undefined ? "" : [" · ", ...visible(line(asText(now.content ?? ""), 80))]),
    ),
    planView(entries),
  );
}

/** @param {any} usage */
function tokenWords(usage) {
  const used = asObject(usage);
  if (!used.inputTokens && !used.outputTokens) return null;
  const parts = [
    typeof used.inputTokens === "number" ? `${count(used.inputTokens)} in` : null,
    typeof used.outputTokens === "number" ? `${count(used.outputTokens)} out` : null,
  ].filter((part) => part !== null);
  return parts.length === 0 ? null : `${parts.join(", ")} tokens`;
}

/** @param {Unit} unit */
function usageWords(unit) {
  return [unit.model, tokenWords(unit.usage)].filter(Boolean).join(" · ") || null;
}

/** @param {Promise<string>} text */
function later(text) {
  const element = h("pre", { class: "json", tabindex: "0" }, "…");
  text.then(
    (words) => element.replaceChildren(...visible(words)),
    () => element.replaceChildren("the original could not be had"),
  );
  return element;
}

/** Pieces of base64 as one. @param {string[]} pieces */
function joined(pieces) {
  try {
    return btoa(pieces.map((piece) => atob(piece)).join(""));
  } catch {
    return null;
  }
}
