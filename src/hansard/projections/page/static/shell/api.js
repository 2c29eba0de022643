// @ts-check
/** The HTTP side of docs/protocol.md. Addresses are relative, so that the server can live below any path. */

import { Refused } from "./connection.js";

/** @param {string} path @param {RequestInit} [how] */
async function ask(path, how) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...how });
  } catch (problem) {
    if (how?.signal?.aborted) throw problem;
    throw new Refused("no_connection", "The server cannot be reached.");
  }
  if (!answer.ok) throw await problem(answer);
  return answer;
}

/** @param {Response} answer */
async function problem(answer) {
  const said = await answer.json().catch(() => ({}));
  return new Refused(said.error?.code ?? String(answer.status), said.error?.message ?? `The server answered ${answer.status}.`);
}

/** @param {string} path @returns {Promise<any>} */
export async function get(path) {
  return (await ask(path)).json();
}

/**
 * The lines of an answer, each as it comes.
 * @param {string} path @param {AbortSignal} signal ends it
 * @returns {AsyncGenerator<any>}
 */
export async function* lines(path, signal) {
  const answer = await ask(path, { signal });
  const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
  const decoder = new TextDecoder();
  let begun = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const whole = (begun + decoder.decode(part.value, { stream: true })).split("\n");
    begun = whole.pop() ?? "";
    for (const line of whole) yield JSON.parse(line);
  }
}

/** @param {string} path */
export async function text(path) {
  return (await ask(path)).text();
}

/** @param {"POST" | "PATCH" | "DELETE"} method @param {string} path @param {object} [body] @returns {Promise<any>} */
export async function send(method, path, body = {}) {
  const headers = { "Content-Type": "application/json" };
  const answer = await ask(path, { method, headers, body: JSON.stringify(body) });
  const said = await answer.text();
  return said ? JSON.parse(said) : {};
}

/** Milliseconds: where a cable was cut a request is never answered, and never fails. */
const PATIENCE = 3_000;

/** Whether the server still knows us; true when it cannot be asked. */
export async function allowed() {
  try {
    const answer = await fetch("api", { credentials: "same-origin", cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
    return answer.status !== 401 && answer.status !== 403;
  } catch {
    return true;
  }
}

/** @param {string} id */
export const at = (id) => `api/sessions/${encodeURIComponent(id)}`;

/** @param {string} id @param {string} sha256 */
export const blob = (id, sha256) => `${at(id)}/blobs/${encodeURIComponent(sha256)}`;

/** @param {string} id @param {File} file @returns {Promise<{blob: string, size: number, mediaType: string}>} */
export async function upload(id, file) {
  const data = await base64(file);
  return send("POST", `${at(id)}/uploads`, { name: file.name, mediaType: file.type || "application/octet-stream", data });
}

/** @param {File} file @returns {Promise<string>} */
function base64(file) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).split(",", 2)[1] ?? "");
    reader.onerror = () => failed(new Refused("unreadable", `${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}
