// @ts-check
/**
 * The permission card: who asks, what exactly will be done, and the choices as the agent offered them. It stands outside the transcript;
 * what an agent says can never look like it. Whether a choice allows or refuses is decided by its kind, never by its name.
 */

import { h } from "../transcript/dom.js";
import { diffView } from "../transcript/diff.js";
import { changeOf } from "./change.js";
import { exact, spelled } from "./exact_input.js";

/** Nothing can be chosen in the first moment: whoever was typing or clicking meant something else. */
const ARMED = 350;

/** @type {Record<string, {decision: "allow" | "deny", word: string}>} */
const KINDS = {
  allow_once: { decision: "allow", word: "allows once" },
  allow_always: { decision: "allow", word: "allows always" },
  reject_once: { decision: "deny", word: "refuses" },
  reject_always: { decision: "deny", word: "refuses always" },
};

/** When the agent offers no choice of its own. */
const PLAIN = [
  { name: "Allow", kind: "allow_once" },
  { name: "Deny", kind: "reject_once" },
];

/**
 * @typedef {{decision: "allow" | "deny", optionId?: string, updatedInput?: any, message?: string}} Decision
 * @typedef {{agent: string, canEdit: boolean, disabled: string | null, place: string, changes: any[]}} About
 */

export class PermissionCard {
  /**
   * @param {any} event the permission_request
   * @param {About} about
   * @param {(decision: Decision) => Promise<unknown>} decide
   */
  constructor(event, about, decide) {
    this.asked = event.payload;
    this.about = about;
    this.decide = decide;
    this.shownAt = performance.now();
    this.options = /** @type {any[]} */ (this.asked.options?.length ? this.asked.options : PLAIN).filter((option) => option.kind in KINDS);
    this.why = h("input", { class: "field", placeholder: "Say why not (optional)", "aria-label": "Say why not", dir: "auto" });
    this.buttons = this.options.map((option, index) => this._button(option, index));
    this.editor = /** @type {HTMLTextAreaElement | null} */ (null);
    this.problem = h("p", { class: "bad", role: "alert", hidden: true });
    this.what = h("div", { class: "card-what" }, this._what());
    this.element = this._card();
  }

  _card() {
    const { agent, disabled, place } = this.about;
    const edit = h("button", { type: "button", class: "plain", onclick: () => this._edit() }, "Change it first");
    return h(
      "section",
      { class: "card permission", tabindex: "-1", "aria-label": `${agent} asks for permission`, "data-request-id": this.asked.requestId },
      h(
        "header",
        { class: "card-head" },
        h("span", { class: "standing waiting" }, h("span", { class: "shape", "aria-hidden": "true" })),
        h("span", null, h("strong", { dir: "auto" }, agent), " asks before it acts: ", h("code", null, ...exact(this.asked.toolName ?? "something"))),
        h("span", { class: "spring" }),
        h("span", { class: "quiet small" }, place),
      ),
      this.asked.description ? h("p", { class: "card-words", dir: "auto" }, ...exact(this.asked.description)) : null,
      this.what,
      this.problem,
      disabled ? h("p", { class: "card-why" }, disabled) : null,
      h("div", { class: "choices", role: "group", "aria-label": "Your answer" }, this.buttons, h("span", { class: "spring" }), this.about.canEdit && !disabled ? edit : null),
      disabled ? null : h("details", { class: "card-more" }, h("summary", null, "No, and why"), this.why),
    );
  }

  /** @param {any} option @param {number} index */
  _button(option, index) {
    const { decision, word } = KINDS[option.kind] ?? { decision: "deny", word: "" };
    return h(
      "button",
      {
        type: "button",
        class: `button choice ${decision}`,
        "data-kind": option.kind,
        disabled: this.about.disabled !== null,
        title: `${word} (${index + 1})`,
        onclick: () => this._choose(option),
      },
      h("kbd", { "aria-hidden": "true" }, String(index + 1)),
      h("span", null, ...exact(option.name ?? option.optionId ?? "")),
      h("span", { class: "choice-word" }, word),
    );
  }

  /** The input by what it is: a command, a change of a file, or fields. Nothing of it is left out. */
  _what() {
    const input = this.asked.input;
    if (input === null || input === undefined) return [h("p", { class: "quiet" }, "The agent did not say what exactly.")];
    if (typeof input !== "object" || Array.isArray(input)) return [h("pre", { class: "exactly", dir: "ltr" }, ...exact(spelled(input)))];
    const changed = changeOf(input);
    const told = new Set(changed?.fields ?? []);
    const parts = [...(changed ? [changed.change] : []), ...this.about.changes].map(diffView);
    const command = input.command ?? input.cmd;
    if (typeof command === "string" || Array.isArray(command)) {
      told.add("command" in input ? "command" : "cmd");
      parts.push(h("pre", { class: "exactly command", dir: "ltr" }, ...exact(Array.isArray(command) ? command.map(quoted).join(" ") : command)));
    }
    const rest = Object.entries(input).filter(([name]) => !told.has(name));
    if (rest.length) parts.push(h("dl", { class: "fields" }, ...rest.flatMap(([name, value]) => [h("dt", null, ...exact(name)), h("dd", { dir: "ltr" }, ...exact(spelled(value)))])));
    return parts;
  }

  _edit() {
    if (this.editor) return;
    this.editor = h("textarea", { class: "field mono", rows: "6", "aria-label": "The input, as JSON", $value: JSON.stringify(this.asked.input, null, 2), dir: "ltr" });
    this.what.replaceChildren(h("p", { class: "quiet small" }, "What you change here is what runs. Both are on the record."), this.editor);
    this.editor.focus();
  }

  /** @param {any} option */
  async _choose(option) {
    if (performance.now() - this.shownAt < ARMED) return;
    const { decision } = KINDS[option.kind] ?? { decision: "deny" };
    /** @type {Decision} */
    const made = { decision, ...(option.optionId !== undefined && { optionId: option.optionId }) };
    if (decision === "deny" && this.why.value.trim()) made.message = this.why.value.trim();
    if (decision === "allow" && this.editor) {
      try {
        made.updatedInput = JSON.parse(this.editor.value);
      } catch (problem) {
        return this._failed(`This is no JSON: ${problem instanceof Error ? problem.message : problem}`);
      }
    }
    for (const button of this.buttons) button.disabled = true;
    try {
      await this.decide(made);
    } catch (problem) {
      this._failed(problem instanceof Error ? problem.message : String(problem));
      for (const button of this.buttons) button.disabled = false;
    }
  }

  /** @param {string} words */
  _failed(words) {
    this.problem.hidden = false;
    this.problem.textContent = words;
  }

  /** A key that is meant for the card; true if it was. @param {string} key */
  key(key) {
    if (this.about.disabled !== null) return false;
    const option = key === "Escape" ? this.options.find((one) => one.kind === "reject_once") ?? this.options.find((one) => one.kind === "reject_always") : this.options[Number(key) - 1];
    if (option === undefined) return false;
    this._choose(option);
    return true;
  }
}

/** @param {unknown} word */
function quoted(word) {
  const text = String(word);
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
