// @ts-check
/** A question of an agent as a form: texts, numbers, yes or no, one of several, some of several. */

import { h } from "../transcript/dom.js";
import { exact } from "./exact_input.js";
import { answerOf, fieldsOf } from "./question_fields.js";

let names = 0;

export class QuestionCard {
  /**
   * @param {any} event the question
   * @param {import("./permission_card.js").About} about
   * @param {(values: any, action: "accept" | "decline") => Promise<unknown>} answer
   */
  constructor(event, about, answer) {
    this.event = event;
    this.asked = event.payload;
    this.about = about;
    this.answer = answer;
    this.inputs = fieldsOf(this.asked).map((field) => ({ field, ...drawn(field, about.disabled !== null) }));
    this.problem = h("p", { class: "bad", role: "alert", hidden: true });
    this.yes = h("button", { class: "button primary", disabled: about.disabled !== null }, this.inputs.length ? "Answer" : "Agree");
    this.no = h("button", { type: "button", class: "button", disabled: about.disabled !== null, onclick: () => this._send(null, "decline") }, "Do not answer");
    this.element = this._card();
  }

  _card() {
    const { agent, disabled, place } = this.about;
    const message = this.asked.message;
    return h(
      "form",
      { class: "card question", tabindex: "-1", "aria-label": `${agent} asks you`, "data-request-id": this.asked.requestId, novalidate: true, onsubmit: (/** @type {Event} */ event) => this._submit(event) },
      h(
        "header",
        { class: "card-head" },
        h("span", { class: "standing waiting" }, h("span", { class: "shape", "aria-hidden": "true" })),
        h("span", null, h("strong", { dir: "auto" }, agent), this.asked.server ? ` (through ${this.asked.server})` : "", " asks you"),
        h("span", { class: "spring" }),
        h("span", { class: "quiet small" }, place),
      ),
      message ? h("p", { class: "card-words", dir: "auto" }, ...exact(message)) : null,
      h("div", { class: "card-fields" }, this.inputs.map((input) => input.element)),
      this.problem,
      disabled ? h("p", { class: "card-why" }, disabled) : null,
      h("div", { class: "choices" }, this.yes, this.no),
    );
  }

  /** @param {Event} event */
  _submit(event) {
    event.preventDefault();
    /** @type {Record<string, any>} */
    const values = {};
    for (const { field, read } of this.inputs) {
      const value = read();
      const wrong = problemOf(field, value);
      if (wrong) return this._failed(`${field.label}: ${wrong}`);
      values[field.name] = value;
    }
    this._send(answerOf(this.asked, values, String(this.event.source ?? "")), "accept");
  }

  /** @param {any} values @param {"accept" | "decline"} action */
  async _send(values, action) {
    this.yes.disabled = this.no.disabled = true;
    try {
      await this.answer(values, action);
    } catch (problem) {
      this._failed(problem instanceof Error ? problem.message : String(problem));
      this.yes.disabled = this.no.disabled = false;
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
    if (key === "Escape") {
      this._send(null, "decline");
      return true;
    }
    const choices = this.inputs.length === 1 ? this.inputs[0]?.element.querySelectorAll("input[type=radio], input[type=checkbox]") : undefined;
    const choice = choices?.[Number(key) - 1];
    if (!(choice instanceof HTMLInputElement)) return false;
    choice.click();
    choice.focus();
    return true;
  }
}

/** @param {import("./question_fields.js").Field} field @param {any} value */
function problemOf(field, value) {
  const empty = value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0);
  if (empty) return field.needed ? "please say something" : null;
  if ((field.kind === "number" || field.kind === "integer") && !Number.isFinite(value)) return "this is no number";
  if (field.kind === "integer" && !Number.isInteger(value)) return "this is no whole number";
  if (field.limits.min !== undefined && value < field.limits.min) return `at least ${field.limits.min}`;
  if (field.limits.max !== undefined && value > field.limits.max) return `at most ${field.limits.max}`;
  return null;
}

/**
 * @param {import("./question_fields.js").Field} field @param {boolean} disabled
 * @returns {{element: HTMLElement, read: () => any}}
 */
function drawn(field, disabled) {
  if (field.kind === "one" || field.kind === "many") return choosing(field, disabled);
  if (field.kind === "boolean") {
    const box = h("input", { type: "checkbox", disabled, $checked: field.value === true });
    return { element: h("label", { class: "option" }, box, words(field)), read: () => box.checked };
  }
  const isNumber = field.kind === "number" || field.kind === "integer";
  const type = isNumber ? "number" : { email: "email", uri: "url", date: "date", "date-time": "datetime-local" }[field.limits.format ?? ""] ?? "text";
  const input = h("input", { class: "field", type, disabled, dir: "auto", step: field.kind === "integer" ? "1" : "any", maxlength: field.limits.maxLength, $value: field.value ?? "", autocomplete: "off" });
  const read = () => (input.value === "" ? undefined : isNumber ? Number(input.value) : input.value);
  return { element: h("label", { class: "labelled" }, words(field), input), read };
}

/** @param {import("./question_fields.js").Field} field @param {boolean} disabled */
function choosing(field, disabled) {
  const several = field.kind === "many";
  const name = `question-${++names}`;
  const chosen = new Set([field.value].flat().filter((value) => value !== undefined));
  const boxes = field.choices.map((choice) => {
    const box = h("input", { type: several ? "checkbox" : "radio", name, disabled, $checked: chosen.has(choice.value) });
    const about = choice.about ? h("span", { class: "quiet small" }, ...exact(choice.about)) : null;
    return { box, choice, element: h("label", { class: "option" }, box, h("span", { dir: "auto" }, h("span", null, ...exact(choice.label)), about)) };
  });
  const other = field.open ? h("input", { class: "field", disabled, placeholder: field.choices.length ? "Something else" : "One per comma", "aria-label": "Something else", dir: "auto", autocomplete: "off" }) : null;
  const read = () => {
    const values = boxes.filter(({ box }) => box.checked).map(({ choice }) => choice.value);
    const typed = other?.value.trim();
    if (several) return [...values, ...(typed ? typed.split(",").map((part) => part.trim()) : [])];
    return typed || values[0];
  };
  return { element: h("fieldset", { class: "labelled" }, h("legend", null, words(field)), boxes.map(({ element }) => element), other), read };
}

/** @param {import("./question_fields.js").Field} field */
function words(field) {
  return h("span", { dir: "auto" }, ...exact(field.label), field.needed ? "" : h("span", { class: "quiet small" }, " (optional)"), field.about && field.about !== field.label ? h("span", { class: "quiet small block" }, ...exact(field.about)) : null);
}
