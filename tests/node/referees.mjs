// Judges what projections made: a case a line on stdin, {"form": ..., "data": ...}, and for each an answer a line on stdout, {"problem": ..., ...}.

import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import { from, lastValueFrom, toArray } from "rxjs";
import { enforceEvents, verifyEvents } from "@ag-ui/client";
import { parseJsonEventStream } from "@ai-sdk/provider-utils";
import { readUIMessageStream, uiMessageChunkSchema, validateUIMessages } from "ai";
import Ajv2020 from "ajv/dist/2020.js";

const warnings = [];
console.warn = (...words) => warnings.push(words.join(" "));
console.error = console.warn;

function sent(text) {
  return text.split("\n\n").filter(Boolean).map((event) => event.split("\n").find((line) => line.startsWith("data: ")).slice(6));
}

// ---- AG-UI: the schema with nothing unknown in it, and the order of events

async function agUi(text) {
  const events = sent(text).map((data) => JSON.parse(data));
  await lastValueFrom(from(events).pipe(enforceEvents(), verifyEvents(), toArray()));
  if (warnings.length) throw new Error(warnings[0]);
}

// ---- the stream of Vercel's AI SDK: read by its own reader, which must meet no error but those that were sent

async function vercelStream(text) {
  if (!text.endsWith("data: [DONE]\n\n")) throw new Error("no [DONE] at the end");
  const body = new Blob([text]).stream();
  const parsed = parseJsonEventStream({ stream: body, schema: uiMessageChunkSchema });
  const expected = [];
  const chunks = parsed.pipeThrough(
    new TransformStream({
      transform(part, controller) {
        if (!part.success) throw part.error;
        if (part.value.type === "error") expected.push(part.value.errorText);
        controller.enqueue(part.value);
      },
    }),
  );
  const problems = [];
  const messages = new Map();
  for await (const message of readUIMessageStream({ stream: chunks, onError: (error) => problems.push(error.message) })) {
    messages.set(message.id, message);
  }
  if (JSON.stringify(problems) !== JSON.stringify(expected)) throw new Error(`errors: ${problems}; sent: ${expected}`);
  if (warnings.length) throw new Error(warnings[0]);
  const read = JSON.parse(JSON.stringify([...messages.values()]));
  if (read.length) await validateUIMessages({ messages: read });
  return { messages: read };
}

async function vercelMessages(text) {
  const messages = JSON.parse(text);
  if (messages.length) await validateUIMessages({ messages });
}

// ---- ACP: every line against the schema of version 1

const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema(JSON.parse(readFileSync(new URL("node_modules/@agentclientprotocol/sdk/schema/v1/schema.json", import.meta.url))), "acp");
const notification = ajv.compile({ $ref: "acp#/$defs/SessionNotification" });
const results = { initialize: "InitializeResponse", "session/list": "ListSessionsResponse", "session/load": "LoadSessionResponse" };
const error = ajv.compile({ $ref: "acp#/$defs/Error" });

async function acp(text) {
  for (const line of text.split("\n").filter(Boolean)) {
    const message = JSON.parse(line);
    if (message.jsonrpc !== "2.0") throw new Error("not JSON-RPC 2.0");
    if (message.method !== "session/update") throw new Error(`unexpected ${line.slice(0, 200)}`);
    must(notification, message.params);
  }
}

async function acpAnswer(text) {
  const { method, message } = JSON.parse(text);
  if (message.error) return must(error, message.error);
  must(ajv.compile({ $ref: `acp#/$defs/${results[method]}` }), message.result);
}

function must(validate, value) {
  if (!validate(value)) throw new Error(`${ajv.errorsText(validate.errors)}: ${JSON.stringify(value).slice(0, 400)}`);
}

const referees = { "ag-ui": agUi, "vercel-ui": vercelStream, "vercel-ui-messages": vercelMessages, acp, "acp-answer": acpAnswer };

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { form, data } = JSON.parse(line);
  warnings.length = 0;
  let answer;
  try {
    answer = { problem: null, ...(await referees[form](data)) };
  } catch (problem) {
    answer = { problem: String(problem.message ?? problem) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
