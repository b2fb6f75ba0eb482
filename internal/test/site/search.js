// The search of the site: the same words, stems and weights as index.go.
"use strict";
const ignored = new Set("a an and are as at be by do does for from how i in is it my of on or that the there to use what with you your can".split(" "));
const ends = ["ations", "ation", "ings", "ing", "als", "al", "ers", "er", "ed", "es", "s", "e"];

function stem(w) {
  for (const end of ends) {
    if (w.endsWith(end) && w.length - end.length > 3) {
      return w.slice(0, w.length - end.length);
    }
  }
  return w;
}

function search(question) {
  const score = index.pages.map(() => 0);
  for (const w of question.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || []) {
    if (ignored.has(w)) {
      continue;
    }
    const found = Object.hasOwn(index.words, stem(w)) ? index.words[stem(w)] : [];
    for (const [page, weight] of found) {
      score[page] += weight * Math.log(1 + index.pages.length / found.length);
    }
  }
  const all = index.pages.map((page, i) => ({ page, score: score[i] * (page.reference ? 0.7 : 1) }));
  return all.filter((x) => x.score > 0).sort((a, b) => b.score - a.score).map((x) => x.page);
}

if (typeof document !== "undefined") {
  const input = document.querySelector("#search");
  const hits = document.querySelector("#hits");
  const root = document.body.dataset.root;
  input.addEventListener("input", () => {
    hits.replaceChildren(...search(input.value).slice(0, 8).map((page) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = root + page.target;
      link.textContent = page.title;
      item.append(link);
      return item;
    }));
  });
}
