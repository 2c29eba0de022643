/** Markdown as elements. markdown-it only reads: its tokens become nodes here, and what is HTML in a text stays text. */

import markdownit from "../vendor/markdown-it.js";
import { coloured } from "./code.js";
import { h, place, visible } from "./dom.js";

const parser = markdownit("default", { html: false, linkify: true, typographer: false, maxNesting: 40 });
parser.validateLink = () => true; // which addresses become links is decided by `safe`

/** Where links may lead. */
const SCHEMES = new Set(["http:", "https:", "mailto:"]);

/**
 * The address, if it may be a link.
 * @param {string | null} address
 */
export function safe(address) {
  if (!address) return null;
  try {
    const url = new URL(address);
    return SCHEMES.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/**
 * A link out of the page, or the address as text where it may not be one.
 * @param {string} address
 * @param {...(Node | string)} children
 */
export function link(address, ...children) {
  const href = safe(address);
  if (href === null) return h("span", { class: "no-link", title: address }, ...children);
  return h("a", { href, rel: "noopener noreferrer", target: "_blank", title: address }, ...children);
}

const TAGS = /** @type {Record<string, keyof HTMLElementTagNameMap>} */ ({
  paragraph: "p",
  heading: "h3",
  blockquote: "blockquote",
  bullet_list: "ul",
  ordered_list: "ol",
  list_item: "li",
  table: "table",
  thead: "thead",
  tbody: "tbody",
  tr: "tr",
  th: "th",
  td: "td",
  strong: "strong",
  em: "em",
  s: "s",
});
/** The title of a transcript is a first-level heading, so what was said begins at the third. */
const HEADINGS = /** @type {Record<string, keyof HTMLElementTagNameMap>} */ ({ h1: "h3", h2: "h4", h3: "h5", h4: "h6", h5: "h6", h6: "h6" });

/** @param {any} token @returns {HTMLElement} */
function opened(token) {
  const kind = token.type.slice(0, -5);
  if (kind === "link") return link(token.attrGet("href") ?? "");
  if (kind === "heading") return h(HEADINGS[token.tag] ?? "h6");
  const element = h(TAGS[kind] ?? "div");
  if (kind === "ordered_list" && token.attrGet("start") !== null) element.setAttribute("start", token.attrGet("start"));
  if (kind === "th" || kind === "td") {
    const align = /text-align:(left|center|right)/.exec(token.attrGet("style") ?? "");
    if (align) element.className = `align-${align[1]}`;
  }
  return element;
}

/** @param {any} token @returns {Node} */
function pictureOf(token) {
  const address = token.attrGet("src") ?? "";
  const alt = token.content || address;
  return h("span", { class: "remote-image" }, "image: ", link(address, ...visible(alt)));
}

/** @param {any} token @param {boolean} closed @returns {HTMLElement} */
function fence(token, closed) {
  const language = String(token.info ?? "").trim().split(/\s+/)[0] || null;
  return codeBlock(token.content, closed ? language : null, language);
}

/**
 * A block of code with a button to copy it.
 * @param {string} code
 * @param {string | null} language
 * @param {string | null} [label]
 */
export function codeBlock(code, language, label = language) {
  return h(
    "figure",
    { class: "code" },
    h(
      "figcaption",
      null,
      h("span", { class: "code-language" }, ...visible(label ?? "")),
      h("button", { type: "button", class: "copy", "data-copy": "code", "aria-label": "Copy the code" }, "copy"),
    ),
    h("pre", { tabindex: "0" }, h("code", null, ...coloured(code, language))),
  );
}

/**
 * @param {any[]} tokens
 * @param {Node} root
 * @param {boolean} closed whether the last fence has its end
 */
function build(tokens, root, closed) {
  const open = [root];
  const hidden = [];
  for (const token of tokens) {
    const parent = open[open.length - 1];
    if (token.nesting === 1) {
      hidden.push(token.hidden);
      if (token.hidden) continue;
      const element = opened(token);
      parent.appendChild(token.type === "table_open" ? h("div", { class: "table", tabindex: "0" }, element) : element);
      open.push(element);
    } else if (token.nesting === -1) {
      if (!hidden.pop() && open.length > 1) open.pop();
    } else if (token.type === "inline") build(token.children ?? [], parent, closed);
    else if (token.type === "text" || token.type === "text_special") append(parent, visible(token.content, true));
    else if (token.type === "softbreak") parent.appendChild(document.createTextNode("\n"));
    else if (token.type === "hardbreak") parent.appendChild(h("br"));
    else if (token.type === "code_inline") parent.appendChild(h("code", null, ...visible(token.content)));
    else if (token.type === "fence") parent.appendChild(fence(token, closed || token !== tokens[tokens.length - 1]));
    else if (token.type === "code_block") parent.appendChild(codeBlock(token.content, null));
    else if (token.type === "hr") parent.appendChild(h("hr"));
    else if (token.type === "image") parent.appendChild(pictureOf(token));
    else append(parent, visible(token.content ?? ""));
  }
}

/** @param {Node} parent @param {(Node | string)[]} parts */
function append(parent, parts) {
  for (const part of parts) parent.appendChild(typeof part === "string" ? document.createTextNode(part) : part);
}

const DEFINITION = /^ {0,3}\[[^\]\n]+\]:/m;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** What can go on with the block before an empty line: lists, and what is indented. */
const GOES_ON = /^(?:[ \t]|[-+*](?:[ \t]|$)|\d{1,9}[.)](?:[ \t]|$))/;

/**
 * Where a text can be cut so that its parts, read one by one, give what the whole gives. A longer text has these cuts too.
 * @param {string} text
 * @param {number} from where a part begins
 * @returns {{cuts: number[], closed: boolean}} and whether no fence is open at the end
 */
export function cuts(text, from = 0) {
  /** @type {number[]} */
  const found = [];
  let fenced = "";
  let empty = false;
  for (let at = from; at < text.length; ) {
    const newline = text.indexOf("\n", at);
    const end = newline === -1 ? text.length : newline;
    const row = text.slice(at, end);
    if (fenced) {
      const mark = FENCE.exec(row);
      if (mark && mark[1].startsWith(fenced) && row.trim() === mark[1]) fenced = "";
    } else if (row.trim() === "") empty = newline !== -1;
    else {
      if (empty && at > from && !GOES_ON.test(row) && newline !== -1) found.push(at);
      empty = false;
      const mark = FENCE.exec(row);
      if (mark && !(mark[1][0] === "`" && row.slice(mark[0].length).includes("`"))) fenced = mark[1];
    }
    at = end + 1;
  }
  return { cuts: found, closed: fenced === "" };
}

/** A text that may still grow: parts that are complete are drawn once, only the last is drawn anew. */
export class MarkdownView {
  constructor() {
    this.element = h("div", { class: "prose", dir: "auto" });
    this.text = "";
    /** @type {{from: number, nodes: Node[]}[]} */
    this.parts = [];
    this.whole = false;
  }

  /** @param {string} text */
  update(text) {
    if (text === this.text && this.parts.length > 0) return;
    const grown = text.startsWith(this.text) && this.parts.length > 0;
    this.text = text;
    const whole = DEFINITION.test(text);
    if (whole || this.whole || !grown) this.parts = [];
    this.whole = whole;
    const last = this.parts.pop();
    const from = last?.from ?? 0;
    const found = whole ? { cuts: [], closed: true } : cuts(text, from);
    const starts = [from, ...found.cuts];
    starts.forEach((start, index) => {
      const end = starts[index + 1] ?? text.length;
      this.parts.push({ from: start, nodes: parsed(text.slice(start, end), found.closed || end < text.length) });
    });
    place(
      this.element,
      this.parts.flatMap((part) => part.nodes),
    );
  }
}

/** @param {string} text @param {boolean} closed */
function parsed(text, closed) {
  const root = document.createDocumentFragment();
  build(parser.parse(text, {}), root, closed);
  return [...root.childNodes];
}

/**
 * A whole text as elements.
 * @param {string} text
 */
export function prose(text) {
  const view = new MarkdownView();
  view.update(text);
  return view.element;
}
