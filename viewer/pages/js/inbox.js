// The pending calls of all runs.
import { html, useEffect } from "../vendor/htm-preact.js";
import { Empty, runLink, Skeleton, Time, useTick } from "./parts.js";
import { Question } from "./question.js";
import { refreshInbox, useStore } from "./store.js";
import { line, plural, visible } from "./text.js";

export function Inbox() {
  const s = useStore();
  useTick(5000, true);
  useEffect(() => {
    refreshInbox();
  }, []);
  const n = s.waiting.reduce((n, w) => n + w.pending.length, 0);
  return html`<section class="page narrow" aria-labelledby="h-inbox">
    <div class="pagehead"><h1 id="h-inbox" tabindex="-1">Inbox</h1>${n > 0 && html`<span class="muted">${plural(n, "question")}</span>`}</div>
    ${!s.listed && s.link !== "denied" && html`<${Skeleton} rows=${3} />`}
    ${s.listed && n === 0 && html`<${Empty} icon="inbox" title="Nothing waits for you"><p>Calls that have to be approved, and questions of agents, come here by themselves.</p></${Empty}>`}
    ${s.waiting.map(({ run, pending }) => html`<section class="asking" key=${run.id} aria-label=${"Run " + run.id}>
      <div class="askinghead"><a href=${runLink(run.id)}>${line(run.task || run.id)}</a><span class="muted"><span class="mono">${visible(run.id)}</span> · ${visible(run.agent || "")} · <${Time} at=${run.updated} /></span></div>
      ${pending.map((w) => html`<${Question} key=${w.key + w.digest} run=${run.id} user=${run.user} agent=${run.agent} w=${w} />`)}
    </section>`)}
  </section>`;
}
