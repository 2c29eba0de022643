/** What a payload must have for its event to be what it says it is. The list is that of events.py, and a test compares. */

/** @typedef {import("./types").Event} Event */

/** @type {Record<string, Record<string, "string" | "number" | "boolean" | "array" | "any">>} */
export const REQUIRED = {
  turn_start: { trigger: "string" },
  turn_end: { status: "string" },
  user_message: { text: "string" },
  user_audio: { transcription: "string" },
  assistant_chunk: { text: "string" },
  assistant_done: { text: "string" },
  thinking_chunk: { text: "string" },
  thinking_done: { text: "string" },
  content_block: { block: "any" },
  tool_call: { toolCallId: "string", toolName: "string", args: "any" },
  tool_input_chunk: { toolCallId: "string", chunk: "string", offset: "number" },
  tool_output_chunk: { toolCallId: "string", chunk: "string", offset: "number" },
  tool_progress: { toolCallId: "string", status: "string" },
  tool_result: { toolCallId: "string", result: "any" },
  tool_use_summary: { summary: "string", toolCallIds: "array" },
  agent_message: { messageId: "string", targetAgentId: "string", message: "string" },
  agent_callback: { messageId: "string", result: "any" },
  agent_switch: { fromAgentId: "any", toAgentId: "string" },
  interrupt: { reason: "string" },
  error: { code: "string", message: "string" },
  audio_chunk: { seq: "number" },
  audio_done: {},
  session_init: { agentId: "string" },
  status_change: { status: "string" },
  result: { status: "string" },
  usage: { scope: "string", usage: "any" },
  permission_request: { requestId: "string", options: "array", inputHash: "string" },
  permission_response: { requestId: "string", decision: "string" },
  permission_cancelled: { requestId: "string", reason: "string" },
  question: { requestId: "string" },
  answer: { requestId: "string", values: "any" },
  configuration_change: { subtype: "string" },
  session_lifecycle: { subtype: "string" },
  plan_update: { entries: "array" },
  team_message: {},
  team_task_update: {},
  team_state_change: {},
  queue_update: { action: "string" },
  auth_status: { isAuthenticating: "boolean" },
  mcp_status: { server: "string", state: "string" },
  rate_limit: {},
  heartbeat: {},
  process: { event: "string" },
  control_request: { method: "string" },
  control_response: { ok: "boolean" },
  raw: { reason: "string" },
};

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
