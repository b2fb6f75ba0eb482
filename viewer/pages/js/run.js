// One run: its timeline, transcript, events and effects, its replay, and the actions for it.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/htm-preact.js";
import { get, post, runPath, serverNow } from "./api.js";
import { Detail, Usage } from "./detail.js";
import { intervals, usage } from "./fold.js";
import { pretty } from "./json.js";
import { Badge, Copy, Dialog, Empty, go, Icon, runLink, Skeleton, Stat, stateOf, Tabs, Time, Trouble, useTick } from "./parts.js";
import { Question } from "./question.js";
import { classOf } from "./states.js";
import { say, useStore } from "./store.js";
import { count, line, Long, money, moment, plain, plural, span, visible } from "./text.js";
import { Ending, Transcript } from "./transcript.js";
import { Watch } from "./watch.js";
import { Waterfall } from "./waterfall.js";

// useWatch follows a run while the component exists; it redraws at most once per frame.
function useWatch(id) {
  const [, again] = useState(0);
  const ref = useRef(null);
  if (ref.current?.id !== id) {
    ref.current?.close();
    let due = 0;
    ref.current = new Watch(id, () => {
      due ||= requestAnimationFrame(() => {
        due = 0;
        again((n) => n + 1);
      });
    });
  }
  useEffect(() => () => ref.current?.close(), []);
  return ref.current;
}

export function RunPage({ id, query }) {
  const s = useStore();
  const w = useWatch(id);
  const [tab, setTabState] = useState(query.get("tab") || "timeline");
  const [selected, setSelected] = useState(query.get("sel") || "");
  const arrived = query.toString();
  useLayoutEffect(() => { // a link into the current page
    setTabState(query.get("tab") || "timeline");
    setSelected(query.get("sel") || "");
  }, [arrived]);
  const [at, setAt] = useState(null); // position of the slider; null means the current state
  const [ask, setAsk] = useState("");
  const listed = s.runs.get(id);
  if (listed) w.listed(listed);
  const head = { ...w.head, ...(listed || {}), pending: w.head?.pending };
  const working = head.state === "running";
  useTick(500, working && at === null);

  const remember = (tab, sel) => history.replaceState(null, "", runLink(id, "?" + new URLSearchParams({ tab, ...(sel ? { sel } : {}) })));
  const setTab = (t) => (setTabState(t), remember(t, selected));
  const select = (key, quiet) => {
    const next = !quiet && key === selected ? "" : key;
    setSelected(next);
    remember(tab, next);
    if (next && !quiet && innerWidth < 1000) requestAnimationFrame(() => document.getElementById("detail")?.scrollIntoView({ block: "nearest" }));
  };
  const marks = w.marks.length;
  const shown = useMemo(() => (at === null ? w.run : w.at(at)), [at, at === null ? null : marks, w.run]);
  const now = working ? serverNow() : 0;
  const times = useMemo(() => intervals(w.run, w.timeline, now), [w.run, w.run.events, w.timeline, now]);
  const shownTimes = at === null ? times : within(shown, times);
  const node = selected && shown.nodes.get(selected);
  const pending = at === null && head.state === "waiting" ? w.head?.pending : [];

  // the current actions of keys, because keys can arrive faster than the page is drawn
  const keys = useRef();
  const view = useRef(tab);
  view.current = tab;
  keys.current = (e) => {
    if (e.detail === "earlier") setAt((n) => Math.max(0, (n ?? marks) - 1));
    if (e.detail === "later") setAt((n) => (n === null || n + 1 >= marks ? null : n + 1));
    if (e.detail === "live") setAt(null);
    if (e.detail === "tab") setTab((view.current = { timeline: "transcript", transcript: "events", events: "effects", effects: "timeline" }[view.current]));
    if (e.detail === "close" && selected) select(selected);
  };
  useLayoutEffect(() => { // the loading page had the focus
    if (w.loaded && document.activeElement === document.body) document.getElementById("h-run")?.focus({ preventScroll: true });
  }, [w.loaded]);
  useLayoutEffect(() => {
    const key = (e) => keys.current(e);
    addEventListener("pawl-key", key);
    return () => removeEventListener("pawl-key", key);
  }, []);

  if (w.fault && !w.loaded) return html`<section class="page"><div class="pagehead"><h1 tabindex="-1">Run</h1></div><${Trouble} fault=${w.fault} onAgain=${() => w.load()} /><p><a href="#/runs">All runs</a></p></section>`;
  if (!w.loaded) return html`<section class="page"><div class="pagehead"><h1 tabindex="-1">Run</h1></div><${Skeleton} rows=${6} /></section>`;

  const u = usage(shown);
  const state = at === null ? stateOf(head) : shown.end?.stop || "running";
  const took = (working ? serverNow() : Date.parse(w.timeline?.ended || head.updated)) - Date.parse(head.created);
  const waited = (w.timeline?.spans || []).some((sp) => sp.waits);
  return html`<section class="page runpage" aria-labelledby="h-run">
    <div class="crumbs"><a href="#/runs">Runs</a></div>
    <div class="pagehead runhead">
      <div class="grow"><h1 id="h-run" tabindex="-1">${head.task ? line(head.task, 200) : visible(id)}</h1>
        <p class="sub"><${Badge} state=${state} /> <span class="mono">${visible(id)}</span><${Copy} text=${id} what="the run's id" /> <span>${visible(head.agent || "")}</span> <${Time} at=${head.created} />${head.outage ? html` <span class="chip">${visible(head.cause || "")}</span>` : ""}</p></div>
      <${Actions} head=${head} onAsk=${setAsk} w=${w} />
    </div>
    <dl class="stats wide">
      <${Stat} name=${waited ? "Time, with waiting" : "Time"}>${span(took)}<//>
      <${Stat} name="Requests">${count([...shown.nodes.values()].filter((n) => n.response).length)}<//>
      <${Stat} name="Calls">${count([...shown.nodes.values()].filter((n) => n.kind === "call").length)}<//>
      <${Stat} name="Tokens" hint=${"in " + count(u.input) + ", out " + count(u.output)}>${count(u.input + u.output)}<//>
      ${u.input > 0 && html`<${Stat} name="Cache hit" hint=${count(u.cache_read) + " of " + count(u.input) + " tokens were read from the provider's cache"}>${Math.round((100 * u.cache_read) / u.input)}%<//>`}
      ${u.cost > 0 && html`<${Stat} name="Cost">${money(u.cost)}<//>`}
    </dl>
    ${w.link === "lost" && html`<p class="banner warn" role="status">The stream broke off. Connecting again; nothing is lost.</p>`}
    ${w.note && html`<p class="banner bad" role="alert">${visible(w.note)}</p>`}
    ${w.run.gaps.length > 0 && html`<p class="banner warn" role="status">${gapText(w.run.gaps)}</p>`}
    <${Slider} w=${w} at=${at} onAt=${setAt} working=${working} />
    ${pending?.length > 0 && tab !== "transcript" && !(node && pending.some((p) => p.key === selected)) && html`<div class="pendings">${pending.map((p) => html`<${Question} key=${p.key + p.digest} run=${id} agent=${head.agent} w=${p} />`)}</div>`}
    <${Tabs} label="Views of the run" now=${tab} onPick=${setTab} tabs=${[{ id: "timeline", title: "Timeline" }, { id: "transcript", title: "Transcript" }, { id: "events", title: "Events", count: at === null ? marks : at }, { id: "effects", title: "Effects" }]} />
    <div role="tabpanel" aria-labelledby=${"tab-" + tab} class="panel">
      ${tab === "timeline" && html`<div class=${"timeline" + (node ? " split2" : "")}>
        <div class="grow">${shown.nodes.size ? html`<${Waterfall} shown=${shown} times=${shownTimes} selected=${selected} onSelect=${select} ordinal=${![...times.values()].some((t) => t.from)} />` : html`<${Empty} icon="runs" title=${emptyTitle(head, shown)}>${head.outage ? html`<p>It goes on by itself: ${visible(head.cause || "")}.</p>` : head.state === "open" && html`<p>It waits for a process.</p>`}</${Empty}>`}
          ${shown.todo.length > 0 && html`<details class="card pad" open><summary>Todo: ${shown.todo.filter((x) => x?.state === "done").length} of ${shown.todo.length} done</summary><ul class="notices">${shown.todo.slice(0, 50).map((x) => html`<li><span class="chip">${visible(String(x?.state))}</span> ${visible(String(x?.text).slice(0, 200))}</li>`)}</ul></details>`}
          ${shown.notices.length > 0 && html`<details class="card pad"><summary>${plural(shown.notices.length, "notice")}</summary><ul class="notices">${shown.notices.slice(0, 200).map((x) => html`<li><span class="chip">${visible(x.code || "notice")}</span> ${visible(x.text || "")}</li>`)}</ul></details>`}
          ${shown.end && html`<${Ending} end=${shown.end} />`}
          ${shown.end && (shown.end.answer || classOf(shown.end.stop) === "answered") && html`<${Answer} run=${shown} onMore=${() => setTab("transcript")} />`}</div>
        ${node && html`<${Detail} n=${node} run=${shown} given=${w.given} t=${shownTimes.get(selected)} pending=${pending} watch=${w} onFork=${(n) => setAsk("fork:" + n)} onClose=${() => select(selected)} onReplay=${(n) => setAt(markOf(w, n))} />`}
      </div>`}
      ${tab === "transcript" && html`<${Transcript} run=${shown} given=${w.given} pending=${pending} watch=${w} onSelect=${(key) => (setTabState("timeline"), setSelected(key), remember("timeline", key))} />`}
      ${tab === "events" && html`<${Events} w=${w} upto=${at === null ? w.events.length : at === 0 ? 0 : w.marks[at - 1]} />`}
      ${tab === "effects" && html`<${Effects} id=${id} version=${head.state + w.run.events} />`}
    </div>
    ${ask && html`<${Asking} ask=${ask} id=${id} w=${w} head=${head} onClose=${() => setAsk("")} />`}
  </section>`;
}

// emptyTitle returns what a run without an activity waits for.
function emptyTitle(head, shown) {
  if (head.outage) return "The model's provider is away";
  if (head.state === "open") return "It has not begun";
  return shown.end ? "No reply came" : "Nothing has happened yet";
}

// within returns the times of a run as of some moment; activities in progress at that moment have
// not ended.
function within(shown, times) {
  let last = 0;
  for (const n of shown.nodes.values()) {
    const t = times.get(n.key);
    if (t) last = Math.max(last, n.running ? t.from : t.to || t.from);
  }
  const out = new Map();
  for (const n of shown.nodes.values()) {
    const t = times.get(n.key);
    if (t) out.set(n.key, n.running ? { ...t, to: Math.max(t.from, Math.min(last, t.to || last)), waits: [] } : t);
  }
  return out;
}

function markOf(w, n) {
  const i = w.events.findIndex((e) => (e.event === "call_started" || e.event === "request_started" || e.event === "run_started" || e.event === "call_completed") && (e.path === n.key || (n.kind === "run" && e.run === n.key)));
  return i < 0 ? null : w.marks.findIndex((m) => m > i) + 1;
}

function gapText(gaps) {
  const lost = new Map();
  for (const g of gaps) for (const [k, v] of Object.entries(g.lost || {})) lost.set(k, (lost.get(k) || 0) + v);
  return "Missed on the way, as they came too fast: " + [...lost].map(([k, v]) => v + " " + plain(k)).join(", ") + ". What was said is whole all the same: replies and results come in full.";
}

// Answer shows how the run answered. Runs of versions before 0.1 have it in their last reply only.
function Answer({ run, onMore }) {
  const last = [...run.nodes.values()].filter((n) => n.kind === "request" && n.run === "run" && n.response).pop();
  const said = (last?.response.message.parts || []).filter((p) => p.type === "text").map((p) => p.text).join("");
  const text = run.end.answer ? run.end.answer.text : said;
  return text ? html`<div class="answer card pad"><h2>Answer</h2><p>${line(text, 600)}</p><button class="linkish" onClick=${onMore}>in the transcript</button></div>` : null;
}

// Slider replays the run.
function Slider({ w, at, onAt, working }) {
  const n = w.marks.length;
  const [playing, setPlaying] = useState(false);
  useEffect(() => {
    if (!playing) return;
    const t = setInterval(() => onAt((now) => (now === null || now + 1 >= n ? (setPlaying(false), null) : now + 1)), Math.max(40, Math.min(400, 8000 / Math.max(1, n))));
    return () => clearInterval(t);
  }, [playing, n]);
  if (n < 2) return null;
  const now = at ?? n;
  const e = now > 0 ? w.events[w.marks[now - 1] - 1] : null;
  const what = e ? describe(e) : "before it began";
  return html`<div class="slider" role="group" aria-label="Replay">
    <button class="icononly" aria-label="One event back" disabled=${now === 0} onClick=${() => onAt(Math.max(0, now - 1))}><${Icon} name="back" /></button>
    <button class="icononly" aria-label=${playing ? "Pause" : "Play from here"} onClick=${() => {
      if (!playing && at === null) onAt(0);
      setPlaying(!playing);
    }}><${Icon} name=${playing ? "pause" : "play"} /></button>
    <button class="icononly" aria-label="One event on" disabled=${at === null} onClick=${() => onAt(now + 1 >= n ? null : now + 1)}><${Icon} name="next" /></button>
    <input type="range" id="replay" min="0" max=${n} value=${now} aria-label="The run as of event" aria-valuetext=${"event " + now + " of " + n + ": " + what} onInput=${(ev) => onAt(+ev.target.value >= n ? null : +ev.target.value)} />
    <span class="where">${at === null ? (working ? html`<span class="livedot"></span> live` : "whole") : now + " / " + n}</span>
    ${at !== null && html`<button class="small" onClick=${() => (setPlaying(false), onAt(null))}>${working ? "Back to live" : "Show all"}</button><span class="what muted">${what}</span>`}
  </div>`;
}

function describe(e) {
  const name = e.call?.name || e.execution?.call?.name || e.agent || e.code || e.result?.stop || "";
  return (e.step ? "step " + e.step + ", " : "") + e.event.replaceAll("_", " ") + (name ? " " + plain(name) : "");
}

function Events({ w, upto }) {
  const [most, setMost] = useState(150);
  const list = [];
  for (let i = upto - 1; i >= 0 && list.length < most; i--) list.push(i);
  if (!list.length) return html`<${Empty} icon="runs" title="No events yet" />`;
  return html`<div class="events"><p class="muted">${w.live ? "As they came, the latest first." : "Made from what was kept of the run, the latest first."}</p>
    <ol>${list.map((i) => html`<${EventRow} key=${i} e=${w.events[i]} n=${i + 1} />`)}</ol>
    ${upto > most && html`<p class="center"><button onClick=${() => setMost(most + 500)}>Show ${Math.min(500, upto - most)} earlier</button></p>`}</div>`;
}

function EventRow({ e, n }) {
  const [open, setOpen] = useState(false);
  const { at, ...rest } = e;
  return html`<li><details onToggle=${(ev) => setOpen(ev.target.open)}><summary><span class="muted num">${n}</span> <span class="evkind">${visible(e.event)}</span> <span class="sub mono">${visible(e.path || e.run || "")}</span> <span class="sub">${line(e.text || e.call?.name || e.execution?.outcome || e.code || "", 80)}</span></summary>
    ${open && html`<${Long} text=${pretty(rest)} kind="json" label="event" />`}</details></li>`;
}

function Effects({ id, version }) {
  const [list, setList] = useState(null);
  const [fault, setFault] = useState(null);
  useEffect(() => {
    get(runPath(id, "/effects")).then((r) => (setList(r.effects), setFault(null)), setFault);
  }, [id, version]);
  if (fault) return html`<${Trouble} fault=${fault} />`;
  if (!list) return html`<${Skeleton} rows=${2} />`;
  if (!list.length) return html`<${Empty} icon="call" title="It did nothing to the world"><p>Calls that act, and what is known of each, stand here.</p></${Empty}>`;
  return html`<ul class="effects">${list.map((f) => html`<li class="card pad" key=${f.key}>
    <div class="effecthead"><span class="mono">${visible(f.tool)}</span><span class=${"effect " + f.effect}>${f.effect || ""}</span><span class=${"badge " + ({ completed: "good", failed: "bad", unknown: "wait", started: "run", intended: "wait" }[f.state] || "off")}>${f.state}</span><span class="sub mono">${visible(f.key)}</span></div>
    <${Long} text=${pretty(f.call?.args ?? {})} kind="json" label="arguments" />
    ${f.idempotency_key && html`<p class="facts muted">Idempotency key <span class="mono wrap">${visible(f.idempotency_key)}</span></p>`}
    ${f.error && html`<p class="wrong">${visible(f.error.slice(0, 2000))}</p>`}
  </li>`)}</ul>`;
}

function Actions({ head, onAsk, w }) {
  const over = head.state === "over";
  const goOn = async () => {
    try {
      await post("/v1/runs", { id: head.id });
      say("It continues");
    } catch (e) {
      w.note = e.message;
      w.tell();
    }
  };
  const save = async () => {
    const text = pretty(await get(runPath(head.id, "/export")));
    const a = document.createElement("a");
    a.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    a.download = head.id.replace(/[^\w.-]/g, "_") + ".json";
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
  };
  return html`<div class="actions" role="group" aria-label="Actions">
    ${(head.state === "failed" || head.state === "open") && html`<button class="primary" onClick=${goOn}><${Icon} name="play" /> Go on</button>`}
    ${!over && html`<button data-do="steer" onClick=${() => onAsk("steer")}>Send a message…</button>`}
    <button data-do="fork" onClick=${() => onAsk("fork")}><${Icon} name="fork" /> Fork…</button>
    <button data-do="compare" onClick=${() => go("#/compare/" + encodeURIComponent(head.id))}><${Icon} name="compare" /> Compare…</button>
    <button onClick=${save}>Save JSON</button>
    ${!over && html`<button class="danger" data-do="cancel" onClick=${() => onAsk("cancel")}>Cancel…</button>`}
  </div>`;
}

function Asking({ ask, id, w, head, onClose }) {
  const [what, step] = ask.split(":");
  const replies = [...w.run.nodes.values()].filter((n) => n.kind === "request" && n.run === "run" && n.response).length;
  const [text, setText] = useState("");
  const [steps, setSteps] = useState(step ? +step : Math.max(0, replies));
  const [start, setStart] = useState(true);
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState(null);
  const act = async (f) => {
    setBusy(true);
    setFault(null);
    try {
      await f();
      onClose();
    } catch (e) {
      setFault(e);
      setBusy(false);
    }
  };
  if (what === "cancel")
    return html`<${Dialog} title="Cancel the run?" onClose=${onClose}><p>Calls in progress are ended; their effects remain. The run cannot be resumed, but it can be forked.</p><${Trouble} fault=${fault} />
      <div class="actions"><button class="danger" disabled=${busy} onClick=${() => act(() => post(runPath(id, "/cancel")))}>${busy ? "Cancelling…" : "Cancel the run"}</button><button onClick=${onClose}>Leave it</button></div></${Dialog}>`;
  if (what === "steer")
    return html`<${Dialog} title="Send a message" onClose=${onClose}><p>The run takes it with its next request.</p>
      <label class="field"><span class="fieldname">Message</span><textarea rows="4" value=${text} onInput=${(e) => setText(e.target.value)} /></label><${Trouble} fault=${fault} />
      <div class="actions"><button class="primary" disabled=${busy || !text.trim()} onClick=${() => act(async () => (await post(runPath(id, "/steer"), { input: text }), say("Sent")))}>Send</button><button onClick=${onClose}>Back</button></div></${Dialog}>`;
  return html`<${Dialog} title="Fork the run" onClose=${onClose}><p>Another run begins with the first replies of this one, and what their calls gave. Nothing is done again.</p>
    <label class="field"><span class="fieldname">Replies to keep, of ${replies}</span><input type="number" min="0" max=${replies} value=${steps} onInput=${(e) => setSteps(+e.target.value)} /></label>
    <label class="field"><span class="fieldname">Its id</span><input value=${text} placeholder="one is made" autocomplete="off" onInput=${(e) => setText(e.target.value)} /></label>
    <label class="field check"><input type="checkbox" checked=${start} onChange=${(e) => setStart(e.target.checked)} /> <span class="fieldname">Let it go on at once</span></label>
    <${Trouble} fault=${fault} />
    <div class="actions"><button class="primary" disabled=${busy} onClick=${() => act(async () => {
      const made = await post(runPath(id, "/fork"), { steps, id: text.trim() || undefined });
      if (start) await post("/v1/runs", { id: made.id });
      go(runLink(made.id));
    })}>Fork</button><button onClick=${onClose}>Back</button></div></${Dialog}>`;
}
