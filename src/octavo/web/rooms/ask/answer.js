// Sends the question and shows the answer as it arrives. Without this script the form loads a whole page.

import { icon, make, one } from "../../shell/js/dom.js";

const form = one("#asking");
const place = one("#answer");
/** @type {AbortController | null} */
let running = null;

form?.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  running?.abort(); // cancel the previous answer, which would cost time and money
  running = new AbortController();
  const fields = new FormData(form);
  const chosen = fields.getAll("document");
  ask({ question: fields.get("question"), ...(chosen.length ? { document_ids: chosen } : {}) }, running.signal);
});

/** @param {object} wanted @param {AbortSignal} signal */
async function ask(wanted, signal) {
  const shown = new AnswerView();
  try {
    const headers = { "content-type": "application/json", accept: "text/event-stream" };
    const answer = await fetch("/api/v1/ask", { method: "POST", headers, body: JSON.stringify(wanted), signal });
    if (!answer.ok || !answer.body) return shown.fail((await answer.json()).detail);
    for await (const [name, data] of read(answer.body)) {
      if (name === "passages") shown.show(data.passages);
      else if (name === "text") shown.say(data);
      else if (name === "citations") shown.cite(data);
      else if (name === "error") shown.fail(data.detail);
    }
  } catch {
    if (!signal.aborted) shown.fail("The answer was interrupted. Ask again.");
  } finally {
    if (!signal.aborted) shown.end();
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

class AnswerView {
  constructor() {
    this.said = make("div", { class: "said" });
    /** @type {{ line: HTMLElement, numbers: number[], verified: boolean }[]} */
    this.lines = [];
    one("#before")?.remove();
    place.hidden = false;
    place.setAttribute("aria-busy", "true");
    place.replaceChildren(this.said);
  }

  /** The passages that are read, until the answer cites some of them. @param {any[]} passages */
  show(passages) {
    if (!passages.length) return;
    const cited = passages.map((one) => source({ ...one, quote: one.snippet, verified: true }));
    this.found = make("div", { class: "found" }, make("h2", {}, "Passages found"), make("ol", { class: "sources" }, ...cited));
    place.append(this.found);
  }

  /** @param {{ text: string, citations: number[], verified: boolean }} data */
  say({ text, citations, verified }) {
    const words = text.replace(/(\s*\[\d+\??\])+\s*$/, "").trim();
    const line = make("p", { dir: "auto" }, words);
    this.lines.push({ line, numbers: citations, verified });
    this.said.append(line);
  }

  /** @param {{ citations: any[], found: boolean, made_by: string, answer: string | null, note: string | null }} data */
  cite({ citations, found, made_by: by, answer, note }) {
    if (answer) this.said.prepend(make("p", { class: "short", dir: "auto" }, answer));
    for (const { line, numbers, verified } of this.lines) {
      for (const number of numbers) line.append(" ", chip(citations[number - 1]));
      if (found && !verified) line.append(" ", make("span", { class: "chip warn" }, icon("warning"), "Not verified"));
    }
    if (note) this.said.append(make("p", { class: "quiet small" }, note));
    if (!citations.length) return;
    this.found?.remove();
    if (answer) this.dropQuoted(citations);
    const made = by === "local" ? "Quotes found offline. Set up a model for written answers." : `Written by ${by} from the passages above. Check important facts.`;
    place.append(make("h2", {}, "Sources"), make("ol", { class: "sources" }, ...citations.map(source)), make("p", { class: "quiet small made" }, made));
  }

  /** Lines that only repeat a quote are listed once, under the sources. @param {any[]} citations */
  dropQuoted(citations) {
    const quotes = new Set(citations.map((one) => flat(one.quote)));
    for (const { line } of this.lines) if (quotes.has(flat(line.firstChild?.textContent ?? ""))) line.remove();
  }

  /** @param {string} why */
  fail(why) {
    place.append(make("p", { class: "note bad", role: "alert" }, icon("error"), make("span", {}, why)));
  }

  end() {
    place.removeAttribute("aria-busy");
  }
}

/** @param {string} text */
const flat = (text) => text.replace(/\s+/g, " ").trim();

/** The quote, with the words that answer the question marked. @param {any} cited */
function quoted({ quote, answer }) {
  const text = flat(quote);
  const at = answer ? text.indexOf(answer) : -1;
  const parts = at < 0 ? [text] : [text.slice(0, at), make("mark", {}, answer), text.slice(at + answer.length)];
  return make("span", { class: "snippet", dir: "auto" }, ...parts);
}

/** @param {any} cited */
const address = (cited) => `/documents/${cited.document_id}?c=${cited.chunk_id}#c-${cited.chunk_id}`;

/** @param {any} cited */
function chip(cited) {
  const label = `${cited.page ? `p. ${cited.page}` : cited.number}${cited.verified ? "" : "?"}`;
  const title = `${cited.title}${cited.verified ? "" : ", not verified"}`;
  return make("a", { class: `cite${cited.verified ? "" : " doubted"}`, href: address(cited), title }, label);
}

/** @param {any} cited */
function source(cited) {
  const where = make("span", { class: "where small quiet" }, make("span", { class: "cut", dir: "auto" }, cited.title));
  if (cited.page) where.append(make("span", { class: "numbers" }, `p. ${cited.page}`));
  if (!cited.verified) where.append(make("span", {}, "No exact match for this quote"));
  return make("li", {}, make("a", { class: "hit", href: address(cited) }, quoted(cited), where));
}
