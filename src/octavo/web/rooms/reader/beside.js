// The split view: marks both quotes, and scrolls both texts to them.

import { all, one } from "../../shell/js/dom.js";
import { markQuote } from "./reader-text.js";

for (const pane of all(".pane-text")) {
  const { cited, quote } = pane.dataset;
  if (cited && quote) markQuote(pane, { chunk: cited, quote }, { class: "quoted" });
  const target = one("mark.quoted", pane) ?? (cited && one(`[id="c-${cited}"]`, pane));
  // Only the pane scrolls, not the page.
  if (target) pane.scrollTop += target.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight * 0.3;
}

for (const link of all(".pane-quote a")) {
  link.addEventListener("click", (/** @type {Event} */ event) => {
    const pane = one(".pane-text", link.closest(".pane"));
    const target = one("mark.quoted", pane) ?? one(`[id="${link.hash.slice(1)}"]`, pane);
    if (!target) return;
    event.preventDefault();
    target.scrollIntoView({ block: "center" });
  });
}
