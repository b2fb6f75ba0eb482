// Markdown as nodes: headings, lists, quotes, code, tables, emphasis, links to http and https.
// Everything else, such as raw HTML, is text.
import { html } from "../vendor/htm-preact.js";
import { visible, Long } from "./text.js";

const most = 30000; // characters; the rest is shown as text

// Markdown shows text that a model wrote for people.
export function Markdown({ text }) {
  text = String(text ?? "");
  if (text.length > most) return html`<${Long} text=${text} kind="prose" label="text" />`;
  return html`<div class="md" dir="auto">${blocks(text.split(/\r?\n/), 0)}</div>`;
}

function blocks(lines, depth) {
  const out = [];
  let i = 0;
  const para = [];
  const flush = () => {
    if (para.length) out.push(html`<p>${inline(para.splice(0).join("\n"))}</p>`);
  };
  while (i < lines.length) {
    const line = lines[i];
    let m;
    if (line.length > 1000) {
      para.push(line);
      i++;
      continue;
    }
    if ((m = /^\s{0,3}(`{3,}|~{3,})\s*([^`]*)$/.exec(line))) {
      flush();
      const code = [];
      for (i++; i < lines.length && !lines[i].trimStart().startsWith(m[1]); i++) code.push(lines[i]);
      i++;
      out.push(html`<${Long} text=${code.join("\n")} label=${"code " + m[2].trim().slice(0, 20)} />`);
    } else if ((m = /^\s{0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(line))) {
      flush();
      i++;
      out.push(html`<p class="mdh" role="heading" aria-level=${Math.min(6, m[1].length + 3)}>${inline(m[2])}</p>`);
    } else if (/^\s{0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) {
      flush();
      i++;
      out.push(html`<hr />`);
    } else if (/^\s{0,3}>/.test(line) && depth < 8) {
      flush();
      const quoted = [];
      for (; i < lines.length && /^\s{0,3}>/.test(lines[i]); i++) quoted.push(lines[i].replace(/^\s{0,3}> ?/, ""));
      out.push(html`<blockquote>${blocks(quoted, depth + 1)}</blockquote>`);
    } else if ((m = /^(\s*)([-*+]|\d{1,9}[.)])\s+/.exec(line)) && depth < 8) {
      flush();
      const ordered = /\d/.test(m[2]);
      const items = [];
      while (i < lines.length) {
        const item = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/.exec(lines[i]);
        if (!item || item[1].length > m[1].length + 1 || /\d/.test(item[2]) !== ordered) break;
        const body = [item[3]];
        const indent = item[1].length + item[2].length + 1;
        for (i++; i < lines.length && (lines[i].trim() === "" ? /^\s/.test(lines[i + 1] || "") : lines[i].search(/\S/) >= Math.min(indent, item[1].length + 2)); i++) body.push(lines[i].slice(Math.min(indent, Math.max(0, lines[i].search(/\S/)))));
        items.push(html`<li>${body.length === 1 ? inline(body[0]) : blocks(body, depth + 1)}</li>`);
      }
      out.push(ordered ? html`<ol start=${parseInt(m[2], 10)}>${items}</ol>` : html`<ul>${items}</ul>`);
    } else if (line.includes("|") && /^[\s|:-]*-[\s|:-]*$/.test((lines[i + 1] || "").slice(0, 1000))) {
      flush();
      const cells = (l) => l.trim().replace(/^\||\|$/g, "").split("|").slice(0, 30);
      const head = cells(line);
      const rows = [];
      for (i += 2; i < lines.length && lines[i].includes("|"); i++) rows.push(cells(lines[i]));
      out.push(html`<div class="scroll" tabindex="0" role="region" aria-label="table"><table><thead><tr>${head.map((c) => html`<th>${inline(c.trim())}</th>`)}</tr></thead>
        <tbody>${rows.map((r) => html`<tr>${r.map((c) => html`<td>${inline(c.trim())}</td>`)}</tr>`)}</tbody></table></div>`);
    } else if (line.trim() === "") {
      flush();
      i++;
    } else {
      para.push(line);
      i++;
    }
  }
  flush();
  return out;
}

// Every part of it is bounded, so that the time is linear in the length of the text.
const span = /(?<!`)(`{1,3})(?!`)([^`]|[^`][^]{0,300}?[^`])\1(?!`)|!?\[([^\]\n]{0,500})\]\(\s*<?([^\s)>]{1,2000})>?(?:\s+"[^"\n]*")?\s*\)|\*\*([^*\n]+)\*\*|__([^_\n]+)__|(?<![\w*])\*([^*\s][^*\n]*)\*|(?<![\w_])_([^_\s][^_\n]*)_(?!\w)|~~([^~\n]+)~~|\bhttps?:\/\/[^\s<>"'`)\]]{1,2000}/g;

function inline(text) {
  const out = [];
  let from = 0;
  for (const m of text.matchAll(span)) {
    out.push(...visible(text.slice(from, m.index)));
    from = m.index + m[0].length;
    if (m[1]) out.push(html`<code>${visible(m[2].trim())}</code>`);
    else if (m[4] !== undefined) out.push(link(m[4], m[3], m[0]));
    else if (m[5] || m[6]) out.push(html`<strong>${inline(m[5] || m[6])}</strong>`);
    else if (m[7] || m[8]) out.push(html`<em>${inline(m[7] || m[8])}</em>`);
    else if (m[9]) out.push(html`<del>${inline(m[9])}</del>`);
    else out.push(link(m[0], m[0], m[0]));
  }
  out.push(...visible(text.slice(from)));
  return out;
}

// link returns a link if its target is a web page, followed by the target unless the words are the
// target. Otherwise it returns text.
function link(target, words, raw) {
  let url;
  try {
    url = new URL(target);
  } catch {
    return visible(raw);
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") return visible(raw);
  return html`<a href=${url.href} target="_blank" rel="noopener noreferrer nofollow">${visible(words || target)}</a>${words !== target && html`<span class="muted host"> (${visible(url.host)})</span>`}`;
}
