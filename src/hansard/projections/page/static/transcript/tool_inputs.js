/** What a call asks for, with the same names whatever its agent calls the tool. The tables are those of src/hansard/events/tool_inputs.py. */

import { asList, asObject, textOf } from "./format.js";
import { FILES_IN_PATCH, PATCH_TEXTS, QUESTION_TEXTS, REPLACEMENT, SHELL_OPTION, SHELL_PROGRAM, STEP_TEXTS, TOOL_SHAPES, WRAPPED_CALL } from "./rules.js";

const SHELL = new RegExp(`^(?:${SHELL_PROGRAM})$`);
const OPTION = new RegExp(`^(?:${SHELL_OPTION})$`);
const NAMED = new Map(TOOL_SHAPES.map((shape) => [shape, new RegExp(shape.named, "i")]));

/** @param {string} name */
function snake(name) {
  return name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, "_").toLowerCase();
}

/** @param {any[]} argv */
function shellLine(argv) {
  const words = argv.map(String);
  if (words.length === 3 && SHELL.test(words[0]) && OPTION.test(words[1])) return words[2];
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`)).join(" ");
}

/** @param {Record<string, any>} item @param {string[]} names */
function firstText(item, names) {
  return names.map((name) => item[name]).find((value) => typeof value === "string") ?? null;
}

/** @param {any} value @param {string} type @returns {any} undefined if the value is not of that type */
function typed(value, type) {
  if (type === "command" && Array.isArray(value)) return shellLine(value);
  if (type === "steps" && Array.isArray(value)) {
    const steps = value.map(asObject).map((item) => {
      const done = typeof item.completed === "boolean" ? (item.completed ? "completed" : "pending") : null;
      return { content: firstText(item, STEP_TEXTS), status: item.status ?? done };
    });
    return steps.every((step) => step.content !== null && (step.status === null || typeof step.status === "string")) ? steps : undefined;
  }
  if (type === "questions" && Array.isArray(value)) {
    const questions = value.map(asObject).map((item) => firstText(item, QUESTION_TEXTS));
    return questions.every((question) => question !== null) ? questions : undefined;
  }
  if (type === "edits" && Array.isArray(value)) {
    const edits = value.map((item) => read(REPLACEMENT, spelled(item)));
    return edits.every((edit) => edit !== null) ? edits : undefined;
  }
  if ((type === "text" || type === "command") && typeof value === "string") return value;
  if (type === "number" && Number.isInteger(value)) return value;
  if (type === "flag" && typeof value === "boolean") return value;
  return undefined;
}

/** The arguments by their names in snake case. @param {any} args @returns {Record<string, any>} */
function spelled(args) {
  return Object.fromEntries(Object.entries(asObject(args)).map(([name, value]) => [snake(name), value]));
}

/**
 * @param {typeof REPLACEMENT} shape
 * @param {Record<string, any>} fields
 * @returns {Record<string, any> | null}
 */
function read(shape, fields) {
  /** @type {Record<string, any>} */
  const found = { action: shape.action };
  for (const { name, type, required, spelled: spellings } of shape.fields) {
    const said = spellings.split(" ").map((spelling) => fields[spelling]).find((value) => value !== null && value !== undefined);
    if (said === undefined) {
      if (required) return null;
      continue;
    }
    found[name] = typed(said, type);
    if (found[name] === undefined) return null;
  }
  return found;
}

/** @param {any} args @param {Record<string, any>} fields */
function patch(args, fields) {
  const text = typeof args === "string" ? args : PATCH_TEXTS.map((name) => fields[name]).find((one) => one !== undefined);
  const paths = typeof text === "string" ? [...text.matchAll(new RegExp(FILES_IN_PATCH, "gm"))].map((match) => match[1]) : [];
  const { changes } = fields;
  const named = [...paths, ...Object.keys(asObject(changes)), ...asList(changes).map((change) => asObject(change).path), fields.path];
  const texts = named.filter((path) => typeof path === "string");
  return texts.length > 0 && (text || changes) ? { action: "patch", paths: texts, patch: textOf(text) } : null;
}

/** @param {{name: string, args: any, server: string | null}} call */
function serverCall(call) {
  const fields = asObject(call.args);
  if (WRAPPED_CALL.every((name) => name in fields)) {
    return { action: "call_server", tool: String(fields.toolName), arguments: fields.args, server: call.server };
  }
  if (call.server === null) {
    const parts = call.name.split("__");
    if (parts.length >= 3 && parts[0] === "mcp") return { action: "call_server", tool: parts.slice(2).join("__"), arguments: call.args, server: parts[1] };
    return { action: "call_server", tool: call.name, arguments: call.args, server: null };
  }
  const escaped = call.server.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const prefix = new RegExp(`^(?:mcp_{1,2})?${escaped}(?:__|[_-])`).exec(call.name);
  return { action: "call_server", tool: prefix ? call.name.slice(prefix[0].length) : call.name, arguments: call.args, server: call.server };
}

/**
 * What a call asks for; null if nobody knows.
 * @param {{name: string, kind: string | null, args: any, server: string | null}} call
 * @returns {Record<string, any> | null}
 */
export function toolInput(call) {
  if (call.kind === "mcp") return serverCall(call);
  const given = spelled(call.args);
  const edits = asList(given.edits);
  const fields = edits.length === 1 ? { ...given, ...spelled(edits[0]) } : given; // a list of one edit is that edit
  for (const shape of TOOL_SHAPES) {
    if (!shape.kinds.includes(call.kind ?? "other") || !NAMED.get(shape)?.test(call.name)) continue;
    const found = read(shape, fields);
    if (found !== null) return found;
  }
  return call.kind === "edit" ? patch(call.args, fields) : null;
}

/**
 * What a call is about, for the line that stands for it.
 * @param {Record<string, any> | null} input
 * @param {string | null} title the agent's own word
 * @returns {string}
 */
export function subject(input, title) {
  switch (input?.action) {
    case "command":
      return input.command;
    case "code":
      return input.code;
    case "read_file":
    case "list_folder":
    case "write_file":
    case "edit_file":
    case "edit_places":
    case "delete_file":
      return input.path;
    case "patch":
      return input.paths.join(", ");
    case "find_text":
    case "find_files":
      return input.path ? `${input.pattern} in ${input.path}` : input.pattern;
    case "search_web":
      return input.query;
    case "fetch_page":
      return input.url;
    case "start_agent":
      return input.description ?? input.prompt;
    case "write_plan":
      return `${input.steps.filter((/** @type {any} */ step) => step.status === "completed").length} of ${input.steps.length} done`;
    case "propose_plan":
      return input.plan;
    case "ask":
      return input.questions.join(" ");
    case "call_server":
      return title ?? "";
    default:
      return title ?? "";
  }
}
