// What agents remember of the user: seen, confirmed and forgotten.
import { html, useEffect, useState } from "../vendor/htm-preact.js";
import { del, get, post } from "./api.js";
import { Empty, runLink, Skeleton, Time, Trouble, useTick } from "./parts.js";
import { say, useStore } from "./store.js";
import { Long, plain, plural, visible } from "./text.js";

const path = (id, rest = "") => "/v1/memories/" + encodeURIComponent(id) + rest;
const outOf = (m) => ({ user: "said by the user", program: "written by a program" }[m.source?.kind] || "written by a model");

export function Memory() {
  const s = useStore();
  const [list, setList] = useState(null);
  const [search, setSearch] = useState("");
  const [sure, setSure] = useState(""); // the memory, or the run, whose button was pressed once
  const [fault, setFault] = useState(null);
  useTick(30000, true);
  const load = async () => {
    try {
      const all = [];
      for (let after = ""; ; ) {
        const page = await get("/v1/memories?limit=1000" + (after ? "&after=" + encodeURIComponent(after) : ""));
        all.push(...page.memories);
        if (!page.after || all.length > 20000) break;
        after = page.after;
      }
      setList(all.reverse());
      setFault(null);
    } catch (e) {
      setFault(e);
    }
  };
  useEffect(() => {
    load();
  }, [s.login, s.listed]);
  const act = async (f, said) => {
    setSure("");
    try {
      await f();
      say(said);
      await load();
      if (document.activeElement === document.body) document.querySelector("main h1")?.focus();
    } catch (e) {
      setFault(e);
    }
  };
  // twice asks before f: the first press changes the button
  const twice = (id, name, f) => html`<button class=${sure === id ? "small danger" : "small"} data-do="forget" onClick=${() => (sure === id ? act(f, "Forgotten") : setSure(id))}>${sure === id ? "Yes, " + name.toLowerCase() : name}</button>`;
  const needles = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = (list || []).filter((m) => needles.every((n) => (m.id + " " + m.text + " " + (m.source?.run || "") + " " + (m.source?.by || "") + " " + (m.source?.thread || "")).toLowerCase().includes(n)));
  return html`<section class="page narrow" aria-labelledby="h-memory">
    <div class="pagehead"><h1 id="h-memory" tabindex="-1">Memory</h1>${list?.length > 0 && html`<span class="muted">${plural(list.length, "memory", "memories")}</span>`}</div>
    <${Trouble} fault=${fault} onAgain=${load} />
    ${list?.length > 0 && html`<div class="filters" role="search"><label class="search"><span class="hide">Search memories</span><input type="search" placeholder="Search text, run…" value=${search} onInput=${(e) => setSearch(e.target.value)} /></label></div>`}
    ${!list && !fault && s.link !== "denied" && html`<${Skeleton} rows=${3} />`}
    ${list?.length === 0 && html`<${Empty} icon="memory" title="Nothing is remembered"><p>What agents with the tool <code>remember</code> keep about you comes here.</p></${Empty}>`}
    ${list?.length > 0 && found.length === 0 && html`<p class="muted">No memory fits.</p>`}
    ${found.slice(0, 500).map((m) => html`<article class="card pad memory" key=${m.id} aria-label=${"Memory " + plain(m.id)}>
      <${Long} text=${m.text} kind="prose" label="memory" />
      <p class="muted"><span class="mono">${visible(m.id)}</span> · ${outOf(m)}${m.source?.by ? html` (${visible(m.source.by)})` : ""} · <${Time} at=${m.created} />${m.source?.run ? html` · <a class="mono" href=${runLink(m.source.run)}>${visible(m.source.run)}</a>` : ""}${m.source?.thread ? html` · <span class="chip">conversation ${visible(m.source.thread)}</span>` : ""}${m.source?.agent ? html` · <span class="chip">only for ${visible(m.source.agent)}</span>` : ""}${m.source?.always ? html` · <span class="chip">always</span>` : ""}${m.source?.unconfirmed ? html` · <span class="chip">unconfirmed: no model is shown it</span>` : ""}${m.source?.outside ? html` · <span class="chip">a result from outside stood in the run</span>` : ""}</p>
      <div class="actions">${m.source?.unconfirmed && html`<button class="small primary" data-do="confirm" onClick=${() => act(() => post(path(m.id, "/confirm")), "Confirmed")}>Confirm</button>`}
        ${twice(m.id, "Forget", () => del(path(m.id)))}
        ${m.source?.run && twice("run " + m.source.run + " " + m.id, "Forget all of this run", () => del("/v1/memories?run=" + encodeURIComponent(m.source.run)))}</div>
    </article>`)}
    ${found.length > 500 && html`<p class="muted">And ${found.length - 500} more: search for them.</p>`}
    ${list?.length > 0 && html`<p class="muted">A stored run keeps what it recalled until the run is deleted.</p>`}
  </section>`;
}
