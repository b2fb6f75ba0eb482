// Small components that all pages use.
import { html, useEffect, useRef, useState } from "../vendor/htm-preact.js";
import { toneOf, wordOf } from "./states.js";
import { visible, plain, ago, moment } from "./text.js";

const paths = {
  runs: "M4 6h16M4 12h16M4 18h10",
  inbox: "M3 13l3-8h12l3 8v6H3v-6zm0 0h5a4 4 0 0 0 8 0h5",
  try: "M7 5l11 7-11 7V5z",
  compare: "M8 4v16M16 4v16M3 9l5-5 5 5M21 15l-5 5-5-5",
  memory: "M7 3h10v18l-5-4-5 4V3zM10 8h4",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5L19 19M5 19l1.5-1.5M17.5 6.5L19 5",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z",
  auto: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 3v18M12 8h6M12 12h8.5M12 16h7",
  key: "M14 10a5 5 0 1 0-4 4l2 2h2v2h2v2h4v-4l-6-6zM8 9h.01",
  model: "M12 3l2.2 6.3L21 12l-6.800 2.700L12 21l-2.200-6.300L3 12l6.800-2.700L12 3z",
  call: "M14.500 6.500a4 4 0 0 0-5.300 4.900L3.500 17a2 2 0 0 0 3 3l5.600-5.700a4 4 0 0 0 4.900-5.300L14.500 11.500l-2-2 2-3z",
  run: "M6 4v10a4 4 0 0 0 4 4h8M14 14l4 4-4 4M4 4h4",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  back: "M15 5l-7 7 7 7",
  next: "M9 5l7 7-7 7",
  play: "M8 5l11 7-11 7V5z",
  pause: "M8 5v14M16 5v14",
  ok: "M5 12.500l4.500 4.500L19 7.500",
  no: "M6 6l12 12M18 6L6 18",
  wait: "M12 7v5l3 2M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z",
  fork: "M7 4v16M7 12c6 0 10-2 10-8M14 7l3-3 3 3",
  dot: "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
};

export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d=${paths[name]} /></svg>`;

// stateOf returns the word for the state of a run. Why it stopped says more than that it has ended.
export const stateOf = (run) => (run.state === "over" && run.stop ? run.stop : run.state);

export const Badge = ({ state }) => html`<span class=${"badge " + toneOf(state)}>${wordOf(state)}</span>`;

export const Time = ({ at }) => {
  const ms = typeof at === "string" ? Date.parse(at) : at;
  return ms > 0 ? html`<time datetime=${new Date(ms).toISOString()} title=${moment(ms)}>${ago(ms)}</time>` : null;
};

// Empty shows that there is nothing, and what to do about it.
export const Empty = ({ icon, title, children }) => html`<div class="empty"><${Icon} name=${icon} /><p class="emptytitle">${title}</p>${children}</div>`;

export const Skeleton = ({ rows = 4 }) => html`<div class="skeletons" role="status" aria-label="Loading">${Array.from({ length: rows }, (_, i) => html`<div class="skeleton" key=${i} />`)}</div>`;

// Trouble shows why something failed.
export function Trouble({ fault, onAgain }) {
  if (!fault) return null;
  return html`<div class="trouble" role="alert">
    <p><strong>${visible(fault.message || String(fault))}</strong></p>
    ${fault.hint && html`<p>${visible(fault.hint)}</p>`}
    ${onAgain && html`<button class="small" onClick=${onAgain}>Try again</button>`}
  </div>`;
}

// Copy copies text.
export function Copy({ text, what }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {}
  };
  return html`<button class="icononly" onClick=${copy} aria-label=${done ? "Copied" : "Copy " + what} title=${"Copy " + what}><${Icon} name=${done ? "ok" : "copy"} /></button>`;
}

// Dialog is a question over the page. Escape closes it and returns the focus.
export function Dialog({ title, onClose, children }) {
  const ref = useRef();
  useEffect(() => {
    const d = ref.current;
    d.showModal();
    return () => d.open && d.close();
  }, []);
  return html`<dialog ref=${ref} aria-label=${plain(title)} onCancel=${(e) => (e.preventDefault(), onClose())} onClick=${(e) => e.target === ref.current && onClose()}>
    <div class="dialog">
      <div class="dialoghead"><h2>${visible(title)}</h2><button class="icononly" onClick=${onClose} aria-label="Close"><${Icon} name="no" /></button></div>
      ${children}
    </div>
  </dialog>`;
}

// Tabs is a tablist with arrow key navigation.
export function Tabs({ label, tabs, now, onPick }) {
  const ref = useRef();
  const key = (e) => {
    const i = tabs.findIndex((t) => t.id === now);
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    onPick(next.id);
    requestAnimationFrame(() => ref.current?.querySelector("[aria-selected=true]")?.focus());
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} ref=${ref} onKeyDown=${key}>
    ${tabs.map((t) => html`<button role="tab" key=${t.id} id=${"tab-" + t.id} aria-selected=${t.id === now ? "true" : "false"} tabindex=${t.id === now ? 0 : -1} onClick=${() => onPick(t.id)}>${t.title}${t.count ? html` <span class="num">${t.count}</span>` : ""}</button>`)}
  </div>`;
}

// Diffed shows lines that differ.
export const Diffed = ({ lines, label }) => html`<pre class="text diff" tabindex="0" role="region" aria-label=${label}>${lines.map(
  (l) => html`<span class=${"l " + ({ "+": "add", "-": "del", "…": "elided" }[l.sign] || "")}><span class="sign">${l.sign}</span>${visible(l.text)}${"\n"}</span>`,
)}</pre>`;

// Stat is a figure with its name.
export const Stat = ({ name, children, hint }) => html`<div class="stat" title=${hint || ""}><dt>${name}</dt><dd>${children}</dd></div>`;

// useTick redraws a component at an interval while on is true.
export function useTick(ms, on) {
  const [, again] = useState(0);
  useEffect(() => {
    if (!on) return;
    const t = setInterval(() => again((n) => n + 1), ms);
    return () => clearInterval(t);
  }, [ms, on]);
}

// go changes the page.
export const go = (hash) => {
  location.hash = hash;
};

export const runLink = (id, query = "") => "#/run/" + encodeURIComponent(id) + query;
