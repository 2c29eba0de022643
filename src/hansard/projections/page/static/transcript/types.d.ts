/** Shapes that several modules share. Payloads are as docs/events.md has them; a newer writer may say more, so they are read with care. */

export interface Event {
  id?: string;
  seq: number;
  timestamp?: number;
  receivedAt?: number;
  sessionId?: string;
  type: string;
  turnId?: string;
  responseId?: string;
  blockIndex?: number;
  parentToolCallId?: string;
  source?: string;
  stream?: string;
  synthetic?: boolean;
  replay?: boolean;
  /** The event that this one follows in the conversation, if it was recorded later than its place. */
  after?: string;
  frame?: number;
  direction?: "out";
  commandId?: string;
  payload: any;
  original?: any;
  large?: { bytes: number };
}

export interface Hooks {
  /** The frame of an event, as text. */
  original?: (seq: number) => Promise<string>;
  /** Where a blob can be had. */
  blob?: (sha256: string) => string;
  /** The address of an event. */
  href?: (seq: number) => string;
  /** Somebody chose an event. */
  onSelect?: (seq: number) => void;
  /** Somebody wants to see another session. */
  open?: (session: string) => void;
  /** How many events came since the reader left the end. */
  onUnseen?: (count: number) => void;
}

export type ToolState = "pending" | "running" | "done" | "error" | "interrupted" | "denied";

/** Everything that can be drawn by itself knows what it stands for and what it was drawn as. */
export interface Drawn {
  event: Event;
  /** What changed since it was drawn. */
  dirty: boolean;
  element: HTMLElement | null;
  removed?: boolean;
}

export interface TextItem extends Drawn {
  kind: "text";
  text: string;
  done: boolean;
  interrupted: boolean;
  citations: any[] | null;
  phase: string | null;
  last: Event;
  view: any;
}

export interface ThinkingItem extends Drawn {
  kind: "thinking";
  text: string;
  done: boolean;
  interrupted: boolean;
  redacted: boolean;
  durationMs: number | null;
  last: Event;
  view: any;
}

export interface ToolItem extends Drawn {
  kind: "tool";
  id: string;
  name: string | null;
  family: string | null;
  title: string | null;
  server: string | null;
  called: Event | null;
  args: any;
  input: string;
  output: { text: string; stream: string | null }[];
  outputSize: number;
  progress: string | null;
  content: any[] | null;
  result: Event | null;
  /** Whether it came to an end because somebody stopped it. */
  stopped: boolean;
  task: Task | null;
  asked: Event | null;
  answered: Event | null;
  question: Event | null;
  answer: Event | null;
  lane: Lane | null;
  turn: Turn;
  unit: Unit;
  open: boolean | null;
  body: HTMLElement | null;
}

export interface MessageItem extends Drawn {
  kind: "message";
  callback: Event | null;
}

export interface BlockItem extends Drawn {
  kind: "block";
  block: any;
}

export interface AudioItem extends Drawn {
  kind: "audio";
  chunks: Event[];
  done: Event | null;
}

export type Item = TextItem | ThinkingItem | ToolItem | MessageItem | BlockItem | AudioItem;

export interface Unit extends Drawn {
  kind: "said" | "response" | "notice" | "question" | "plan" | "end";
  lane: Lane;
  turn: Turn;
  speaker: string | null;
  /** Whether the speaker's name stands beside it. */
  named: boolean;
  responseId: string | null;
  items: Item[];
  usage: any;
  model: string | null;
  notice: Notice | null;
  answer: Event | null;
  height: number;
}

export interface Notice {
  tone: "quiet" | "info" | "wait" | "bad" | "stopped";
  icon: string;
  words: string;
  /** What to do next, in words. */
  next?: string | null;
  /** More, folded away: text, or any JSON. */
  more?: any;
  code?: string | null;
  /** How often it was said in a row. */
  times?: number;
}

export interface Lane {
  key: string;
  owner: ToolItem | null;
  units: Unit[];
  speaker: string | null;
}

export interface Turn {
  id: string | null;
  units: Unit[];
  start: Event | null;
  end: Event | null;
  interrupted: boolean;
  unfinished: boolean;
  /** The last text of the main agent in it. */
  answer: string;
  error: string | null;
  steps: number;
  open: Set<ToolItem>;
  element: HTMLElement | null;
}

/** The state of a session, as far as the page shows it: `Snapshot` in src/hansard/events/state.py, which has more. Its turns are kept apart. */
export interface State {
  title: string | null;
  turnStatus: string | null;
  running: Running | null;
  launchedAgent: string | null;
  agentId: string | null;
  model: string | null;
  permissionMode: string | null;
  mode: string | null;
  models: any[] | null;
  modes: any[] | null;
  cwd: string | null;
  workspace: { remote?: string; branch?: string; commit?: string; person?: string; machine?: string; entryPoint?: string } | null;
  lastCommit: string | null;
  commands: any[] | null;
  requests: { requestId: string; seq: number; type: string }[];
  queue: Record<string, string | null>;
  agentQueue: (string | null)[];
  tasks: Task[];
  plan: any[];
  teams: Record<string, any>;
  costUsd: number | null;
  context: { tokens: number | null; window: number | null } | null;
}

/** A subagent or a command in the background, by the call that started it. */
export interface Task {
  id: string;
  status: string;
  durationMs: number | null;
}

export interface Running {
  what: string;
  toolName: string | null;
  retryMs: number | null;
}

export interface TurnState {
  id: string;
  seq: number;
  number: number;
  title: string | null;
  status: string;
  durationMs: number | null;
  usage: any;
}
