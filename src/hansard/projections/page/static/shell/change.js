// @ts-check
/** Whether an input is a change of a file, whatever its agent calls the fields. Pure. */

const PATHS = ["path", "file_path", "filePath", "absolute_path", "notebook_path", "target_file", "filename"];
const PAIRS = [
  ["old_string", "new_string"],
  ["oldString", "newString"],
  ["old_str", "new_str"],
  ["old_text", "new_text"],
  ["oldText", "newText"],
  ["old", "new"],
];
const WHOLE = ["content", "file_text", "contents"];
const PATCHES = ["diff", "patch", "unified_diff"];

/**
 * The change, and which fields of the input it tells.
 * @param {Record<string, any>} input
 * @returns {{change: {path: string | null, oldText?: string | null, newText?: string, diff?: string}, fields: string[]} | null}
 */
export function changeOf(input) {
  const named = PATHS.find((name) => typeof input[name] === "string");
  const path = named === undefined ? null : input[named];
  const about = named === undefined ? [] : [named];
  for (const [before, after] of PAIRS) {
    if (before !== undefined && after !== undefined && typeof input[before] === "string" && typeof input[after] === "string") {
      return { change: { path, oldText: input[before], newText: input[after] }, fields: [...about, before, after] };
    }
  }
  const patch = PATCHES.find((name) => typeof input[name] === "string");
  if (patch !== undefined) return { change: { path, diff: input[patch] }, fields: [...about, patch] };
  const whole = WHOLE.find((name) => typeof input[name] === "string");
  if (named !== undefined && whole !== undefined) return { change: { path, oldText: null, newText: input[whole] }, fields: [...about, whole] };
  return null;
}
