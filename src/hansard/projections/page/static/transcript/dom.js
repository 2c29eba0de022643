/** Making elements. Text is always text: nothing here, or anywhere on the page, reads HTML. */

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element: `h("p", {class: "quiet", onclick: close}, "text", other)`.
 *
 * Attributes that are null or false are left out, true gives an empty one; `on…` adds a listener; `$name` sets the property `name`.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any> | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("$")) Reflect.set(element, name.slice(1), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  element.append(...nodes(children));
  return element;
}

/**
 * What can stand in an element, as nodes.
 * @param {(Child | Child[])[]} children
 * @returns {(Node | string)[]}
 */
function nodes(children) {
  return children.flat().flatMap((child) => {
    if (child === null || child === undefined || child === false) return [];
    return [child instanceof Node ? child : String(child)];
  });
}

/**
 * Make these, in this order, the only children of an element. What is there already is not taken out, so focus and selection stay.
 * @param {Element} parent
 * @param {Node[]} children
 */
export function place(parent, children) {
  const wanted = new Set(children);
  for (const child of [...parent.childNodes]) if (!wanted.has(child)) child.remove();
  let next = parent.firstChild;
  for (const child of children) {
    if (child === next) next = next.nextSibling;
    else parent.insertBefore(child, next);
  }
}

/** Characters that are not seen, or that turn what is seen around. */
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\udb40[\udc00-\udfff]/g;
/** Of these, the ones that no script needs. Joiners and marks of direction belong to some languages, and to emoji. */
const UNSEEN_IN_PROSE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u115f\u1160\u180e\u200b\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** @param {string} character */
function named(character) {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

/**
 * Text in which every invisible character can be seen; in prose, every one that has no business there.
 * @param {string} text
 * @param {boolean} [inProse]
 * @returns {(string | HTMLElement)[]}
 */
export function visible(text, inProse = false) {
  /** @type {(string | HTMLElement)[]} */
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(inProse ? UNSEEN_IN_PROSE : UNSEEN)) {
    if (match.index > from) parts.push(text.slice(from, match.index));
    const code = (match[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
    parts.push(h("span", { class: "unseen", title: `U+${code}` }, named(match[0])));
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push(text.slice(from));
  return parts;
}
