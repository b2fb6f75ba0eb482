// The states of runs and calls, in one table: the outcomes of calls (Outcome), the reasons why runs
// stop (StopReason) and the states of stored runs. A test compares it with the constants in Go.
// tone is the color of the badge; word is its text if it differs from the name; class is the class of
// a stop reason (StopClass).
export const states = {
  running: { tone: "run" },
  open: { tone: "run" },
  waiting: { tone: "wait" },
  over: { tone: "done", word: "done" },

  answer: { tone: "good", word: "answered", class: "answered" },
  finished: { tone: "good", class: "answered" },
  pending: { tone: "wait", word: "waits", class: "waiting" }, // also an outcome
  limit: { tone: "warn", class: "limited" },
  stalled: { tone: "warn", class: "failed" },
  cancelled: { tone: "off", class: "cancelled" }, // also an outcome
  failed: { tone: "bad", class: "failed" }, // also the state of a run

  ok: { tone: "good" },
  error: { tone: "bad" },
  invalid: { tone: "bad", early: true }, // early: the call ended before the tool ran
  unknown_tool: { tone: "bad", word: "no such tool", early: true },
  blocked: { tone: "warn", early: true },
  denied: { tone: "warn" },
  timeout: { tone: "bad" },
  panicked: { tone: "bad" },
  skipped: { tone: "off", early: true },
  unknown: { tone: "wait" },
};

const stateNamed = (name) => (Object.hasOwn(states, name) ? states[name] : {});

export const toneOf = (name) => stateNamed(name).tone || "off";
export const wordOf = (name) => stateNamed(name).word || name;

// neverBegan reports whether a call with this outcome ended before its tool ran.
export const neverBegan = (outcome) => !!stateNamed(outcome).early;

// classOf returns the class of a stop reason. A reason of a later version has the class failed: it
// must not count as success.
export const classOf = (stop) => stateNamed(stop).class || "failed";

// isQuiet reports whether the page shows no notice for a run that stopped for this reason: it
// succeeded, or its pending calls are shown instead.
export const isQuiet = (stop) => ["answered", "waiting"].includes(classOf(stop));
