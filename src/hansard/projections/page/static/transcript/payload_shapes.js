/** Which events have the shape of their type. */

import { REQUIRED } from "./rules.js";

/** @typedef {import("./types").Event} Event */

const CHECKS = new Map(Object.entries(REQUIRED).map(([type, fields]) => [type, Object.entries(fields)]));

/**
 * Whether an event is of a known type and has its shape. If not, it is shown as it is, and changes nothing.
 * @param {Event} event
 */
export function isKnown(event) {
  const { payload } = event;
  const checks = CHECKS.get(event.type);
  if (checks === undefined || payload === null || typeof payload !== "object" || Array.isArray(payload)) return false;
  for (const [name, kind] of checks) {
    const value = payload[name];
    if (kind === "any" ? value === undefined : kind === "array" ? !Array.isArray(value) : typeof value !== kind) return false;
  }
  return true;
}
