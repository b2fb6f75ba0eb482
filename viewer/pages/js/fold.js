// A run as of some event: it takes events one after another and gives a tree of requests, calls and
// nested runs. Nothing here touches the page.
import { classOf, neverBegan } from "./states.js";

export const fragments = new Set(["text", "reasoning", "call_delta", "progress"]);

// Run is the state of a run after some events.
export class Run {
  constructor() {
    this.nodes = new Map(); // by key, in order of their starts
    this.notices = [];
    this.gaps = [];
    this.steps = 0;
    this.events = 0;
    this.agent = "";
    this.spent = null;
    this.end = null;
    this.steered = [];
    this.todo = []; // the list of tool todo
  }

  node(key, kind, e) {
    let n = this.nodes.get(key);
    if (!n) {
      n = { key, kind, run: e.run || "run", step: e.step || 0, order: this.nodes.size, from: e.at, text: "", reasoning: "", deltas: new Map(), progress: [], notices: [], attempts: 0 };
      this.nodes.set(key, n);
    }
    return n;
  }

  // asking returns the request that fragments belong to: the last of their run.
  asking(e) {
    const key = e.path || e.run + "/" + Math.max(0, (e.step || 1) - 1) + "/model";
    return this.node(key, "request", e);
  }

  // add takes the next event. at is the time of its arrival; 0 means unknown.
  add(e) {
    this.events++;
    const f = take[e.event];
    if (f) f(this, e);
    return this;
  }

  // children returns the children of each key as a map; "run" is the run itself.
  tree() {
    const kids = new Map([["run", []]]);
    for (const n of this.nodes.values()) {
      let up = n.key;
      do up = up.slice(0, up.lastIndexOf("/"));
      while (up.includes("/") && !this.nodes.has(up));
      if (!this.nodes.has(up)) up = "run";
      if (!kids.has(up)) kids.set(up, []);
      kids.get(up).push(n);
    }
    for (const list of kids.values()) list.sort((a, b) => compareKeys(a.key, b.key));
    return kids;
  }

  // asker returns the request whose reply made a call.
  asker(call) {
    const m = /^(.*)\/(\d+)\/[^/]+$/.exec(call.key);
    return m ? this.nodes.get(m[1] + "/" + (m[2] - 1) + "/model") : undefined;
  }
}

const take = {
  run_started(run, e) {
    if (e.run === "run") run.agent = e.agent || run.agent;
    else Object.assign(run.node(e.run, "run", e), { name: e.agent });
  },
  step_started(run, e) {
    if (e.run === "run") run.steps = Math.max(run.steps, e.step || 0);
  },
  request_started(run, e) {
    const n = run.node(e.path, "request", e);
    Object.assign(n, { model: e.model, messages: e.messages, tools: e.tools, choice: e.choice, running: true, text: "", reasoning: "", ready: [] });
    n.deltas.clear();
  },
  text: (run, e) => (run.asking(e).text += e.text || ""),
  text_retracted(run, e) {
    const n = run.asking(e);
    if (!e.text) return; // a call: the next request_started drops it
    const of = n.text.endsWith(e.text) ? "text" : "reasoning";
    if (n[of].endsWith(e.text)) n[of] = n[of].slice(0, n[of].length - e.text.length);
  },
  reasoning: (run, e) => (run.asking(e).reasoning += e.text || ""),
  call_delta(run, e) {
    const n = run.asking(e);
    const d = n.deltas.get(e.index) || { id: "", name: "", text: [] };
    d.id += e.id && !d.id ? e.id : "";
    d.name = e.name || d.name;
    d.text.push(e.text || "");
    n.deltas.set(e.index, d);
  },
  call_ready(run, e) {
    const n = run.asking(e);
    (n.ready ||= []).push(e.call);
  },
  response_received(run, e) {
    const n = run.node(e.path, "request", e);
    Object.assign(n, { response: e.response, running: false, to: e.at });
    n.deltas.clear();
  },
  call_started(run, e) {
    const n = run.node(e.path, "call", e);
    Object.assign(n, { name: e.call?.name, started: e.call, running: true, attempts: Math.max(n.attempts, e.attempt || 1), execution: undefined, to: 0 });
    const asker = run.asker(n);
    if (asker && !asker.response) n.early = true;
  },
  progress(run, e) {
    const n = run.nodes.get(e.path);
    if (n && n.progress.length < 500) n.progress.push({ text: e.text, data: e.data });
  },
  call_completed(run, e) {
    const x = e.execution || {};
    const n = run.node(e.path || x.key, "call", e);
    Object.assign(n, { name: n.name || x.call?.name, execution: x, running: false, to: e.at });
    const todo = x.values?.["pawl.todo"]?.items;
    if (Array.isArray(todo) && (e.run || "run") === "run") run.todo = todo;
    for (const inner of run.nodes.values()) if (inner.running && inner.key.startsWith(n.key + "/")) inner.running = false;
  },
  notice(run, e) {
    const n = run.nodes.get(e.path);
    const note = { code: e.code, text: e.text, data: e.data, step: e.step, path: e.path };
    if (n) n.notices.push(note);
    else run.notices.push(note);
  },
  gap: (run, e) => run.gaps.push(e),
  steered: (run, e) => run.steered.push({ step: e.step, message: e.message, path: e.path }),
  step(run, e) {
    if (e.run === "run") run.spent = e.spent || run.spent;
    if (!e.error) return;
    // its request has failed: what arrived of the reply stays
    for (const n of run.nodes.values()) if (n.kind === "request" && n.run === e.run && n.running) Object.assign(n, { error: e.error, running: false, to: e.at });
  },
  run_ended(run, e) {
    if (e.run === "run") {
      run.end = { ...e.result, error: e.error };
      run.spent = e.result?.spent || run.spent;
      for (const n of run.nodes.values()) n.running = false;
    } else Object.assign(run.node(e.run, "run", e), { end: e.result, error: e.error, running: false });
  },
};

// ms returns a moment in ms, with the fractions that Date.parse drops.
function ms(s) {
  const f = s && /\.\d{3}(\d+)/.exec(s);
  return s ? Date.parse(s) + (f ? +("0." + f[1]) : 0) : 0;
}

// compareKeys orders keys by their position in the run. A step's calls come before its request.
export function compareKeys(a, b) {
  const x = a.split("/");
  const y = b.split("/");
  for (let i = 0; i < Math.max(x.length, y.length); i++) {
    if (x[i] === y[i]) continue;
    if (x[i] === undefined) return -1;
    if (y[i] === undefined) return 1;
    const n = +x[i];
    const m = +y[i];
    if (n >= 0 && m >= 0) return n - m;
    if (n >= 0) return -1;
    if (m >= 0) return 1;
    return x[i] < y[i] ? -1 : 1;
  }
  return 0;
}

// fromExport creates the events of a run from its stored records. Viewing a run in this way
// executes nothing.
export function fromExport(x, timeline) {
  const times = new Map((timeline?.spans || []).map((s) => [s.key, s]));
  const list = [];
  const put = (key, rank, at, e) => list.push({ key, rank, at, e });
  const step = (key) => {
    const m = /^run\/(\d+)/.exec(key);
    return m ? +m[1] + (key.split("/")[2] === "model" ? 1 : 0) : 1;
  };
  const seen = new Set(["run"]);
  for (const r of x.replies || []) {
    const run = r.key.replace(/\/\d+\/model$/, "");
    const s = times.get(r.key);
    if (!seen.has(run)) {
      seen.add(run);
      put(run + "/", 0, ms(s?.started), { event: "run_started", run, step: step(r.key), agent: run.slice(run.lastIndexOf("/") + 1) });
    }
    put(r.key, 0, ms(s?.started), { event: "request_started", run, step: step(r.key), path: r.key });
    put(r.key, 1, ms(s?.ended), { event: "response_received", run, step: step(r.key), path: r.key, response: r.response });
  }
  const runOf = (key) => [...seen].filter((r) => key.startsWith(r + "/")).sort((a, b) => b.length - a.length)[0] || "run";
  for (const c of x.calls || []) {
    const s = times.get(c.key);
    const e = { run: runOf(c.key), step: step(c.key), path: c.key };
    if (!neverBegan(c.execution.outcome)) put(c.key, 0, ms(s?.started), { event: "call_started", ...e, call: c.call, attempt: 1 });
    put(c.key, 1, ms(s?.ended), { event: "call_completed", ...e, execution: c.execution });
  }
  for (const q of x.pending || []) {
    if (!seen.has(q.key)) put(q.key, 1, ms(times.get(q.key)?.started), { event: "call_completed", run: runOf(q.key), step: step(q.key), path: q.key, execution: { key: q.key, call: q.call, outcome: q.outcome, waiting: [q], result: { parts: [] } } });
  }
  for (const w of x.steered || []) for (const m of w.messages || []) put(w.key, -1, 0, { event: "steered", run: runOf(w.key), step: step(w.key), path: w.key, message: m });
  list.sort((a, b) => order(a, b));
  const events = [{ event: "run_started", run: "run", step: 1, agent: x.agent }, ...list.map((l) => ({ ...l.e, at: l.at }))];
  if (x.end) events.push({ event: "run_ended", run: "run", step: 0, result: { ...x.end, messages: undefined }, error: x.end.error, at: ms(timeline?.ended) });
  return events;
}

// order puts enclosing items around their content and keeps the order of the rest.
function order(a, b) {
  const within = (inner, outer) => inner.startsWith(outer.endsWith("/") ? outer : outer + "/");
  if (a.key === b.key) return a.rank - b.rank;
  if (within(b.key, a.key)) return a.rank === 1 ? 1 : -1;
  if (within(a.key, b.key)) return b.rank === 1 ? -1 : 1;
  return compareKeys(a.key.replace(/\/$/, ""), b.key.replace(/\/$/, ""));
}

// transcript returns the messages of the run: its input, each reply, the results of its calls, and
// messages that arrived during the run.
export function transcript(run, given) {
  const out = (given || []).map((message) => ({ message }));
  const made = new Map(); // calls by step
  for (const n of run.nodes.values()) {
    const m = n.kind === "call" && /^run\/(\d+)\/[^/]+$/.exec(n.key);
    if (m) made.set(+m[1], [...(made.get(+m[1]) || []), n]);
  }
  for (let step = 0; ; step++) {
    const calls = (made.get(step) || []).sort((a, b) => compareKeys(a.key, b.key));
    for (const c of calls) out.push({ call: c, step });
    for (const s of run.steered) if (s.path === "run/" + step + "/model" || (!s.path && s.step === step + 1)) out.push({ message: s.message, steered: true });
    const request = run.nodes.get("run/" + step + "/model");
    if (request) out.push({ request, step: step + 1 });
    if (!request && calls.length === 0 && step > 0) break;
  }
  return out;
}

// intervals returns when each node was active: the server's times if it has them, otherwise the
// times of its events.
export function intervals(run, timeline, now) {
  const times = new Map((timeline?.spans || []).map((s) => [s.key, s]));
  const last = new Map(); // end of the last activity in each run
  const out = new Map();
  for (const n of run.nodes.values()) {
    const s = times.get(n.key);
    const x = n.execution;
    const waits = (s?.waits || []).map((w) => ({ from: ms(w.asked), to: ms(w.answered), by: w.by }));
    last.set(n.run, Math.max(last.get(n.run) || 0, ms(s?.ended), n.kind === "call" && zero(n.execution?.ended) ? ms(n.execution.ended) : 0));
    let from = ms(s?.started) || (n.kind === "call" && x && zero(x.started) ? ms(x.started) : n.from || 0);
    let to = n.running ? now : (n.kind === "call" && x && zero(x.ended) ? ms(x.ended) : 0) || ms(s?.ended) || n.to || 0;
    if (x && x.outcome === "pending" && !(run.end && classOf(run.end.stop) === "cancelled")) to = 0;
    // it started when the activity before it had ended
    if (n.kind === "request" && !s && last.get(n.run)) from = last.get(n.run);
    if (s?.copied) from = to = 0; // it happened in another run
    if (from && to && to < from) to = from;
    out.set(n.key, { from, to, waits, copied: s?.copied, open: !!n.running || (n.kind === "call" && x?.outcome === "pending") });
  }
  for (const n of run.nodes.values()) { // a nested run has no times of its own: they are the times of its content
    if (n.kind !== "run") continue;
    const own = out.get(n.key);
    let from = 0;
    let to = 0;
    for (const [key, t] of out) {
      if (key === n.key || !key.startsWith(n.key + "/") || !t.from) continue;
      from = from ? Math.min(from, t.from) : t.from;
      to = Math.max(to, t.to || t.from);
    }
    if (from) Object.assign(own, { from, to });
  }
  return out;
}

const zero = (t) => t && !t.startsWith("0001-");

// totals returns the sums of a run's replies.
export function usage(run) {
  const u = { input: 0, output: 0, reasoning: 0, cache_read: 0, cache_write: 0, cost: 0 };
  for (const n of run.nodes.values()) {
    const v = n.response?.usage;
    if (v) for (const k of Object.keys(u)) u[k] += v[k] || 0;
  }
  return u;
}
