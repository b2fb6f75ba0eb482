// One run, followed: its stored events, then new events, while the page is visible.
import { get, runPath, stream, serverNow } from "./api.js";
import { fromExport, fragments, Run } from "./fold.js";
import { parse } from "./json.js";
import { say, store } from "./store.js";

export class Watch {
  constructor(id, tell) {
    this.id = id;
    this.tell = tell; // called when there is something new
    this.head = null;
    this.given = null;
    this.timeline = null;
    this.events = [];
    this.marks = []; // number of events up to each event that is not a fragment
    this.run = new Run();
    this.link = ""; // state of the stream: open, lost, ended
    this.fault = null;
    this.note = ""; // last notice of the stream
    this.loaded = false;
    this.lastID = "";
    this.state = "";
    this.closed = false;
    this.inside = new Map(); // content of each completed call
    this.load();
  }

  async load() {
    try {
      const [head, kept, timeline] = await Promise.all([get(runPath(this.id)), get(runPath(this.id, "/export")), get(runPath(this.id, "/timeline"))]);
      if (this.closed) return;
      this.head = head;
      this.given = kept.messages;
      this.timeline = timeline;
      this.fault = null;
      const events = fromExport(kept, timeline);
      this.inside = new Map();
      for (const e of events) {
        const call = /^run\/\d+\/[^/]+(?=\/)/.exec(e.path || e.run)?.[0];
        if (!call || call === e.path) continue;
        if (!this.inside.has(call)) this.inside.set(call, []);
        this.inside.get(call).push(e);
      }
      // A stopped run is shown from its stored records. The stream would send it only for the agent
      // that started it, and without nested runs.
      if (head.state !== "running" || !this.stop) {
        if (head.state !== "running" && !(this.run.end && this.live && this.run.end.stop === kept.end?.stop)) this.replace(events);
        if (head.state === "running") this.follow();
      }
      this.loaded = true;
    } catch (e) {
      if (this.closed) return;
      this.fault = e;
      if (e.code === "away") this.retry = setTimeout(() => this.load(), 2000);
    }
    this.tell();
  }

  replace(events) {
    this.events = [];
    this.marks = [];
    this.run = new Run();
    this.live = false;
    for (const e of events) this.put(e);
  }

  take(e) {
    const inside = e.event === "call_completed" && this.inside.get(e.path);
    // A resumed run emits completed calls without their content.
    if (inside && !inside.some((i) => this.run.nodes.has(i.path))) inside.forEach((i) => this.put(i));
    this.put(e);
  }

  put(e) {
    this.events.push(e);
    if (!fragments.has(e.event)) this.marks.push(this.events.length);
    this.run.add(e);
  }

  follow() {
    this.stop?.();
    this.note = "";
    let epoch = "";
    this.stop = stream(runPath(this.id, "/events"), {
      lastEventID: this.lastID,
      state: (s) => {
        this.link = s;
        this.tell();
      },
      event: (m) => {
        const now = m.id.slice(0, m.id.indexOf("-"));
        if (now !== epoch && (m.id || "").includes("-")) {
          // all events are sent again from the beginning
          if (epoch || !this.lastID.startsWith(now + "-")) this.replace([]);
          epoch = now;
        }
        if (m.id) this.lastID = m.id;
        const e = parse(m.data);
        if (m.name === "error") {
          this.note = e.error?.message || "The run could not go on.";
          this.tell();
          return "end";
        }
        e.at = this.head?.state === "running" || this.state.startsWith("running") ? serverNow() : 0;
        this.live = true;
        this.take(e);
        this.tell();
        if (e.event === "step" || (e.event === "call_completed" && e.execution?.outcome === "pending")) this.refresh();
        if (e.event === "run_ended" && e.run === "run") {
          this.stop = null;
          this.load(); // with its stored content
          say("The run has ended: " + (e.result?.stop || "failed"));
          return "end";
        }
      },
      fault: (f) => {
        this.stop = null;
        if (f.status !== 401) this.note = f.message;
        this.tell();
      },
    });
  }

  // refresh requests the times and the state of the run.
  refresh() {
    clearTimeout(this.asking);
    this.asking = setTimeout(async () => {
      try {
        const [head, timeline] = await Promise.all([get(runPath(this.id)), get(runPath(this.id, "/timeline"))]);
        this.head = head;
        this.timeline = timeline;
        this.tell();
      } catch {} // the next refresh repeats it
    }, 150);
  }

  // listed receives the run's entry in the list; when the run starts to execute, it is followed.
  listed(r) {
    // an open one executes in another process
    const state = r.state + (r.stop || "") + (r.waits || 0) + (r.state === "open" ? r.updated : "");
    if (!this.loaded || state === this.state) return;
    const before = this.state;
    this.state = state;
    if (!before && this.head?.state === r.state) return;
    if (r.state === "running" && !this.stop) {
      this.lastID = "";
      this.follow();
      this.refresh();
    } else if (r.state !== "running") {
      if (this.stop && this.live) this.refresh();
      else this.load();
    }
  }

  close() {
    this.closed = true;
    clearTimeout(this.asking);
    clearTimeout(this.retry);
    this.stop?.();
  }

  // at returns the run after the first n marks.
  at(n) {
    const run = new Run();
    const upto = n <= 0 ? 0 : this.marks[Math.min(n, this.marks.length) - 1];
    for (let i = 0; i < upto; i++) run.add(this.events[i]);
    return run;
  }
}
