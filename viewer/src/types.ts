/** The document inside the page: `horolog.report/1`, as the crate `horolog-report` writes it. */

/** Rows and base64 of deflated columns. */
export type Packed = [rows: number, base64: string];

export type LaneKind = "task" | "server" | "device" | "cpu" | "kernel";

export interface PackedLane {
  kind: LaneKind;
  index: number;
  name: string;
  intervals: Packed;
  jobs: Packed;
  marks: Packed;
}

export interface Timeline {
  from_ns: number;
  to_ns: number;
  events_kept: number;
  events_dropped: number;
  labels: string[];
  lanes: PackedLane[];
}

export interface RunTask {
  name: string;
  jobs: number;
  completed: number;
  missed: number;
  unfinished: number;
  response_ns_min: number | null;
  response_ns_mean: number | null;
  response_ns_p50: number | null;
  response_ns_p99_9: number | null;
  response_ns_max: number | null;
  preemptions: number;
  yields: number;
  switch_ins: number;
  vain_waits: number;
  overruns: number;
  skipped: number;
  histogram: [lower: number, count: number][];
  judged: { released: number; judged: number } | null;
}

export interface ServerRun {
  name: string;
  kind: string;
  consumed_ns: number | null;
  exhaustions: number;
  replenishments: number;
  enforcement?: {
    method: string;
    exhausted: number;
    overshoot_ns_p50: number | null;
    overshoot_ns_p99: number | null;
    overshoot_ns_max: number | null;
    share: number;
    allowed_share: number;
  };
}

export interface DeviceRun {
  name: string;
  events: number;
  served: number;
  dropped: number;
  refused: number;
  waiting: number;
  missed: number;
  executed_ns: number;
  response_ns_max: number | null;
}

export interface RequestRun {
  name: string;
  asked: number;
  answered: number;
  missed: number;
  charged_ns: number;
  response_ns_max: number | null;
}

export type RunKind = "simulated" | "measured";

export interface Run {
  kind: RunKind;
  backend: string;
  seed: number;
  horizon_ns: number;
  start_ns: number;
  events: number;
  events_lost: number;
  tasks: RunTask[];
  servers: ServerRun[];
  devices: DeviceRun[];
  requests: RequestRun[];
  timeline: Timeline | null;
  notes: string[];
}

export type TaskVerdict = "meets" | "misses" | "unknown";

export interface TaskRow {
  name: string;
  cpu: number;
  priority: number | null;
  preemption: string;
  period_ns: number | null;
  wcet_ns: number;
  deadline_ns: number | null;
  verdict: TaskVerdict;
  bound_ns: number | null;
  without_costs: { verdict: TaskVerdict; bound_ns: number | null } | null;
  exact: boolean;
  test: string;
  source: string;
  slack_ns: number | null;
  explain: string;
}

export interface ServerRow {
  name: string;
  kind: string;
  cpu: number;
  budget_ns: number | null;
  period_ns: number | null;
  serves: string[];
  guaranteed: boolean | null;
}

export interface DeviceRow {
  name: string;
  service: string;
  cpu: number;
  requests: string[];
  deadline_ns: number | null;
  verdict: TaskVerdict;
  bound_ns: number | null;
}

export type FindingClass = "model-violated" | "bound-violated" | "machine-disturbed" | "schedule-differs" | "cannot-tell" | "note";

export interface Finding {
  class: FindingClass;
  kind: string;
  text: string;
  run: number | null;
  task: number | null;
  job: number | null;
  cpu: number | null;
  time_ns: number | null;
  length_ns: number | null;
  group: number | null;
  count: number;
}

export interface FindingGroup {
  class: FindingClass;
  kind: string;
  subject: string;
  run: number;
  count: number;
  worst_excess_ns: number;
}

/** `closing` of the contract. */
export interface Closing {
  word: string;
  exit: number;
  text: string;
  help: string | null;
  missed: { name: string; count: number }[];
  causes: { class: string; check: string; subject: string; count: number; worst_excess_ns: number }[];
}

export interface Report {
  schema: string;
  plain_words: string;
  system: string;
  policy: string;
  verdict: {
    proof: "proved" | "not-proved" | "unknown";
    run: "held" | "missed" | "model-violated" | "bound-violated" | "disturbed" | "undecided" | null;
    best_effort: boolean;
    sentence: string;
    qualifiers: string[];
  };
  closing: Closing | null;
  tasks: TaskRow[];
  servers: ServerRow[];
  devices: DeviceRow[];
  runs: Run[];
  findings: Finding[];
  groups: FindingGroup[];
  findings_omitted: number;
  facts: { name: string; value: string; note: string }[];
  provenance: {
    command: string;
    created: string;
    versions: [string, string][];
    machine: [string, string][];
  };
  system_file: string;
  notes: string[];
  json: Packed | null;
}
