// @ts-check
/** The right side: the plan, the team, and the inspector below them. */

import { h } from "../transcript/dom.js";
import { remember, remembered } from "./theme.js";

const KEY = "hansard-side";
/** @type {Record<string, string>} */
const STEPS = { completed: "done", in_progress: "running", pending: "idle", cancelled: "stopped" };

export class Side {
  /** @param {() => void} opened */
  constructor(opened) {
    this.shown = "";
    this.plan = h("section", { class: "side-part", hidden: true });
    this.team = h("section", { class: "side-part", hidden: true });
    this.inspector = h("section", { class: "side-part side-inspector", "aria-label": "Inspector" });
    const close = h("button", { type: "button", class: "icon", "aria-label": "Close the inspector", title: "Close (i)", onclick: () => this.toggle(false) }, "×");
    this.element = h("aside", { class: "side", "aria-label": "Plan, team and inspector" }, h("div", { class: "side-head" }, h("h2", null, "Inspector"), close), this.plan, this.team, this.inspector);
    this.opened = opened;
    this.element.hidden = remembered(KEY) !== "open" || narrow();
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /** @param {boolean} [open] */
  toggle(open = !this.isOpen) {
    this.element.hidden = !open;
    if (!narrow()) remember(KEY, open ? "open" : null);
    if (open) this.opened();
  }

  /** @param {any[]} plan @param {Record<string, any>} teams */
  show(plan, teams) {
    const shown = JSON.stringify([plan, teams]);
    if (shown === this.shown) return;
    this.shown = shown;
    this.plan.hidden = plan.length === 0;
    const done = plan.filter((entry) => entry.status === "completed").length;
    this.plan.replaceChildren(h("h3", null, "Plan", h("span", { class: "quiet number" }, ` ${done} of ${plan.length}`)), h("ol", { class: "plan-steps" }, plan.map(step)));
    const parts = Object.entries(teams ?? {});
    this.team.hidden = parts.length === 0;
    this.team.replaceChildren(...parts.flatMap(([name, team]) => teamOf(name, team)));
  }
}

/** @param {any} entry */
function step(entry) {
  const state = STEPS[entry.status] ?? "idle";
  return h(
    "li",
    { class: `step ${state}` },
    h("span", { class: `standing ${state}` }, h("span", { class: "shape", "aria-hidden": "true" }), h("span", { class: "read-out" }, String(entry.status ?? "").replace("_", " "))),
    h("span", { dir: "auto" }, String(entry.content ?? "")),
  );
}

/** @param {string} name @param {any} team */
function teamOf(name, team) {
  const rows = (/** @type {Record<string, any>} */ entries) =>
    Object.entries(entries ?? {}).map(([id, entry]) => h("li", { class: "team-row" }, h("span", { class: "clip", dir: "auto" }, entry.text ?? id), entry.memberId ? h("span", { class: "quiet small" }, entry.memberId) : null, h("span", { class: "quiet small" }, entry.status ?? "")));
  return [
    h("h3", null, `Team ${name}`, h("span", { class: "quiet" }, team.status ? ` ${team.status}` : "")),
    h("ul", { class: "team" }, rows(team.members), rows(team.tasks)),
    team.messages ? h("p", { class: "quiet small" }, `${team.messages} messages between them`) : h("span"),
  ];
}

function narrow() {
  return matchMedia("(max-width: 1100px)").matches;
}
