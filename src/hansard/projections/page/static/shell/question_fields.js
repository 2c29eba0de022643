// @ts-check
/** Questions of agents: what has to be asked, and the answer in the shape that the agent's wire wants. Pure; the terminal does the same. */

/**
 * @typedef {{
 *   name: string, label: string, about: string, kind: "text" | "number" | "integer" | "boolean" | "one" | "many",
 *   choices: {value: any, label: string, about: string}[], open: boolean, needed: boolean, value?: any,
 *   limits: {min?: number, max?: number, minLength?: number, maxLength?: number, pattern?: string, format?: string}
 * }} Field
 */

/** @param {any} asked the payload of a question @returns {Field[]} */
export function fieldsOf(asked) {
  if (Array.isArray(asked.questions) && !asked.schema) return asked.questions.map(ofQuestion);
  return ofSchema(asked.schema ?? {});
}

/** @param {any} one @param {number} index @returns {Field} */
function ofQuestion(one, index) {
  const label = String(one?.question ?? `Question ${index + 1}`);
  const choices = (one?.options ?? []).map((/** @type {any} */ option) => {
    const value = String(option?.label ?? option);
    return { value, label: value, about: String(option?.description ?? "") };
  });
  const many = Boolean(one?.multiSelect || one?.multiple);
  const kind = choices.length === 0 ? "text" : many ? "many" : "one";
  return { name: String(one?.id ?? label), label, about: String(one?.header ?? ""), kind, choices, open: choices.length > 0 && one?.custom !== false, needed: true, limits: {} };
}

/** @param {any} schema @returns {Field[]} */
function ofSchema(schema) {
  const needed = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).map(([name, about]) => ofProperty(name, /** @type {any} */ (about) ?? {}, needed.has(name)));
}

/** @param {string} name @param {any} about @param {boolean} needed @returns {Field} */
function ofProperty(name, about, needed) {
  const many = about.type === "array";
  const choices = choicesOf(many ? about.items ?? {} : about);
  const plain = about.type === "boolean" || about.type === "integer" || about.type === "number" ? about.type : "text";
  return {
    name,
    label: String(about.title ?? name),
    about: String(about.description ?? ""),
    kind: choices.length ? (many ? "many" : "one") : many ? "many" : plain,
    choices,
    open: many && choices.length === 0,
    needed,
    value: about.default,
    limits: { min: about.minimum, max: about.maximum, minLength: about.minLength, maxLength: about.maxLength, pattern: about.pattern, format: about.format },
  };
}

/** @param {any} about */
function choicesOf(about) {
  if (Array.isArray(about.enum)) {
    return about.enum.map((/** @type {any} */ value, /** @type {number} */ index) => ({ value, label: String(about.enumNames?.[index] ?? value), about: "" }));
  }
  const titled = about.oneOf ?? about.anyOf ?? [];
  return titled
    .filter((/** @type {any} */ one) => one && "const" in one)
    .map((/** @type {any} */ one) => ({ value: one.const, label: String(one.title ?? one.const), about: String(one.description ?? "") }));
}

/**
 * A form's values by name, Codex's by id, OpenCode's in order, Claude's by question.
 * @param {any} asked @param {Record<string, any>} values @param {string} wire the source of the question's event
 */
export function answerOf(asked, values, wire) {
  if (!Array.isArray(asked.questions) || asked.schema) {
    return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined && value !== null));
  }
  if (wire.startsWith("opencode")) return Object.values(values).map(listed);
  if (wire.startsWith("codex")) return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { answers: listed(value) }]));
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, listed(value).join(", ")]));
}

/** @param {any} value @returns {string[]} */
function listed(value) {
  return (Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]).map(String);
}
