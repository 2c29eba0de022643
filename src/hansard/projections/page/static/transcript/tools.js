/** Calls of tools: one line with the outcome; what was asked and what came back are made when somebody opens it. */

import { blockView, folded, json } from "./blocks.js";
import { coloured, languageOf } from "./code.js";
import { diffView } from "./diff.js";
import { h, visible } from "./dom.js";
import { link, prose } from "./markdown.js";
import { printed, tail } from "./terminal.js";
import { subject, toolInput } from "./tool_inputs.js";
import { asList, asObject, asText, between, duration, line, plural, textOf } from "./format.js";

/** @typedef {import("./types").ToolItem} ToolItem @typedef {import("./types").ToolState} ToolState @typedef {import("./types").Hooks} Hooks */

/** So many lines of a running command are shown without a click. */
const TAIL = 5;
/** So much of an output is drawn; the rest when somebody asks. */
const SHOWN = 60_000;

const MARKS = { pending: "○", running: "◐", done: "✓", error: "✗", interrupted: "◼", denied: "⊘" };

/**
 * Where a call stands, by the log alone.
 * @param {ToolItem} tool
 * @returns {ToolState}
 */
export function stateOf(tool) {
  const denied = tool.answered?.payload.decision === "deny";
  if (tool.result !== null) {
    const given = tool.result.payload;
    const failed = given.isError === true || typeof given.error === "string" || (typeof given.exitCode === "number" && given.exitCode !== 0);
    if (!failed) return given.background === true ? (TASKS[tool.task?.status ?? "running"] ?? "interrupted") : "done";
    if (denied) return "denied";
    return tool.stopped ? "interrupted" : "error";
  }
  if (denied) return "denied";
  if (tool.turn.unfinished) return "interrupted";
  if (tool.turn.end !== null && tool.lane?.key.startsWith("\0") !== true) return "interrupted";
  if (tool.called === null || (tool.asked !== null && tool.answered === null) || (tool.question !== null && tool.answer === null)) return "pending";
  return "running";
}

/** @type {Record<string, ToolState>} */
const TASKS = { running: "running", completed: "done", error: "error" };

/** @param {ToolItem} tool @param {ToolState} state */
function outcome(tool, state) {
  const given = tool.result?.payload;
  const isBackground = given?.background === true;
  const took = isBackground ? (tool.task?.durationMs ?? null) : typeof given?.durationMs === "number" && given.durationMs > 0 ? given.durationMs : between(tool.called?.timestamp, tool.result?.timestamp);
  const words = {
    pending: tool.asked !== null || tool.question !== null ? "waiting for an answer" : "being written",
    running: isBackground ? "running in the background" : "running",
    done: "",
    error: typeof given?.exitCode === "number" ? String(given.exitCode) : "failed",
    interrupted: isBackground ? (tool.task?.status ?? "") : tool.turn.unfinished ? "unfinished" : "interrupted",
    denied: "denied",
  };
  return [words[state], took === null ? "" : duration(took)].filter(Boolean).join(" · ");
}

/** @param {ToolItem} tool */
export function inputOf(tool) {
  return toolInput({ name: tool.name ?? "", kind: tool.family, args: tool.args, server: tool.server });
}

/** A call in a few words, for "running …". @param {ToolItem} tool */
export function toolName(tool) {
  return tool.name ?? (tool.lane === null ? "a tool" : "a sub-agent");
}

/**
 * The line that stands for a call.
 * @param {ToolItem} tool
 * @returns {(Node | string)[]}
 */
export function summaryOf(tool) {
  const state = stateOf(tool);
  const input = inputOf(tool);
  const name = input?.action === "call_server" ? input.tool : toolName(tool);
  const about = subject(input, tool.title) || (tool.called === null ? line(tool.input, 100) : input === null ? argumentWords(tool.args) : "");
  const steps = tool.lane === null ? 0 : tool.lane.units.length;
  return [
    h("span", { class: "mark", "aria-hidden": "true" }, MARKS[state]),
    h("span", { class: "tool-name" }, ...visible(name)),
    input?.server ? h("span", { class: "tool-server" }, ...visible(input.server)) : "",
    h("span", { class: "tool-args" }, ...visible(line(about, 200))),
    steps > 0 ? h("span", { class: "tool-steps" }, plural(steps, "step")) : "",
    h(
      "span",
      { class: "tool-result", "data-event-id": tool.result === null ? null : tool.result.id || tool.result.seq },
      h("span", { class: "word" }, state === "done" ? h("span", { class: "unheard" }, "done ") : "", outcome(tool, state)),
    ),
  ];
}

/** @param {any} args */
function argumentWords(args) {
  if (typeof args === "string") return args;
  const fields = Object.entries(asObject(args));
  return fields.map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");
}

/** @param {ToolItem} tool */
function outputText(tool) {
  return tool.output.map((part) => part.text).join("");
}

/** The end of what a running command has printed so far. @param {ToolItem} tool */
export function tailOf(tool) {
  if (stateOf(tool) !== "running" || tool.outputSize === 0) return null;
  const end = tail(outputText(tool).slice(-8000), TAIL);
  return h("pre", { class: "tool-tail" }, ...printed(end.text));
}

/**
 * Text that may be long: its beginning and end, the rest on demand.
 * @param {string} text
 * @param {(text: string) => (Node | string)[]} draw
 * @param {string} [className]
 */
function long(text, draw, className = "output-text") {
  if (text.length <= SHOWN) return h("pre", { class: className, tabindex: "0" }, ...draw(text));
  const half = SHOWN / 2;
  const pre = h("pre", { class: className, tabindex: "0" }, ...draw(text.slice(0, half)));
  const more = h("button", { type: "button", class: "more", onclick: () => pre.replaceChildren(...draw(text)) }, `… show ${plural(text.length - SHOWN, "more character")} …`);
  pre.append(more, ...draw(text.slice(-half)));
  return pre;
}

/** @param {ToolItem} tool @param {Record<string, any> | null} input @returns {(Node | null | false)[]} */
function asked(tool, input) {
  if (tool.called === null) return [tool.input !== "" && h("pre", { class: "tool-input" }, ...visible(tool.input.slice(-SHOWN)))];
  switch (input?.action) {
    case "command":
      return [
        h("pre", { class: "tool-input command", tabindex: "0" }, h("span", { class: "prompt", "aria-hidden": "true" }, "$ "), ...coloured(input.command, "bash")),
        input.description && h("p", { class: "about" }, ...visible(input.description)),
      ];
    case "code":
      return [h("pre", { class: "tool-input", tabindex: "0" }, ...coloured(input.code, "javascript"))];
    case "edit_file":
      return hasDiff(tool) ? [] : [diffView({ path: input.path, oldText: input.old, newText: input.new })];
    case "edit_places":
      return hasDiff(tool) ? [] : input.edits.map((/** @type {any} */ edit) => diffView({ path: input.path, oldText: edit.old, newText: edit.new }));
    case "write_file":
      return hasDiff(tool) ? [] : [diffView({ path: input.path, oldText: null, newText: input.content })];
    case "patch":
      return hasDiff(tool) ? [] : [input.patch === null ? json(tool.args) : diffView({ path: input.paths.join(", "), diff: input.patch })];
    case "fetch_page":
      return [h("p", { class: "about" }, link(input.url, ...visible(input.url))), input.prompt && h("p", { class: "about" }, ...visible(input.prompt))];
    case "start_agent":
      return [
        input.agent && h("p", { class: "about" }, ...visible(input.agent)),
        tool.lane?.units[0]?.kind !== "said" && h("div", { class: "task" }, prose(input.prompt)),
      ];
    case "write_plan":
      return [planView(input.steps)];
    case "propose_plan":
      return [prose(input.plan)];
    case "read_file":
    case "list_folder":
    case "find_text":
    case "find_files":
    case "search_web":
      return [Object.keys(asObject(tool.args)).length > 1 && folded("arguments", () => json(tool.args))];
    case "call_server":
      return [json(input.arguments ?? null)];
    default:
      return tool.args === undefined || tool.args === null ? [] : [json(tool.args)];
  }
}

/** @param {ToolItem} tool */
function hasDiff(tool) {
  return [...asList(tool.result?.payload.content), ...asList(tool.content)].some((block) => asObject(block).type === "diff");
}

/** @param {any[]} steps */
export function planView(steps) {
  const marks = /** @type {Record<string, string>} */ ({ completed: "✓", in_progress: "◐", pending: "○", cancelled: "⊘" });
  return h(
    "ul",
    { class: "plan" },
    steps.map((step) => {
      const status = textOf(step.status) ?? "pending";
      return h(
        "li",
        { class: `plan-${Object.hasOwn(marks, status) ? status : "pending"}` },
        h("span", { class: "mark", role: "img", "aria-label": status.replaceAll("_", " ") }, Object.hasOwn(marks, status) ? marks[status] : "○"),
        h("span", null, ...visible(asText(step.content ?? ""))),
      );
    }),
  );
}

/** @param {ToolItem} tool @param {Record<string, any> | null} input @param {Hooks} hooks @returns {(Node | null | false)[]} */
function gave(tool, input, hooks) {
  if (tool.result === null) {
    const soFar = tool.output.length > 0 ? long(outputText(tool).slice(-SHOWN), printed) : null;
    return [soFar, ...asList(tool.content).map((block) => blockView(block, hooks))];
  }
  const given = tool.result.payload;
  const content = asList(given.content);
  const rich = content.filter((block) => asObject(block).type !== "text");
  const said = content.filter((block) => asObject(block).type === "text").map((block) => asText(block.text)).join("\n");
  const whole = content.length > 0 ? said : textResult(given.result);
  const text = whole !== null && whole !== "" ? whole : outputText(tool);
  const diffs = rich.length > 0 ? rich : asList(tool.content).filter((block) => asObject(block).type === "diff");
  const path = input?.action === "read_file" ? input.path : null;
  return [
    typeof given.error === "string" && given.error !== text && h("p", { class: "tool-error" }, ...visible(given.error)),
    ...diffs.map((block) => blockView(block, hooks)),
    text !== "" && long(text, path === null ? printed : (part) => coloured(part, languageOf(path))),
    text === "" && rich.length === 0 && given.result !== null && given.result !== undefined && given.result !== "" && json(given.result),
    typeof given.exitCode === "number" && h("p", { class: "outcome" }, `exit code ${given.exitCode}`),
    text !== "" && given.result !== null && typeof given.result === "object" && content.length > 0 && folded("the result as the agent has it", () => json(given.result)),
  ];
}

/** The text of a result, where it is one or holds one; null where it is other JSON. @param {any} result @returns {string | null} */
function textResult(result) {
  if (typeof result === "string") return result;
  const fields = asObject(result);
  const known = ["output", "stdout", "text", "content"].map((name) => fields[name]).find((value) => typeof value === "string");
  if (known !== undefined) return typeof fields.stderr === "string" && fields.stderr !== "" ? `${known}${known.endsWith("\n") || known === "" ? "" : "\n"}${fields.stderr}` : known;
  return null;
}

/** @param {ToolItem} tool @returns {(Node | false)[]} */
function permission(tool) {
  const { asked: question, answered } = tool;
  if (question === null) return [];
  const decision = answered === null ? "no answer yet" : (answered.payload.decision ?? `withdrawn: ${asText(answered.payload.reason ?? "")}`);
  const words = { allow: "allowed", deny: "denied", cancelled: "cancelled" };
  const option = asList(question.payload.options).find((one) => asObject(one).optionId === answered?.payload.optionId);
  const said = [words[/** @type {keyof typeof words} */ (decision)] ?? decision, textOf(asObject(option).name), textOf(answered?.payload.message), answered?.payload.by ? `by ${answered.payload.by}` : null];
  return [
    h("p", { class: "permission-record" }, "◆ Permission: ", ...visible(said.filter(Boolean).join(" · "))),
    answered?.payload.updatedInput !== undefined && answered?.payload.updatedInput !== null && folded("allowed with another input", () => json(answered.payload.updatedInput)),
  ];
}

/** Questions and what was answered. @param {import("./types").Event | null} question @param {import("./types").Event | null} answer */
export function questionView(question, answer) {
  if (question === null) return null;
  const asked = asList(question.payload.questions).map(asObject);
  return h(
    "div",
    { class: "question-record" },
    typeof question.payload.message === "string" && h("p", null, ...visible(question.payload.message)),
    asked.map((one) => h("p", null, ...visible(asText(one.question ?? one.title ?? one.header ?? "")))),
    asked.length === 0 && question.payload.schema !== undefined && question.payload.schema !== null && folded("the form", () => json(question.payload.schema)),
    answer === null ? h("p", { class: "about" }, "no answer yet") : json(answer.payload.values ?? answer.payload.action ?? answer.payload.reason ?? null),
  );
}

/**
 * All there is of a call.
 * @param {ToolItem} tool
 * @param {Hooks} hooks
 * @param {HTMLElement | null} nested what the sub-agent said
 */
export function bodyOf(tool, hooks, nested) {
  const input = inputOf(tool);
  const parts = [
    ...asked(tool, input),
    ...permission(tool),
    questionView(tool.question, tool.answer),
    nested,
    ...gave(tool, input, hooks),
  ];
  const made = parts.filter((part) => part !== null && part !== false && part !== undefined);
  return made.length > 0 ? made : [h("p", { class: "about" }, "nothing yet")];
}
