/** A session in a file of its own: the same renderer, fed from the file, which also contains the state of the session. */

import { h } from "./dom.js";
import { Inspector } from "./inspector.js";
import { Transcript } from "./transcript.js";
import { money } from "./format.js";

const lines = (document.getElementById("events")?.textContent ?? "").split("\n");
const events = lines.filter((line) => line !== "").map((line) => JSON.parse(line));
// A file that was never in a store has no numbers of its own.
events.forEach((event, index) => (event.seq ||= index + 1));
const state = JSON.parse(document.getElementById("state")?.textContent ?? "{}");

const main = h("main", { class: "standalone-transcript" });
const side = h("aside", { class: "standalone-side", hidden: true, "aria-label": "Inspector" });
const title = h("h1");
const facts = h("p", { class: "standalone-facts" });
const found = h("span", { class: "standalone-found", role: "status" });
const search = h("input", { type: "search", placeholder: "find", "aria-label": "Find in the session" });
document.body.append(h("header", { class: "standalone-head" }, h("div", null, title, facts), h("div", { class: "standalone-tools" }, search, found, button("tools", tools), button("thinking", thinking), button("procedure", procedure), button("inspector", inspect))), main, side);

const transcript = new Transcript(main, { onSelect: (seq) => chosen(seq) });
/** @type {Inspector | null} */
let inspector = null;
document.title = state.title ?? "A session on the record";
title.textContent = document.title;
facts.textContent = [state.agentId, state.model, state.cwd, state.workspace?.branch, state.costUsd ? money(state.costUsd) : null].filter(Boolean).join(" · ");
transcript.replayEvents(events, state);
transcript.end(true);
addEventListener("hashchange", linked);
linked();

/** @type {ReturnType<Transcript["find"]> | null} */
let finding = null;
search.addEventListener("input", () => {
  finding = transcript.find(search.value);
  tell(finding.count, finding.index);
});
search.addEventListener("keydown", (key) => {
  if (key.key !== "Enter" || finding === null) return;
  const at = key.shiftKey ? finding.previous() : finding.next();
  tell(at.count, at.index);
});

/** @param {number} count @param {number} index */
function tell(count, index) {
  found.textContent = search.value === "" ? "" : count === 0 ? "nothing" : `${index + 1} of ${count}`;
}

/** @param {string} words @param {(pressed: boolean) => void} act */
function button(words, act) {
  const element = h("button", { type: "button", "aria-pressed": "false", onclick: toggled }, words);
  return element;
  function toggled() {
    const pressed = element.getAttribute("aria-pressed") !== "true";
    element.setAttribute("aria-pressed", String(pressed));
    act(pressed);
  }
}

/** @param {boolean} open */
function tools(open) {
  if (open) transcript.openAll();
  else transcript.closeAll();
}

/** @param {boolean} show */
function thinking(show) {
  transcript.showThinking(show);
}

/** @param {boolean} show */
function procedure(show) {
  transcript.showProcedure(show);
}

/** @param {boolean} show */
function inspect(show) {
  side.hidden = !show;
  inspector ??= new Inspector(side, transcript);
  inspector.update();
}

/** @param {number} seq */
function chosen(seq) {
  history.replaceState(null, "", `#${seq}`);
  inspector?.select(seq);
}

function linked() {
  const seq = Number(location.hash.slice(1));
  if (seq > 0) transcript.select(seq);
}
