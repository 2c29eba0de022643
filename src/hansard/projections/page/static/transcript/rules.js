/** The tables of src/hansard that the page uses. Made by tools/page_rules.py: change them there and run `make docs`. */

/** @type {number} */
export const EARLIEST_CALENDAR_MS = 100000000000;

/** @type {number} */
export const TITLE_CHARACTERS = 200;

/** @type {string} */
export const HANDOFF_URI = "hansard:conversation";

/** @type {string} */
export const HANDOFF_BEGINNING = "A conversation between a user and you, the assistant, as far as it has got. Go on where it ends.\n\n<conversation>\n";

/** @type {Record<string, Record<string, string>>} */
export const REQUIRED = {
  "turn_start": {"trigger": "string"},
  "turn_end": {"status": "string"},
  "user_message": {"text": "string"},
  "user_audio": {"transcription": "string"},
  "assistant_chunk": {"text": "string"},
  "assistant_done": {"text": "string"},
  "thinking_chunk": {"text": "string"},
  "thinking_done": {"text": "string"},
  "content_block": {"block": "any"},
  "tool_call": {"toolCallId": "string", "toolName": "string", "args": "any"},
  "tool_input_chunk": {"toolCallId": "string", "chunk": "string", "offset": "number"},
  "tool_output_chunk": {"toolCallId": "string", "chunk": "string", "offset": "number"},
  "tool_progress": {"toolCallId": "string", "status": "string"},
  "tool_result": {"toolCallId": "string", "result": "any"},
  "tool_use_summary": {"summary": "string", "toolCallIds": "array"},
  "agent_message": {"messageId": "string", "targetAgentId": "string", "message": "string"},
  "agent_callback": {"messageId": "string", "result": "any"},
  "agent_switch": {"toAgentId": "string"},
  "interrupt": {"reason": "string"},
  "error": {"code": "string", "message": "string"},
  "audio_chunk": {"seq": "number"},
  "audio_done": {},
  "session_init": {"agentId": "string"},
  "status_change": {"status": "string"},
  "result": {"status": "string"},
  "usage": {"scope": "string", "usage": "any"},
  "permission_request": {"requestId": "string", "options": "array", "inputHash": "string"},
  "permission_response": {"requestId": "string", "decision": "string"},
  "permission_cancelled": {"requestId": "string", "reason": "string"},
  "question": {"requestId": "string"},
  "answer": {"requestId": "string", "values": "any"},
  "configuration_change": {"subtype": "string"},
  "session_lifecycle": {"subtype": "string"},
  "plan_update": {"entries": "array"},
  "team_message": {},
  "team_task_update": {},
  "team_state_change": {},
  "queue_update": {"action": "string"},
  "auth_status": {"isAuthenticating": "boolean"},
  "mcp_status": {"server": "string", "state": "string"},
  "rate_limit": {},
  "heartbeat": {},
  "process": {"event": "string"},
  "control_request": {"method": "string"},
  "control_response": {"ok": "boolean"},
  "raw": {"reason": "string"},
};

/** @type {Record<string, string | {field: string, patterns: [string, string][], otherwise: string}>} */
export const LEVELS = {
  "turn_start": "conversation",
  "turn_end": "conversation",
  "user_message": {"field": "author", "patterns": [["^harness$", "procedure"]], "otherwise": "conversation"},
  "user_audio": "conversation",
  "assistant_chunk": "record",
  "assistant_done": "conversation",
  "thinking_chunk": "record",
  "thinking_done": "conversation",
  "content_block": "conversation",
  "tool_call": "conversation",
  "tool_input_chunk": "record",
  "tool_output_chunk": "record",
  "tool_progress": "record",
  "tool_result": "conversation",
  "tool_use_summary": "procedure",
  "agent_message": "conversation",
  "agent_callback": "conversation",
  "agent_switch": "conversation",
  "interrupt": "conversation",
  "error": "conversation",
  "audio_chunk": "record",
  "audio_done": "conversation",
  "session_init": "conversation",
  "status_change": {"field": "status", "patterns": [["retr|hook|warning|deprecat|^(compacting|informational|notice)$", "procedure"]], "otherwise": "record"},
  "result": "conversation",
  "usage": "record",
  "permission_request": "conversation",
  "permission_response": "conversation",
  "permission_cancelled": "conversation",
  "question": "conversation",
  "answer": "conversation",
  "configuration_change": {"field": "subtype", "patterns": [["^set_(model|mode|permission_mode)$|^model_(fallback|rerouted)$", "conversation"]], "otherwise": "procedure"},
  "session_lifecycle": {"field": "subtype", "patterns": [["^(compacted|cleared|forked|parent_found|rewound|reverted|revert_committed|message_removed|part_removed)$", "conversation"], ["^(log_recovered|session_archived|session_deleted)$", "conversation"], ["^(checkpoint|attached|launched|updated|asset|stored|exported|copied|parent_updated)$", "record"]], "otherwise": "procedure"},
  "plan_update": "conversation",
  "team_message": "conversation",
  "team_task_update": "procedure",
  "team_state_change": "procedure",
  "queue_update": "procedure",
  "auth_status": "procedure",
  "mcp_status": "procedure",
  "rate_limit": "procedure",
  "heartbeat": "record",
  "process": "procedure",
  "control_request": "record",
  "control_response": "procedure",
  "raw": {"field": "reason", "patterns": [["^invalid_", "conversation"]], "otherwise": "procedure"},
};

/** @type {{action: string, kinds: string[], named: string, fields: {name: string, type: string, required: boolean, spelled: string}[]}[]} */
export const TOOL_SHAPES = [
  {"action": "command", "kinds": ["execute", "read", "search"], "named": "", "fields": [{"name": "command", "type": "command", "required": true, "spelled": "cmd command"}, {"name": "cwd", "type": "text", "required": false, "spelled": "cwd working_directory workdir dir_path directory"}, {"name": "description", "type": "text", "required": false, "spelled": "description"}, {"name": "background", "type": "flag", "required": false, "spelled": "run_in_background is_background"}]},
  {"action": "code", "kinds": ["execute"], "named": "", "fields": [{"name": "code", "type": "text", "required": true, "spelled": "code"}]},
  {"action": "list_folder", "kinds": ["read", "search"], "named": "^(ls|list)", "fields": [{"name": "path", "type": "text", "required": true, "spelled": "path dir_path target_directory directory dir"}]},
  {"action": "read_file", "kinds": ["read"], "named": "", "fields": [{"name": "path", "type": "text", "required": true, "spelled": "path file_path absolute_path notebook_path target_file filename"}, {"name": "offset", "type": "number", "required": false, "spelled": "offset start_line"}, {"name": "limit", "type": "number", "required": false, "spelled": "limit"}, {"name": "end", "type": "number", "required": false, "spelled": "end_line"}]},
  {"action": "edit_file", "kinds": ["edit"], "named": "", "fields": [{"name": "path", "type": "text", "required": true, "spelled": "path file_path absolute_path notebook_path target_file filename"}, {"name": "old", "type": "text", "required": true, "spelled": "old_string old_str old_text"}, {"name": "new", "type": "text", "required": true, "spelled": "new_string new_str new_text"}, {"name": "everywhere", "type": "flag", "required": false, "spelled": "replace_all"}]},
  {"action": "edit_places", "kinds": ["edit"], "named": "", "fields": [{"name": "path", "type": "text", "required": true, "spelled": "path file_path absolute_path notebook_path target_file filename"}, {"name": "edits", "type": "edits", "required": true, "spelled": "edits"}]},
  {"action": "write_file", "kinds": ["edit"], "named": "", "fields": [{"name": "path", "type": "text", "required": true, "spelled": "path file_path absolute_path notebook_path target_file filename"}, {"name": "content", "type": "text", "required": true, "spelled": "content file_text contents"}]},
  {"action": "delete_file", "kinds": ["edit"], "named": "delete|remove", "fields": [{"name": "path", "type": "text", "required": true, "spelled": "path file_path absolute_path notebook_path target_file filename"}]},
  {"action": "find_files", "kinds": ["search"], "named": "glob|find|file_?search", "fields": [{"name": "pattern", "type": "text", "required": true, "spelled": "pattern glob_pattern"}, {"name": "path", "type": "text", "required": false, "spelled": "path dir_path target_directory directory dir"}]},
  {"action": "find_text", "kinds": ["search"], "named": "", "fields": [{"name": "pattern", "type": "text", "required": true, "spelled": "pattern"}, {"name": "path", "type": "text", "required": false, "spelled": "path dir_path target_directory directory dir"}]},
  {"action": "search_web", "kinds": ["fetch", "search"], "named": "web|search|fetch", "fields": [{"name": "query", "type": "text", "required": true, "spelled": "query"}]},
  {"action": "fetch_page", "kinds": ["fetch"], "named": "", "fields": [{"name": "url", "type": "text", "required": true, "spelled": "url"}, {"name": "prompt", "type": "text", "required": false, "spelled": "prompt"}]},
  {"action": "start_agent", "kinds": ["agent"], "named": "^(?!send|write|follow|resume)", "fields": [{"name": "prompt", "type": "text", "required": true, "spelled": "prompt message task"}, {"name": "agent", "type": "text", "required": false, "spelled": "agent subagent_type agent_type agent_name task_name name"}, {"name": "description", "type": "text", "required": false, "spelled": "description"}]},
  {"action": "write_plan", "kinds": ["other", "think"], "named": "todo|plan", "fields": [{"name": "steps", "type": "steps", "required": true, "spelled": "todos plan items entries"}]},
  {"action": "propose_plan", "kinds": ["other", "think"], "named": "plan", "fields": [{"name": "plan", "type": "text", "required": true, "spelled": "plan"}]},
  {"action": "ask", "kinds": ["other", "think"], "named": "", "fields": [{"name": "questions", "type": "questions", "required": true, "spelled": "questions"}]},
];

/** @type {{action: string, kinds: string[], named: string, fields: {name: string, type: string, required: boolean, spelled: string}[]}} */
export const REPLACEMENT = {"action": "", "kinds": [], "named": "", "fields": [{"name": "old", "type": "text", "required": true, "spelled": "old_string old_str old_text"}, {"name": "new", "type": "text", "required": true, "spelled": "new_string new_str new_text"}, {"name": "everywhere", "type": "flag", "required": false, "spelled": "replace_all"}]};

/** @type {string} */
export const SHELL_PROGRAM = "(?:.*/)?(?:ba|z|da)?sh";

/** @type {string} */
export const SHELL_OPTION = "-l?c";

/** @type {string} */
export const FILES_IN_PATCH = "^\\*\\*\\* (?:Add|Update|Delete) File: (.*\\S)\\s*$";

/** @type {string[]} */
export const STEP_TEXTS = ["content", "step", "text", "description", "title"];

/** @type {string[]} */
export const QUESTION_TEXTS = ["question", "title", "header"];

/** @type {string[]} */
export const PATCH_TEXTS = ["patch", "patch_text", "input", "diff"];

/** @type {string[]} */
export const WRAPPED_CALL = ["args", "providerIdentifier", "toolName"];
