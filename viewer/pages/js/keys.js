// Keys. Single-letter keys can be switched off, for people who use speech input.

export const keys = [
  ["Everywhere", [["g r", "runs"], ["g i", "inbox"], ["g t", "try"], ["g c", "compare"], ["g m", "memory"], ["/", "search"], ["t", "light, dark, or as the system"], ["?", "this help"], ["Esc", "close; leave a field"]]],
  ["Lists", [["j k", "next, previous"], ["Enter", "open"], ["x", "mark a run to compare"]]],
  ["A run", [["v", "next view"], ["[ ]", "an event back, on"], ["l", "live, or the whole"], ["↑ ↓", "rows of the timeline"], ["← →", "close, open what is inside"], ["Enter", "details"]]],
  ["Inbox", [["j k", "next, previous question"], ["a", "approve"], ["e", "edit the arguments"], ["d", "deny"]]],
];

let on = true;
try {
  on = localStorage.getItem("pawl.keys") !== "off";
} catch {}

export const keysOn = () => on;

export function setKeys(v) {
  on = v;
  try {
    localStorage.setItem("pawl.keys", v ? "on" : "off");
  } catch {}
}

const tell = (detail) => dispatchEvent(new CustomEvent("pawl-key", { detail }));

let g = 0; // time at which g was pressed

// listen registers the keys. o has go, theme and help.
export function listen(o) {
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
    const typing = e.target.closest?.("input:not([type=checkbox]):not([type=range]), textarea, select, [contenteditable]");
    if (e.key === "Escape") {
      if (typing) typing.blur();
      else tell("close");
      return;
    }
    if (typing || !on || document.querySelector("dialog[open]")) return;
    if (Date.now() - g < 1200) {
      g = 0;
      const to = { r: "#/runs", i: "#/inbox", t: "#/try", c: "#/compare", m: "#/memory" }[e.key];
      if (to) {
        e.preventDefault();
        return o.go(to);
      }
    }
    const f = {
      g: () => (g = Date.now()),
      "/": () => document.querySelector("input[type=search]")?.focus(),
      "?": o.help,
      t: o.theme,
      j: () => move(1),
      k: () => move(-1),
      x: () => tell("mark"),
      v: () => tell("tab"),
      "[": () => tell("earlier"),
      "]": () => tell("later"),
      l: () => tell("live"),
      a: () => question("approve"),
      e: () => question("edit"),
      d: () => question("deny"),
    }[e.key];
    if (!f || (e.target.matches?.("input[type=range]") && "[]".includes(e.key))) return;
    e.preventDefault();
    f();
  });
}

// move moves the focus among what the page lists.
function move(by) {
  const items = [...document.querySelectorAll("[data-item], .question, [role=treeitem]")].filter((el) => el.offsetParent);
  if (!items.length) return;
  const now = document.activeElement?.closest?.("[data-item], .question, [role=treeitem], [data-run]");
  const item = now?.matches?.("[data-run]") ? now.querySelector("[data-item]") : now;
  const i = items.indexOf(item);
  const next = items[i < 0 ? (by > 0 ? 0 : items.length - 1) : Math.max(0, Math.min(items.length - 1, i + by))];
  if (next.matches(".question")) next.tabIndex = -1;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

// question presses a button of the pending call that has the focus. Without focus it moves to the
// first pending call, so that a person sees a call before deciding about it.
function question(what) {
  const q = document.activeElement?.closest?.(".question");
  if (!q) {
    const first = document.querySelector(".question");
    if (first) {
      first.tabIndex = -1;
      first.focus();
    }
    return;
  }
  q.querySelector(`[data-do="${what}"]`)?.click();
}
