/** Content blocks as elements: pictures, files, sound, code, what was refused, and what nobody knows. Nothing is fetched by itself. */

import { diffView } from "./diff.js";
import { h, visible } from "./dom.js";
import { codeBlock, link, prose, safe } from "./markdown.js";
import { printed } from "./terminal.js";
import { asObject, asText, duration, size, textOf } from "./format.js";

/** @typedef {import("./types").Hooks} Hooks */

/** Pictures that are shown. An SVG is a program, so it is a file. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const SOUNDS = /^audio\/[\w.+-]+$/;
/** How the data of each begins, whatever is said about it. */
const BEGINNINGS = /^(?:\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF[^]{4}WEBP)/;

/** The data without its line ends, if it is base64. @param {any} data */
function base64(data) {
  const text = typeof data === "string" ? data.replace(/\s+/g, "") : "";
  const bare = text.replace(/={1,2}$/, "");
  const whole = bare === text ? bare.length % 4 !== 1 : text.length % 4 === 0;
  return text !== "" && whole && !/[^A-Za-z0-9+/]/.test(bare) ? text : null;
}

/** Whether data is a picture by its own first bytes; a blob says so when it is fetched. @param {any} block */
function isPicture(block) {
  const data = base64(block.data);
  return data === null ? typeof block.data !== "string" : BEGINNINGS.test(atob(data.slice(0, 24)));
}

/**
 * The address of data that the log itself has; null if it has none that may be shown so.
 * @param {any} block
 * @param {string | null} mediaType
 * @param {Hooks} hooks
 */
function kept(block, mediaType, hooks) {
  const data = base64(block.data);
  if (mediaType !== null && data !== null) return `data:${mediaType};base64,${data}`;
  if (typeof block.blob === "string" && /^[0-9a-f]{64}$/.test(block.blob) && hooks.blob) return hooks.blob(block.blob);
  return null;
}

/** A file by its name and size, with a way to get it where there is one. @param {any} block @param {string} kind @param {Hooks} hooks */
function file(block, kind, hooks) {
  const name = [block.name, block.title, block.path, block.uri, block.fileId].find((one) => typeof one === "string" && one !== "") ?? "without a name";
  const about = [textOf(block.mediaType), typeof block.size === "number" ? size(block.size) : null].filter((word) => word !== null).join(" · ");
  const where = kept(block, "application/octet-stream", hooks);
  const address = textOf(block.url) ?? (textOf(block.uri) !== null && safe(block.uri) !== null ? block.uri : null);
  return h(
    "div",
    { class: `file file-${kind}` },
    h("span", { class: "file-kind" }, kind),
    h("span", { class: "file-name" }, ...visible(name)),
    about && h("span", { class: "file-about" }, ...visible(about)),
    where !== null && h("a", { class: "file-get", href: where, download: name.slice(name.lastIndexOf("/") + 1) }, "save"),
    address !== null && link(address, ...visible(address)),
    typeof block.text === "string" && folded("its text", () => h("pre", { tabindex: "0" }, ...visible(block.text))),
  );
}

/** @param {any} block @param {Hooks} hooks */
function picture(block, hooks) {
  const mediaType = textOf(block.mediaType)?.toLowerCase() ?? null;
  const where = (mediaType === null || PICTURES.has(mediaType)) && isPicture(block) ? kept(block, mediaType ?? "image/png", hooks) : null;
  if (where === null) {
    const address = textOf(block.url);
    if (address !== null && safe(address) !== null) {
      return h("div", { class: "file file-image" }, h("span", { class: "file-kind" }, "image"), link(address, ...visible(address)), h("span", { class: "file-about" }, "not loaded"));
    }
    return file({ ...block, name: block.name ?? block.path ?? address ?? textOf(block.data)?.slice(0, 80) }, "image", hooks);
  }
  const name = textOf(block.path) ?? textOf(block.url) ?? "image";
  return h("figure", { class: "picture" }, h("img", { src: where, alt: name, loading: "lazy" }), name !== "image" && h("figcaption", null, ...visible(name)));
}

/** @param {any} block @param {Hooks} hooks */
function sound(block, hooks) {
  const mediaType = textOf(block.mediaType) ?? "audio/wav";
  const where = SOUNDS.test(mediaType) ? kept(block, mediaType, hooks) : null;
  const transcript = textOf(block.transcript);
  return h(
    "div",
    { class: "sound" },
    where === null ? h("span", { class: "file-kind" }, "audio") : h("audio", { controls: true, preload: "none", src: where }),
    typeof block.durationMs === "number" && h("span", { class: "file-about" }, duration(block.durationMs)),
    transcript !== null && h("p", { class: "transcript", dir: "auto" }, ...visible(transcript, true)),
  );
}

/** @param {any} block */
function refusal(block) {
  const words = [block.text, block.explanation].filter((text) => typeof text === "string" && text !== "");
  return h(
    "div",
    { class: "refusal" },
    h("strong", null, "⊘ Refused"),
    typeof block.category === "string" && h("span", { class: "code-word" }, ...visible(block.category)),
    words.map((text) => h("p", { dir: "auto" }, ...visible(text, true))),
  );
}

/** @param {any} block */
function command(block) {
  const name = asText(block.name).replace(/^\//, "");
  return h(
    "div",
    { class: "slash-command" },
    name !== "" && h("code", null, `/${name}`, block.args ? ` ${block.args}` : ""),
    typeof block.output === "string" && h("pre", { tabindex: "0" }, ...printed(block.output)),
  );
}

/** @param {any} block */
function terminal(block) {
  return h(
    "div",
    { class: "output" },
    h("pre", { tabindex: "0" }, ...printed(textOf(block.output) ?? `terminal ${asText(block.terminalId)}`)),
    typeof block.exitCode === "number" && h("p", { class: "outcome" }, `exit code ${block.exitCode}`),
  );
}

/**
 * JSON, folded away.
 * @param {string} words
 * @param {() => Node} make
 */
export function folded(words, make) {
  const body = h("div", { class: "folded-body" });
  return h("details", { class: "folded", ontoggle: opened }, h("summary", null, words), body);
  /** @param {Event} toggle */
  function opened(toggle) {
    if (toggle.target instanceof HTMLDetailsElement && toggle.target.open && body.childNodes.length === 0) body.append(make());
  }
}

/** Any JSON, readable. @param {any} value */
export function json(value) {
  return typeof value === "string" ? h("pre", { class: "json", tabindex: "0" }, ...visible(value)) : codeBlock(JSON.stringify(value, null, 2) ?? "", "json");
}

/**
 * Any block, whatever it is.
 * @param {any} block
 * @param {Hooks} hooks
 * @returns {HTMLElement}
 */
export function blockView(block, hooks) {
  switch (asObject(block).type) {
    case "text":
      return prose(asText(block.text));
    case "thinking":
      return h("div", { class: "thinking-text" }, prose(asText(block.text ?? "")));
    case "image":
      return picture(block, hooks);
    case "audio":
      return sound(block, hooks);
    case "file":
    case "document":
    case "resource":
      return file(block, block.type, hooks);
    case "code":
      return codeBlock(asText(block.code), textOf(block.language));
    case "diff":
      return diffView(block);
    case "terminal":
      return terminal(block);
    case "refusal":
      return refusal(block);
    case "slash_command":
      return command(block);
    default:
      return folded(`${asText(asObject(block).rawType ?? asObject(block).type ?? "a block")}: not understood`, () => json(asObject(block).raw ?? block));
  }
}
