// Sends questions and shows answers without loading a new page. Without this script, forms load whole pages.

import { confirm } from "../../shell/js/dialog.js";
import { all, icon, make, one, parse, t } from "../../shell/js/dom.js";
import { fetchPiece } from "../../shell/js/request.js";

const form = one("#asking");
const turns = one("#answer");
const stop = one("#stop");
/** @type {AbortController | null} */
let running = null;

form?.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  const wanted = readForm();
  if (wanted.question.trim()) start(wanted);
});
stop?.addEventListener("click", () => running?.abort());
turns?.addEventListener("submit", (/** @type {any} */ event) => {
  const { again } = event.target.dataset;
  if (!again) return;
  event.preventDefault();
  const turn = event.target.closest(".turn");
  start({ question: one(".asked", turn).textContent, thread_id: turns.dataset.thread, again }, turn);
});
for (const removal of all("form[data-delete]")) removal.addEventListener("submit", remove);

/** @returns {{ question: string, [name: string]: any }} */
function readForm() {
  const fields = new FormData(form);
  const chosen = fields.getAll("document");
  const [collection, query] = ["collection", "query"].map((name) => String(fields.get(name) ?? "").trim());
  const given = { ...(collection && { collection }), ...(query && { query }), ...(chosen.length && { document_ids: chosen }) };
  const thread = turns.dataset.thread;
  return { question: String(fields.get("question") ?? ""), ...(thread && { thread_id: thread }), scope: Object.keys(given).length ? given : null };
}

/** Answers a question in a new turn, or in `before` again. @param {any} wanted @param {HTMLElement} [before] */
async function start(wanted, before) {
  running?.abort(); // cancel the previous answer, which would cost time and money
  const mine = (running = new AbortController());
  const view = new TurnView(wanted.question, before);
  stop.hidden = false;
  try {
    const headers = { "content-type": "application/json", accept: "text/event-stream" };
    const answer = await fetch("/api/v1/ask", { method: "POST", headers, body: JSON.stringify({ ...wanted, drafts: true }), signal: mine.signal });
    if (!answer.ok || !answer.body) return view.refuse((await answer.json()).detail);
    if (!before) form.elements.question.value = "";
    for await (const [name, data] of read(answer.body)) {
      if (name === "thread") view.name(data);
      else if (name === "passages") view.show(data);
      else if (name === "draft") view.write(data);
    }
    await view.finish(t("The answer was interrupted. Ask again."));
  } catch {
    await view.finish(mine.signal.aborted ? t("Stopped. Ask again.") : t("The answer was interrupted. Ask again."));
  } finally {
    if (running === mine) stop.hidden = true;
  }
}

/** Server-sent events, one by one. @param {ReadableStream<Uint8Array>} body @returns {AsyncGenerator<[string, any]>} */
async function* read(body) {
  const reader = body.pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (held + value).split("\n\n");
    held = blocks.pop() ?? "";
    for (const block of blocks) {
      const [, name] = /^event: (.*)$/m.exec(block) ?? [];
      const [, data] = /^data: (.*)$/m.exec(block) ?? [];
      if (name && data) yield [name, JSON.parse(data)];
    }
  }
}

class TurnView {
  /** @param {string} question @param {HTMLElement} [before] */
  constructor(question, before) {
    this.said = make("div", { class: "said" }, make("p", { class: "quiet" }, t("Reading your documents")));
    this.turn = make("li", { class: "turn", "aria-busy": "true" }, make("h2", { class: "asked", dir: "auto" }, question), this.said);
    one("#before")?.remove();
    one(".conversation > .note")?.remove();
    for (const again of all("form[data-again]", turns)) again.remove(); // only the last question can be answered again
    if (before) before.replaceWith(this.turn);
    else turns.append(this.turn);
    this.turn.scrollIntoView({ block: "nearest" });
  }

  /** The thread has an address from now on. @param {{ thread_id: string, turn_id: string }} data */
  name({ thread_id: thread, turn_id: turn }) {
    this.address = `/ask/${thread}/turns/${turn}`;
    turns.dataset.thread = thread;
    form.action = `/ask/${thread}`;
    if (location.pathname !== `/ask/${thread}`) this.list(`/ask/${thread}`);
    for (const part of [form.elements.question, one("label[for=question]")]) {
      part.placeholder = t("Ask a follow-up question");
      if (part.tagName === "LABEL") part.textContent = part.placeholder;
    }
  }

  /** A new thread gets an address and a place in the list. @param {string} address */
  list(address) {
    history.replaceState(null, "", address);
    one("#new-thread").hidden = false;
    one(".history").hidden = false;
    const title = make("span", { class: "cut", dir: "auto" }, one(".asked", this.turn).textContent);
    one(".history ol").prepend(make("li", {}, make("a", { class: "past", href: address, "aria-current": "page" }, title)));
  }

  /** Shows the passages that were found, until the answer arrives. @param {{ passages: any[], understood_as: string | null }} data */
  show({ passages, understood_as: meant }) {
    if (meant) this.said.before(make("p", { class: "understood small quiet" }, t("Understood as:"), " ", make("span", { dir: "auto" }, meant)));
    const found = passages.slice(0, 3).map((one) => make("li", { class: "card source" }, make("div", { class: "hit" }, passage(one))));
    if (found.length) this.turn.append(make("h3", {}, t("Passages found")), make("ol", { class: "sources" }, ...found));
  }

  /** Shows the answer so far, before its quotes are checked. @param {{ text: string }} data */
  write({ text }) {
    const lines = text.split("\n").map((line) => make("p", { dir: "auto" }, line));
    this.said.replaceChildren(make("p", { class: "quiet small" }, t("Writing the answer. Quotes are checked at the end.")), ...lines);
  }

  /** Shows the stored turn, even if it was stopped or failed. @param {string} otherwise the message if it is not stored */
  async finish(otherwise) {
    try {
      if (!this.address) throw new Error("not stored");
      const turn = /** @type {HTMLElement} */ (one(".turn", parse(await fetchPiece(this.address))));
      this.turn.replaceWith(turn);
      offerCopies(turn);
    } catch {
      this.refuse(otherwise);
    }
  }

  /** @param {string} why */
  refuse(why) {
    this.turn.removeAttribute("aria-busy");
    this.said.replaceChildren(make("p", { class: "note bad", role: "alert" }, icon("error"), make("span", {}, why)));
  }
}

/** @param {any} found */
function passage({ snippet, title, page }) {
  const where = make("span", { class: "where small quiet" }, make("span", { class: "cut", dir: "auto" }, title));
  if (page) where.append(make("span", { class: "numbers" }, `p. ${page}`));
  return make("span", { class: "quoted" }, make("span", { class: "snippet", dir: "auto" }, snippet), where);
}

/** @param {ParentNode} within */
function offerCopies(within) {
  if (!navigator.clipboard) return;
  for (const button of all("[data-copy-text]", within)) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copyText);
      one("span", button).textContent = t("Copied");
      one("#announcements").textContent = t("Copied.");
    });
  }
}

/** @param {any} event */
async function remove(event) {
  event.preventDefault();
  const removal = event.currentTarget;
  const title = removal.dataset.delete;
  if (!(await confirm({ title: t("Delete thread?"), text: t("“%(title)s” and all its answers will be deleted. This cannot be undone.", { title }), verb: t("Delete") }))) return;
  const answer = await fetch(removal.action, { method: "POST", body: new URLSearchParams({ confirmed: "true" }) });
  if (!answer.ok) return;
  const row = removal.closest("[data-thread-row]");
  if (row.dataset.threadRow === turns.dataset.thread) location.assign("/ask");
  else row.remove();
}

offerCopies(document);
if (form?.hasAttribute("data-ask-now")) form.requestSubmit(); // at the end, when everything above is defined
