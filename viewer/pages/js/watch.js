// One run, followed: what was kept of it, then what happens, as long as somebody looks.
import { get, runPath, stream, serverNow } from "./api.js";
import { fromExport, fragments, Run } from "./fold.js";
import { parse } from "./json.js";
import { say, store } from "./store.js";

export class Watch {
  constructor(id, tell) {
    this.id = id;
    this.tell = tell; // something is new
    this.head = null;
    this.given = null;
    this.timeline = null;
    this.events = [];
    this.marks = []; // how many events there are up to each that is no fragment
    this.run = new Run();
    this.link = ""; // of the stream: open, lost, ended
    this.fault = null;
    this.note = ""; // what the stream said at last
    this.loaded = false;
    this.lastID = "";
    this.state = "";
    this.closed = false;
    this.inside = new Map(); // of each call that has ended, what was done inside of it
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
      // A run that rests is shown from what was kept. The stream would tell it only for the agent that it was made with, and without the runs inside of its calls.
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
    // A run that is gone on with tells calls that had ended without what was done inside of them.
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
          if (epoch || !this.lastID.startsWith(now + "-")) this.replace([]); // it is told from the beginning
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
          this.load(); // with what was kept of it
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

  // refresh asks for the times, and how the run stands.
  refresh() {
    clearTimeout(this.asking);
    this.asking = setTimeout(async () => {
      try {
        const [head, timeline] = await Promise.all([get(runPath(this.id)), get(runPath(this.id, "/timeline"))]);
        this.head = head;
        this.timeline = timeline;
        this.tell();
      } catch {} // the next one
    }, 150);
  }

  // listed is told how the list has the run; when it begins to work, it is followed.
  listed(r) {
    const state = r.state + (r.stop || "") + (r.waits || 0) + (r.state === "open" ? r.updated : ""); // an open one works elsewhere
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

  // at is the run as it was after the first n marks.
  at(n) {
    const run = new Run();
    const upto = n <= 0 ? 0 : this.marks[Math.min(n, this.marks.length) - 1];
    for (let i = 0; i < upto; i++) run.add(this.events[i]);
    return run;
  }
}
