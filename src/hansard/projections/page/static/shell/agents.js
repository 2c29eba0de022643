// @ts-check
/** The agents that this server can drive. */

import * as api from "./api.js";

/** @typedef {{name: string, title: string, format: string, installed: boolean, can: any, problem?: string}} Agent */

/** Those that are installed first. @returns {Promise<Agent[]>} */
export async function agents() {
  const { agents: found } = await api.get("api/agents");
  return found.sort((/** @type {Agent} */ a, /** @type {Agent} */ b) => Number(b.installed) - Number(a.installed) || a.title.localeCompare(b.title));
}
