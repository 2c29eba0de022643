/** Code in colours: highlight.js finds the parts, and we make elements of them. No HTML is written or read. */

import highlighter from "../vendor/highlight.js";
import bash from "../vendor/languages/bash.js";
import c from "../vendor/languages/c.js";
import cpp from "../vendor/languages/cpp.js";
import css from "../vendor/languages/css.js";
import diff from "../vendor/languages/diff.js";
import dockerfile from "../vendor/languages/dockerfile.js";
import go from "../vendor/languages/go.js";
import ini from "../vendor/languages/ini.js";
import java from "../vendor/languages/java.js";
import javascript from "../vendor/languages/javascript.js";
import json from "../vendor/languages/json.js";
import makefile from "../vendor/languages/makefile.js";
import markdown from "../vendor/languages/markdown.js";
import python from "../vendor/languages/python.js";
import ruby from "../vendor/languages/ruby.js";
import rust from "../vendor/languages/rust.js";
import sql from "../vendor/languages/sql.js";
import typescript from "../vendor/languages/typescript.js";
import xml from "../vendor/languages/xml.js";
import yaml from "../vendor/languages/yaml.js";
import { h, visible } from "./dom.js";

const LANGUAGES = {
  ...{ bash, c, cpp, css, diff, dockerfile, go, ini, java, javascript, json },
  ...{ makefile, markdown, python, ruby, rust, sql, typescript, xml, yaml },
};

/** The types of the copy are not those of the package. @type {any} */
const hljs = highlighter;
/** Longer code is shown without colours. */
const COLOURED = 40_000;

/** Takes the parts as the highlighter finds them and puts elements into elements. */
class Elements {
  constructor() {
    this.root = document.createDocumentFragment();
    /** @type {Node[]} */
    this.open = [this.root];
  }

  /** @param {string} text */
  addText(text) {
    const last = this.open[this.open.length - 1];
    for (const part of visible(text)) last.appendChild(typeof part === "string" ? document.createTextNode(part) : part);
  }

  /** @param {string} scope */
  startScope(scope) {
    const names = String(scope).split(".");
    const element = h("span", { class: names.map((name) => `code-${name.replace(/[^\w-]/g, "")}`).join(" ") });
    this.open[this.open.length - 1].appendChild(element);
    this.open.push(element);
  }

  endScope() {
    if (this.open.length > 1) this.open.pop();
  }

  /** What languages with parts of their own call it by. @param {string} scope */
  openNode(scope) {
    this.startScope(scope);
  }

  closeNode() {
    this.endScope();
  }

  /** @param {Elements} other */
  __addSublanguage(other) {
    this.open[this.open.length - 1].appendChild(other.root);
  }

  finalize() {
    this.open.length = 1;
  }

  toHTML() {
    return "";
  }
}

for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);
hljs.configure({ __emitter: Elements });

const BY_ENDING = /** @type {Record<string, string>} */ ({
  h: "c",
  hpp: "cpp",
  mjs: "javascript",
  pyi: "python",
  toml: "ini",
  tsx: "typescript",
  jsx: "javascript",
  zsh: "bash",
});

/**
 * The language of a file, by its name.
 * @param {string} path
 */
export function languageOf(path) {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  const ending = name.includes(".") ? name.slice(name.lastIndexOf(".") + 1) : name;
  const language = Object.hasOwn(BY_ENDING, ending) ? BY_ENDING[ending] : ending;
  return hljs.getLanguage(language) ? language : null;
}

/**
 * Code as nodes, in colours if its language is known and it is not too long.
 * @param {string} code
 * @param {string | null} language
 * @returns {(Node | string)[]}
 */
export function coloured(code, language) {
  const known = language !== null && /^[\w+#.-]{1,20}$/.test(language) && hljs.getLanguage(language);
  if (!known || code.length > COLOURED) return visible(code);
  const result = hljs.highlight(code, { language, ignoreIllegals: true });
  return result.errorRaised ? visible(code) : [result._emitter.root];
}
