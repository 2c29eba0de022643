// @ts-check
/** A new session: with whom, where, and the first thing to say. An agent that is not there says what to do. */

import { h } from "../transcript/dom.js";
import * as api from "./api.js";
import { badge } from "./badge.js";
import { dialog } from "./dialog.js";
import { remember, remembered } from "./theme.js";

const AGENT = "hansard-agent";
const FOLDER = "hansard-folder";

/**
 * @param {import("./agents.js").Agent[]} agents
 * @param {(session: string, agent: string, message: string) => void} made
 */
export function newSession(agents, made) {
  const kept = remembered(AGENT);
  const first = agents.find((agent) => agent.installed && agent.name === kept) ?? agents.find((agent) => agent.installed);
  const here = agents.filter((agent) => agent.installed).map((agent) => row(agent, agent === first));
  const absent = agents.filter((agent) => !agent.installed).map((agent) => row(agent, false));
  const more = h("details", { class: "absent-agents", open: here.length === 0 }, h("summary", null, `${absent.length} more that are not installed`), absent);
  const folder = h("input", { class: "field mono", name: "cwd", placeholder: "where the server was started", $value: remembered(FOLDER) ?? "", spellcheck: "false", dir: "ltr" });
  const model = h("input", { class: "field", name: "model", placeholder: "the agent's own choice", autocomplete: "off" });
  const message = h("textarea", { class: "field", name: "prompt", rows: "4", placeholder: "What is to be done?", dir: "auto" });
  const problem = h("p", { class: "bad", role: "alert", hidden: true });
  const begin = h("button", { class: "button primary" }, "Begin");
  const commandId = crypto.randomUUID();

  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const agent = new FormData(form).get("agent");
    if (typeof agent !== "string") return fail("Choose an agent.");
    begin.disabled = true;
    remember(AGENT, agent);
    remember(FOLDER, folder.value || null);
    const options = { ...(folder.value && { cwd: folder.value }), ...(model.value && { model: model.value }) };
    const wanted = { agent, options, ...(message.value.trim() && { prompt: message.value }), commandId };
    try {
      const { id } = await api.send("POST", "api/sessions", wanted);
      element.close();
      made(id, agents.find((one) => one.name === agent)?.title ?? agent, message.value.trim() && message.value);
    } catch (reason) {
      begin.disabled = false;
      fail(reason instanceof Error ? reason.message : String(reason));
    }
  };
  const fail = (/** @type {string} */ words) => {
    problem.hidden = false;
    problem.textContent = words;
  };

  const form = h(
    "form",
    { onsubmit: submit },
    h("fieldset", { class: "agents" }, h("legend", null, "Agent"), here, absent.length ? more : null),
    h("label", { class: "labelled" }, h("span", null, "First message"), message),
    h("div", { class: "pair" }, h("label", { class: "labelled" }, h("span", null, "Folder it works in"), folder), h("label", { class: "labelled" }, h("span", null, "Model"), model)),
    problem,
    h("div", { class: "dialog-foot" }, begin),
  );
  message.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  const element = dialog({ title: "New session", class: "start" }, form);
  message.focus();
}

/** @param {import("./agents.js").Agent} agent @param {boolean} chosen */
function row(agent, chosen) {
  return h(
    "label",
    { class: `agent-row${agent.installed ? "" : " absent"}` },
    agent.installed ? h("input", { type: "radio", name: "agent", value: agent.name, $checked: chosen }) : null,
    h("span", { class: "agent-words" }, h("span", null, agent.title), agent.installed ? null : h("span", { class: "quiet small" }, agent.problem ?? "not installed")),
    badge(agent.name),
  );
}
