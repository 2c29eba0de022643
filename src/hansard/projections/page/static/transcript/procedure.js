/** Procedure in words: what a hairline between speeches says about an event, if it says anything. */

import { asList, asObject, asText, capital, count, duration, line, plural, textOf } from "./format.js";
import { LEVELS } from "./rules.js";

/** @typedef {import("./types").Event} Event @typedef {import("./types").Notice} Notice */

/** What to do about an error, by its code. */
const NEXT = /** @type {Record<string, string>} */ ({
  provider_auth: "Sign in again or check the key and the account, then send the message once more.",
  api_error: "The provider failed. Send the message once more; if it goes on, look at the provider's status.",
  context_overflow: "The conversation is too long for the model. Compact it, or start a new session.",
  output_length: "The answer was too long for the model. Ask for it in parts, or raise the limit.",
  aborted: "It was stopped. Send a message to go on.",
  rate_limit: "Wait until the limit starts anew, or use another model.",
  max_turns: "The agent reached its limit of steps. Say “continue” to let it go on.",
  max_budget: "The agent reached its budget. Raise it to go on.",
  execution_error: "The agent itself failed. Its original message says more; send a message to start it again.",
  unknown: "Nobody knows this error. Its original message says more.",
});

const ENDS = /** @type {Record<string, {tone: Notice["tone"], icon: string, words: string, next: string}>} */ ({
  interrupted: { tone: "stopped", icon: "◼", words: "Interrupted", next: "Send a message to go on." },
  error: { tone: "bad", icon: "✗", words: "Ended with an error", next: "" },
  refused: { tone: "bad", icon: "⊘", words: "The model refused", next: "Say it in another way, or ask another model." },
  max_tokens: { tone: "bad", icon: "✂", words: "Cut off: the answer reached its limit", next: NEXT.output_length },
  denied: { tone: "stopped", icon: "⊘", words: "Ended after a permission was denied", next: "" },
  lost: { tone: "bad", icon: "✗", words: "Lost: the agent went away without an end", next: "Send a message to start it again." },
});

/** @param {Partial<Notice> & {words: string}} notice @returns {Notice} */
function notice(notice) {
  return { tone: "quiet", icon: "", ...notice };
}

/** @param {any} error @returns {Notice} */
function ofError(error) {
  const code = textOf(error.code) ?? "unknown";
  const about = [error.providerCode, error.status].filter((word) => word !== undefined && word !== null && word !== code).join(" · ");
  const waits = typeof error.retryAfterMs === "number" ? `It is tried again in ${duration(error.retryAfterMs)}.` : null;
  return {
    tone: waits === null ? "bad" : "wait",
    icon: waits === null ? "✗" : "↻",
    words: asText(error.message ?? "an error without a message"),
    code: about ? `${code} · ${about}` : code,
    next: waits ?? (Object.hasOwn(NEXT, code) ? NEXT[code] : NEXT.unknown),
    more: error.details,
  };
}

/** @param {any} payload @returns {Notice | null} */
function ofStatus(payload) {
  const status = asText(payload.status);
  const detail = asObject(payload.detail);
  if (/retr/i.test(status)) {
    const wait = detail.retryDelayMs ?? detail.retryInMs ?? detail.delayMs;
    const attempt = detail.attempt ?? detail.retryAttempt;
    const words = [
      "Trying again",
      typeof wait === "number" ? `in ${duration(wait)}` : null,
      attempt !== undefined ? `(attempt ${attempt}${detail.maxRetries !== undefined ? ` of ${detail.maxRetries}` : ""})` : null,
    ];
    return notice({ tone: "wait", icon: "↻", words: words.filter(Boolean).join(" "), more: payload.detail });
  }
  if (status === "compacting") return notice({ tone: "info", icon: "⇲", words: "Compacting the conversation" });
  if (status === "step_start") return notice({ icon: "", words: "" });
  if (/hook/i.test(status)) return ofHook(status, detail, payload.detail);
  if (/warning|deprecat|^(informational|notice)$/i.test(status)) {
    const said = [detail.summary, detail.message, detail.content, detail.title].find((text) => typeof text === "string" && text !== "");
    return notice({ icon: "△", words: line(said ?? status), more: payload.detail });
  }
  return null;
}

/** @param {string} status @param {Record<string, any>} detail @param {any} more @returns {Notice | null} */
function ofHook(status, detail, more) {
  if (status === "hook_started") return null;
  const name = detail.hookName ?? detail.hookEvent ?? status;
  const failed = /error|block|fail/i.test(status) || (typeof detail.exitCode === "number" && detail.exitCode !== 0);
  const said = [detail.output, detail.stdout, detail.content, detail.stderr].find((text) => typeof text === "string" && text.trim() !== "");
  if (!failed && said === undefined) return null;
  const words = `Hook ${asText(name)}${failed ? " objected" : ""}${said === undefined ? "" : `: ${line(said, 100)}`}`;
  return notice({ tone: failed ? "wait" : "quiet", icon: "⚑", words, more });
}

/** Words for the life of a session. Any other subtype is named as it is. */
const LIFE = /** @type {Record<string, string>} */ ({
  archived: "Archived",
  cleared: "Conversation cleared",
  closed: "Session closed",
  deleted: "Deleted at the agent",
  resting: "The agent was stopped; a message starts it again",
  resumed: "Resumed",
  revert_cleared: "Going back was called off",
  revert_committed: "Went back to an earlier message",
  revert_staged: "Going back to an earlier message",
  reverted: "Went back to an earlier message",
  rewound: "Went back to an earlier message",
  switched: "Another session of the agent goes on",
  unarchived: "Taken out of the archive",
});
/** @param {any} life @returns {Notice | null} */
function ofLife(life) {
  const subtype = asText(life.subtype);
  const detail = asObject(life.detail);
  if (subtype === "compacted") {
    const before = detail.pre_tokens ?? detail.preTokens;
    const after = detail.post_tokens ?? detail.postTokens;
    const sizes = typeof before === "number" ? `: ${count(before)}${typeof after === "number" ? ` → ${count(after)}` : ""} tokens` : "";
    return notice({ tone: "info", icon: "⇲", words: `Conversation compacted${sizes}`, more: life.text ?? life.detail });
  }
  if (subtype === "log_recovered") {
    const words = `The log was damaged and was taken up again${life.reason ? `: ${asText(life.reason)}` : ""}`;
    return notice({ tone: "bad", icon: "△", words, next: "`hansard verify` says what is missing.", more: life.detail });
  }
  if (subtype === "renamed") return life.title === undefined ? null : notice({ icon: "✎", words: `Renamed: ${asText(life.title)}` });
  if (subtype === "forked") return notice({ tone: "info", icon: "⑂", words: "Forked from another session", more: life.detail });
  if (subtype === "parent_found") {
    const place = typeof life.parentSeq === "number" ? ` §${life.parentSeq}` : "";
    const kind = detail.kind === "subagent" ? "Subagent" : "Fork";
    const copy = Array.isArray(detail.copied) && detail.copied.length > 0 ? "; what is above is a copy" : "";
    return notice({ tone: "info", icon: "⑂", words: `${kind} of ${asText(life.parentSessionId)}${place}${copy}` });
  }
  if (subtype === "summary") return notice({ icon: "≡", words: `Summary: ${line(asText(life.text ?? ""))}`, more: life.text });
  if (subtype === "replay_ended") return null;
  if (subtype === "message_removed" || subtype === "part_removed") {
    return notice({ tone: "info", icon: "⌫", words: subtype === "part_removed" ? "A part of a message was removed" : "A message was removed" });
  }
  const words = Object.hasOwn(LIFE, subtype) ? LIFE[subtype] : `Session: ${subtype.replaceAll("_", " ")}`;
  return notice({ tone: "quiet", icon: "·", words: life.reason ? `${words}: ${asText(life.reason)}` : words, more: life.detail });
}

/** @param {any} process @returns {Notice | null} */
function ofProcess(process) {
  switch (process.event) {
    case "stderr":
      return notice({ icon: "⌁", words: `stderr: ${line(asText(process.text ?? ""))}`, more: process.text });
    case "exited": {
      const bad = process.exitCode !== 0 && process.exitCode !== undefined;
      const how = process.signal !== undefined ? ` by signal ${process.signal}` : process.exitCode !== undefined ? ` with code ${process.exitCode}` : "";
      return notice({ tone: bad ? "bad" : "quiet", icon: bad ? "✗" : "◇", words: `The agent's process ended${how}`, more: process.text });
    }
    case "killed":
      return notice({ tone: "stopped", icon: "◼", words: "The agent's process was stopped", more: process.text });
    case "relaunched":
      return notice({ tone: "info", icon: "↻", words: "The agent's process was started again" });
    default:
      return null;
  }
}

/** @param {any} limit @returns {Notice | null} */
function ofLimit(limit) {
  const status = textOf(limit.status);
  const bites = status !== null && !/^(ok|allowed|active|normal)$/i.test(status);
  if (!bites && !(typeof limit.used === "number" && limit.used >= 0.8)) return null;
  const words = [
    "Rate limit",
    textOf(limit.window),
    typeof limit.used === "number" ? `${Math.round(100 * limit.used)} % used` : null,
    bites ? status?.replaceAll("_", " ") : null,
    typeof limit.resetsAt === "number" ? `new at ${new Date(limit.resetsAt).toISOString().slice(0, 16).replace("T", " ")} UTC` : null,
  ];
  return notice({ tone: "wait", icon: "◔", words: words.filter(Boolean).join(" · "), more: limit.detail });
}

/** @param {any} auth @returns {Notice | null} */
function ofAuth(auth) {
  if (typeof auth.error === "string") {
    return notice({ tone: "bad", icon: "◆", words: `Signing in failed: ${auth.error}`, next: NEXT.provider_auth });
  }
  if (!auth.isAuthenticating) return null;
  return notice({ tone: "wait", icon: "◆", words: `Signing in${auth.link ? `: ${auth.link}` : ""}`, more: asList(auth.output).length ? auth.output : undefined });
}

/** @param {Event} event @returns {Notice | null} */
function ofTeam(event) {
  const { memberId, taskId, status, text, detail } = event.payload;
  const who = memberId ?? taskId ?? event.payload.teamId ?? "team";
  const words = [asText(who), status, text].filter((word) => word !== undefined && word !== null).join(": ");
  return notice({ icon: "⁂", words: line(words), more: text !== undefined && String(text).length > 160 ? text : detail });
}

/** @param {any} raw @returns {Notice} */
function ofRaw(raw) {
  const words = `Not understood${raw.kind ? ` (${asText(raw.kind)})` : ""}: ${asText(raw.reason ?? "unknown").replaceAll("_", " ")}`;
  return notice({ icon: "?", words, more: raw.detail });
}

/** @param {any} switched @returns {Notice} */
function ofSwitch(switched) {
  const from = textOf(switched.fromAgentId);
  const words = `${from === null ? "" : `${capital(from)} hands over to `}${capital(asText(switched.toAgentId))}${from === null ? " goes on" : ""}`;
  return notice({ tone: "info", icon: "⇄", words });
}

/** @param {any} stopped @returns {Notice} */
function ofInterrupt(stopped) {
  const words = { user_cancel: "Interrupted", timeout: "Interrupted: it took too long", error: "Interrupted by an error" };
  const said = words[/** @type {keyof typeof words} */ (stopped.reason)] ?? "Interrupted";
  return notice({ tone: "stopped", icon: "◼", words: stopped.by ? `${said} by ${asText(stopped.by)}` : said });
}

/**
 * The notice of an event, by its type. Those with words that depend on what was before are made where that is known.
 * @type {Record<string, (payload: any, event: Event) => Notice | null>}
 */
const OF = {
  agent_switch: ofSwitch,
  auth_status: ofAuth,
  control_response: (answer) => (answer.ok === false ? notice({ icon: "△", words: `Request failed: ${asText(answer.method ?? "")}`, more: answer.error }) : null),
  error: ofError,
  interrupt: ofInterrupt,
  mcp_status: (server) =>
    /fail|error|disconnect|auth|closed/i.test(asText(server.state))
      ? notice({ tone: "wait", icon: "△", words: `Tool server ${asText(server.server)}: ${asText(server.state)}`, more: server.detail })
      : null,
  process: ofProcess,
  rate_limit: ofLimit,
  raw: ofRaw,
  session_lifecycle: ofLife,
  status_change: ofStatus,
  team_message: (_, event) => ofTeam(event),
  team_state_change: (_, event) => ofTeam(event),
  team_task_update: (_, event) => ofTeam(event),
  tool_use_summary: (used) => notice({ icon: "≡", words: line(asText(used.summary)), more: String(used.summary).length > 160 ? used.summary : undefined }),
};

/**
 * The reading level of an event: "conversation", "procedure" or "record". Events of newer versions are procedure.
 * @param {Event} event
 * @returns {string}
 */
export function levelOf(event) {
  const level = Object.hasOwn(LEVELS, event.type) ? LEVELS[event.type] : "procedure";
  if (typeof level === "string") return level;
  const text = asText(asObject(event.payload)[level.field] ?? "");
  return level.patterns.find(([pattern]) => new RegExp(pattern, "i").test(text))?.[1] ?? level.otherwise;
}

/** The types that can become a notice by themselves. */
export const NOTICED = Object.keys(OF);

/**
 * What a hairline says about an event; null if it says nothing.
 * @param {Event} event
 * @returns {Notice | null}
 */
export function noticeOf(event) {
  return levelOf(event) === "record" ? null : noticeByType(event);
}

/** @param {Event} event @returns {Notice | null} */
function noticeByType(event) {
  return Object.hasOwn(OF, event.type) ? OF[event.type](event.payload, event) : null;
}

/**
 * An event of a type that nobody knows, or without its payload.
 * @param {Event} event
 * @returns {Notice}
 */
export function unknown(event) {
  if (event.large) return notice({ icon: "⋯", words: `${event.type}: too long to be sent (${count(event.large.bytes)} bytes); its original is one click away` });
  return notice({ icon: "?", words: `An event of a type that this version does not know: ${event.type}`, more: event.payload });
}

/**
 * How a turn ended, when it did not simply end.
 * @param {any} end
 * @param {string | null} told the message of an error that stands above it already
 * @returns {Notice | null}
 */
export function noticeOfEnd(end, told) {
  if (end.status === "completed" || typeof end.status !== "string") return null;
  const known = Object.hasOwn(ENDS, end.status) ? ENDS[end.status] : { tone: /** @type {const} */ ("bad"), icon: "✗", words: `Ended: ${end.status}`, next: "" };
  const error = end.error ? ofError(end.error) : null;
  const repeated = error === null || error.words === told;
  const cause = repeated || end.error.code === "aborted" ? "" : `: ${error.words}`;
  const next = repeated && end.status === "error" ? null : known.next || error?.next || null;
  return { tone: known.tone, icon: known.icon, words: known.words + cause, next: known.tone === "stopped" ? null : next, code: repeated ? null : (error?.code ?? null) };
}

/**
 * Who is there now, if that is not who was there before.
 * @param {any} init
 * @param {any} before
 * @returns {Notice | null}
 */
export function noticeOfInit(init, before) {
  const facts = (/** @type {any} */ one) => [capital(asText(one.agentId ?? "")), one.agentVersion, one.model, one.permissionMode, one.cwd];
  const now = facts(init);
  if (before !== null && JSON.stringify(facts(before)) === JSON.stringify(now)) return null;
  const words = now.filter((fact) => typeof fact === "string" && fact !== "").join(" · ");
  return words === "" ? null : notice({ icon: "◇", words });
}

/**
 * What was set, if it is not what was set before.
 * @param {any} change
 * @param {{model: string | null, permissionMode: string | null, modeId: string | null}} before
 * @returns {Notice | null}
 */
export function noticeOfChange(change, before) {
  const words = [
    ["Model", change.model, before.model],
    ["Permissions", change.permissionMode, before.permissionMode],
    ["Mode", change.modeId, before.modeId],
  ]
    .filter(([, now, was]) => typeof now === "string" && now !== was)
    .map(([name, now, was]) => `${name}: ${was === null ? "" : `${was} → `}${now}`);
  if (words.length === 0) return null;
  const why = textOf(asObject(change.options).content) ?? textOf(asObject(change.options).reason);
  return notice({ tone: "info", icon: "⚙", words: words.join(" · ") + (why === null ? "" : ` (${why})`) });
}

/**
 * A permission that no call on the record asks for.
 * @param {any} asked
 * @param {any} answered
 * @returns {Notice}
 */
export function noticeOfPermission(asked, answered) {
  const what = textOf(asked.description) ?? `${asText(asked.toolName ?? "something")} ${line(asText(asked.input ?? ""), 80)}`;
  const decision = answered === null ? "waiting for an answer" : (textOf(answered.decision) ?? `withdrawn: ${asText(answered.reason ?? "")}`);
  const words = { allow: "allowed", deny: "denied", cancelled: "cancelled" };
  const said = words[/** @type {keyof typeof words} */ (decision)] ?? decision;
  return notice({ tone: answered === null ? "wait" : decision === "deny" ? "stopped" : "info", icon: "◆", words: `Permission for ${line(what)}: ${said}`, more: asked.input });
}

/** @param {any} plan @returns {string} */
export function planWords(plan) {
  const entries = asList(plan.entries);
  const done = entries.filter((entry) => entry.status === "completed").length;
  return `Plan: ${done} of ${plural(entries.length, "step")} done`;
}
