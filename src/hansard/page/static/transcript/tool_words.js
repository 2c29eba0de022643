/** What a call asks for, in the same words whatever its agent calls the tool. The rules are those of src/hansard/tools.py, and a test compares. */

import { asList, asObject, textOf } from "./words.js";

const PATH = "path file_path absolute_path notebook_path target_file filename";
const FOLDER = "path dir_path target_directory directory dir";
const CWD = "cwd working_directory workdir dir_path directory";
const AGENT = "agent subagent_type agent_type agent_name task_name name";

/** @typedef {"text" | "number" | "flag" | "command" | "steps" | "questions" | "edits"} Type */
/** @typedef {{action: string, kinds: string[], named?: RegExp, fields: [string, Type, boolean, string?][]}} Shape */

/** @type {[string, Type, boolean, string][]} */
const REPLACED = [
  ["old", "text", true, "old_string old_str old_text"],
  ["new", "text", true, "new_string new_str new_text"],
  ["everywhere", "flag", false, "replace_all"],
];

/** In this order they are tried. A field: its name, its type, whether it must be there, and how it is spelled. @type {Shape[]} */
const SHAPES = [
  {
    action: "command",
    kinds: ["execute", "read", "search"],
    fields: [
      ["command", "command", true, "cmd command"],
      ["cwd", "text", false, CWD],
      ["description", "text", false],
      ["background", "flag", false, "run_in_background is_background"],
    ],
  },
  { action: "code", kinds: ["execute"], fields: [["code", "text", true]] },
  { action: "list_folder", kinds: ["read", "search"], named: /^(ls|list)/i, fields: [["path", "text", true, FOLDER]] },
  {
    action: "read_file",
    kinds: ["read"],
    fields: [
      ["path", "text", true, PATH],
      ["offset", "number", false, "offset start_line"],
      ["limit", "number", false],
      ["end", "number", false, "end_line"],
    ],
  },
  { action: "edit_file", kinds: ["edit"], fields: [["path", "text", true, PATH], ...REPLACED] },
  {
    action: "edit_places",
    kinds: ["edit"],
    fields: [
      ["path", "text", true, PATH],
      ["edits", "edits", true],
    ],
  },
  {
    action: "write_file",
    kinds: ["edit"],
    fields: [
      ["path", "text", true, PATH],
      ["content", "text", true, "content file_text contents"],
    ],
  },
  { action: "delete_file", kinds: ["edit"], named: /delete|remove/i, fields: [["path", "text", true, PATH]] },
  {
    action: "find_files",
    kinds: ["search"],
    named: /glob|find|file_?search/i,
    fields: [
      ["pattern", "text", true, "pattern glob_pattern"],
      ["path", "text", false, FOLDER],
    ],
  },
  {
    action: "find_text",
    kinds: ["search"],
    fields: [
      ["pattern", "text", true],
      ["path", "text", false, FOLDER],
    ],
  },
  { action: "search_web", kinds: ["search", "fetch"], named: /web|search|fetch/i, fields: [["query", "text", true]] },
  {
    action: "fetch_page",
    kinds: ["fetch"],
    fields: [
      ["url", "text", true],
      ["prompt", "text", false],
    ],
  },
  {
    action: "start_agent",
    kinds: ["agent"],
    named: /^(?!send|write|follow|resume)/i,
    fields: [
      ["prompt", "text", true, "prompt message task"],
      ["agent", "text", false, AGENT],
      ["description", "text", false],
    ],
  },
  { action: "write_plan", kinds: ["think", "other"], named: /todo|plan/i, fields: [["steps", "steps", true, "todos plan items entries"]] },
  { action: "propose_plan", kinds: ["think", "other"], named: /plan/i, fields: [["plan", "text", true]] },
  { action: "ask", kinds: ["think", "other"], fields: [["questions", "questions", true]] },
];

/** @param {string} name */
function snake(name) {
  return name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, "_").toLowerCase();
}

/** @param {any[]} argv */
function shellLine(argv) {
  const words = argv.map(String);
  if (words.length === 3 && /^(?:.*\/)?(?:ba|z|da)?sh$/.test(words[0]) && /^-l?c$/.test(words[1])) return words[2];
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`)).join(" ");
}

/** @param {Record<string, any>} item @param {string[]} names */
function firstText(item, names) {
  return names.map((name) => item[name]).find((value) => typeof value === "string") ?? null;
}

/** @param {any} value @param {Type} type @returns {any} undefined if the value is not of that type */
function typed(value, type) {
  if (type === "command" && Array.isArray(value)) return shellLine(value);
  if (type === "steps" && Array.isArray(value)) {
    const steps = value.map(asObject).map((item) => {
      const done = typeof item.completed === "boolean" ? (item.completed ? "completed" : "pending") : null;
      return { content: firstText(item, ["content", "step", "text", "description", "title"]), status: item.status ?? done };
    });
    return steps.every((step) => step.content !== null && (step.status === null || typeof step.status === "string")) ? steps : undefined;
  }
  if (type === "questions" && Array.isArray(value)) {
    const questions = value.map(asObject).map((item) => firstText(item, ["question", "title", "header"]));
    return questions.every((question) => question !== null) ? questions : undefined;
  }
  if (type === "edits" && Array.isArray(value)) {
    const edits = value.map((item) => read({ action: "edit", kinds: [], fields: REPLACED }, spelled(item)));
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
 * @param {Shape} shape
 * @param {Record<string, any>} fields
 * @returns {Record<string, any> | null}
 */
function read(shape, fields) {
  /** @type {Record<string, any>} */
  const found = { action: shape.action };
  for (const [name, type, needed, spellings] of shape.fields) {
    const said = (spellings ?? name).split(" ").map((spelling) => fields[spelling]).find((value) => value !== null && value !== undefined);
    if (said === undefined) {
      if (needed) return null;
      continue;
    }
    found[name] = typed(said, type);
    if (found[name] === undefined) return null;
  }
  return found;
}

/** @param {any} args @param {Record<string, any>} fields */
function patch(args, fields) {
  const text = typeof args === "string" ? args : ["patch", "patch_text", "input", "diff"].map((name) => fields[name]).find((one) => one !== undefined);
  const paths = typeof text === "string" ? [...text.matchAll(/^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$/gm)].map((match) => match[1]) : [];
  const { changes } = fields;
  const named = [...paths, ...Object.keys(asObject(changes)), ...asList(changes).map((change) => asObject(change).path), fields.path];
  const texts = named.filter((path) => typeof path === "string");
  return texts.length > 0 && (text || changes) ? { action: "patch", paths: texts, patch: textOf(text) } : null;
}

/** @param {{name: string, args: any, server: string | null}} call */
function serverCall(call) {
  const fields = asObject(call.args);
  if (["args", "providerIdentifier", "toolName"].every((name) => name in fields)) {
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
  for (const shape of SHAPES) {
    if (!shape.kinds.includes(call.kind ?? "other") || !(shape.named ?? /^/).test(call.name)) continue;
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
