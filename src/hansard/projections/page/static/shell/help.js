// @ts-check
/** What the keys do, and what to try when there is nothing yet. */

import { h } from "../transcript/dom.js";
import { dialog } from "./dialog.js";
import { tell } from "./toasts.js";

/** @param {import("./keys.js").Key[]} keys */
export function help(keys) {
  const rows = keys.map((key) => [h("dt", null, ...caps(key.keys)), h("dd", null, key.what)]);
  dialog(
    { title: "Keys", class: "help" },
    h("dl", { class: "keys" }, ...rows.flat()),
    h("p", { class: "hint" }, "In the message: Enter sends, Shift-Enter begins a new line, / opens the agent's commands. When an agent asks: 1 to 9 choose, Esc says no."),
  );
}

/** @param {string} keys */
function caps(keys) {
  return keys.split(", ").flatMap((one, index) => [index ? " or " : "", ...one.split(" ").map((cap) => h("kbd", null, cap === "Escape" ? "Esc" : cap))]);
}

const COMMANDS = [
  ["hansard run demo", "talk to an agent that needs no account"],
  ["hansard import", "bring in what your agents did before"],
  ["hansard run claude", "put your own agent on the record; also codex, opencode, gemini …"],
];

/** What stands where a session would, when none is open. @param {import("./session_list.js").Sessions} sessions @param {() => void} create */
export function welcome(sessions, create) {
  if (!sessions.known) return h("div", { class: "welcome" }, h("p", { class: "hint", role: "status" }, "Reading the list of sessions …"));
  const any = sessions.all.size > 0;
  return h(
    "div",
    { class: "welcome" },
    h("h1", null, any ? "Choose a session" : "Nothing is on the record yet"),
    h("p", null, any ? "Ctrl-K finds one by its title. Or begin a new one." : "Begin a session here, or try one of these in a terminal; it appears in the list at once."),
    h("button", { type: "button", class: "button primary", onclick: create }, "New session"),
    any ? null : h("dl", { class: "commands" }, ...COMMANDS.flatMap(([command, what]) => [h("dt", null, copyable(command ?? "")), h("dd", null, what)])),
  );
}

/** @param {string} command */
function copyable(command) {
  const copy = async () => {
    await navigator.clipboard.writeText(command);
    tell("Copied.");
  };
  return h("button", { type: "button", class: "command", title: "Copy", onclick: copy }, command);
}
