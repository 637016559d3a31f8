// Imports an Octavo export. The archive is read in the browser, and each document is sent separately, with the same requests
// as `octavo import`. So an interrupted import continues with the documents that are missing, and no part is sent twice.

import { bytes, format, make, one, plural, t } from "../../shell/js/dom.js";
import { RequestError, request } from "../../shell/js/request.js";
import { Archive, DamagedArchive } from "./tar.js";

const MANIFEST = "octavo-export.json";
const COMPLETE = "complete.json";
const FORMAT = 1;
const TOGETHER = 4;
const MOST_SENT = 500;
const MOST_SENT_BYTES = 8 << 20;
const MOST_SHOWN = 100;
const BATCH = /^\d+\.jsonl$/;
const BINARY = ["source", "unlocked", "page_raw", "transcript_raw", "image_jpeg"];
const TEXTS = ["markdown", "plain_markdown"];
// Statuses after which a request is sent again; 0 means that there was no response.
const REPEATED = [0, 429, 502, 503, 504];
const ATTEMPTS = 7;
// Errors that every other document would have, too.
const FATAL = ["UNAUTHENTICATED", "FORBIDDEN", "NOT_ALLOWED", "QUOTA_EXCEEDED", "TOO_MANY_UPLOADS"];

/** @typedef {{id: string, sha256: string, title?: string, filename: string, path: string, version?: number, duplicate_of?: string | null, files: {kind: string, revision: number, path: string, sha256: string}[]}} DocumentRecord */
/** @typedef {{line: string, record: DocumentRecord}} Line */

class NotAnExport extends Error {}

class Import {
  /** @param {Archive} archive @param {string[]} kinds @param {() => void} onChange @param {AbortSignal} stop */
  constructor(archive, kinds, onChange, stop) {
    this.archive = archive;
    this.kinds = kinds;
    this.onChange = onChange;
    this.stop = stop;
    this.id = randomId();
    this.total = 0;
    this.done = 0;
    this.counts = { added: 0, exists: 0, trashed: 0, records: 0 };
    /** @type {string[]} */
    this.failed = [];
  }

  async run() {
    await this.#check();
    const batches = this.archive.list("documents", BATCH);
    for (const batch of batches) this.total += (await this.#lines(batch)).length;
    for (const kind of this.kinds) {
      if (kind !== "documents") await this.#records(kind);
      else {
        for (const batch of batches) await this.#batch(batch, false);
        // Documents with the same content as another one come after all others.
        for (const batch of batches) await this.#batch(batch, true);
      }
    }
  }

  async #check() {
    if (!this.archive.has(MANIFEST) || !this.archive.has(COMPLETE)) throw new NotAnExport();
    if (JSON.parse(await this.archive.read(MANIFEST)).format !== FORMAT) throw new NotAnExport();
  }

  /** The lines of a batch. Without a secure connection, browsers cannot compute checksums. @param {string} batch */
  async #lines(batch) {
    const body = this.archive.slice(batch);
    if (globalThis.crypto?.subtle) {
      const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await body.arrayBuffer()));
      const found = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      const sums = await this.archive.read(batch.replace(/jsonl$/, "sha256"));
      if (!sums.split("\n").includes(`${found}  ${batch}`)) throw new DamagedArchive(batch);
    }
    return (await body.text()).split("\n").filter(Boolean);
  }

  /** @param {string} batch @param {boolean} copies */
  async #batch(batch, copies) {
    const lines = (await this.#lines(batch)).map((line) => ({ line, record: JSON.parse(line) }));
    const wanted = lines.filter(({ record }) => Boolean(record.duplicate_of) === copies);
    const fresh = await this.#unknown(wanted);
    // One after the other where the order matters: copies, and versions of a document.
    const ordered = fresh.filter(({ record }) => copies || (record.version ?? 1) > 1);
    const alone = fresh.filter((each) => !ordered.includes(each));
    const lane = async () => {
      for (let next = alone.shift(); next; next = alone.shift()) await this.#document(next);
    };
    const lanes = await Promise.allSettled(Array.from({ length: TOGETHER }, () => lane().finally(() => alone.splice(0))));
    for (const ended of lanes) if (ended.status === "rejected") throw ended.reason;
    for (const each of ordered) await this.#document(each);
  }

  /** @param {Line[]} lines */
  async #unknown(lines) {
    if (!lines.length) return [];
    const documents = lines.map(({ record: { id, sha256, duplicate_of } }) => ({ id, sha256, ...(duplicate_of ? { copy_of: duplicate_of } : {}) }));
    const known = await this.#post("/api/v1/import/known", JSON.stringify({ documents }));
    this.counts.exists += Object.keys(known.items).length;
    this.counts.trashed += known.trashed.length;
    this.done += Object.keys(known.items).length;
    this.onChange();
    return lines.filter(({ record }) => !(record.id in known.items));
  }

  /** @param {Line} line */
  async #document({ line, record }) {
    try {
      const state = await this.#send(line, record);
      this.counts[state === "exists" ? "exists" : "added"] += 1;
    } catch (error) {
      this.#fail(record.title || record.filename, error);
    }
    this.done += 1;
    this.onChange();
  }

  /** Sends the record as the text in the file, because parsing it could change numbers. @param {string} line @param {DocumentRecord} record */
  async #send(line, record) {
    /** @type {Record<string, string>} */
    const uploads = {};
    /** @type {Record<string, string>} */
    const texts = {};
    for (const file of record.files) {
      if (TEXTS.includes(file.kind)) texts[`${file.kind}-${file.revision}`] = await this.archive.read(file.path);
      if (BINARY.includes(file.kind)) uploads[file.kind] = await this.#upload(file);
    }
    const path = `${record.path}/layout.json`;
    const layout = this.archive.has(path) ? await this.archive.read(path) : "{}";
    const body = `{"record":${line},"layout":${layout},"texts":${JSON.stringify(texts)},"uploads":${JSON.stringify(uploads)}}`;
    return (await this.#post(`/api/v1/import/documents?import_id=${this.id}`, body)).state;
  }

  /** @param {{path: string, sha256: string}} file */
  async #upload({ path, sha256 }) {
    const content = this.archive.slice(path);
    const filename = path.slice(path.lastIndexOf("/") + 1);
    const announced = { filename, bytes: content.size, sha256, duplicates: "new" };
    const ticket = await this.#post("/api/v1/uploads", JSON.stringify(announced));
    await this.#repeat(`/api/v1/uploads/${ticket.upload_id}/content`, { method: "PUT", body: content });
    return ticket.upload_id;
  }

  /** @param {string} kind */
  async #records(kind) {
    for (const batch of this.archive.list(kind, BATCH)) {
      for (const lines of inGroups(await this.#lines(batch), ["mappings", "conversions"].includes(kind) ? 1 : MOST_SENT)) {
        try {
          this.counts.records += await this.#restore(kind, lines);
        } catch (error) {
          this.#fail(kind, error);
        }
        this.onChange();
      }
    }
  }

  /** @param {string} kind @param {string[]} lines */
  async #restore(kind, lines) {
    if (kind === "mappings") {
      const { file, text } = JSON.parse(lines[0]);
      await this.#post("/api/v1/mappings", JSON.stringify({ file, text }));
      return 0;
    }
    if (kind === "conversions") return this.#conversion(lines[0]);
    return (await this.#post("/api/v1/import/records", `{"${kind}":[${lines.join(",")}]}`)).added;
  }

  /** The file of a conversion without a document is sent first. @param {string} line */
  async #conversion(line) {
    /** @type {DocumentRecord} */
    const record = JSON.parse(line);
    const source = record.files.find((file) => file.kind === "source");
    const query = source ? `?upload=${await this.#upload(source)}` : "";
    return (await this.#post(`/api/v1/import/conversions${query}`, line)).added;
  }

  /** Raises errors that every other document would have, too. @param {string} name @param {unknown} error */
  #fail(name, error) {
    if (!(error instanceof RequestError || error instanceof DamagedArchive)) throw error;
    if (error instanceof RequestError && (!error.status || FATAL.includes(error.code))) throw error;
    this.failed.push(`${name}: ${error instanceof RequestError ? error.cause : error.message}`);
  }

  /** @param {string} address @param {string} body */
  #post(address, body) {
    return this.#repeat(address, { method: "POST", body, headers: { "content-type": "application/json" } });
  }

  /** Sends a request, and repeats it while the server is busy or unreachable. @param {string} address @param {RequestInit} options */
  async #repeat(address, options) {
    for (let attempt = 1; ; attempt++) {
      this.stop.throwIfAborted();
      try {
        return await request(address, { ...options, signal: this.stop });
      } catch (error) {
        if (attempt === ATTEMPTS || !(error instanceof RequestError) || !REPEATED.includes(error.status)) throw error;
        await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** (attempt - 1)));
      }
    }
  }
}

/** @param {string[]} lines @param {number} most */
function* inGroups(lines, most) {
  /** @type {string[]} */
  let group = [];
  let size = 0;
  for (const line of lines) {
    if (group.length && (group.length >= most || size + line.length > MOST_SENT_BYTES)) {
      yield group;
      [group, size] = [[], 0];
    }
    group.push(line);
    size += line.length;
  }
  if (group.length) yield group;
}

/** A random UUID, also without a secure connection. */
function randomId() {
  const digits = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, "$1-$2-4$3-8$4-$5");
}

// The form ------------------------------------------------------------------------------------------------------------

const form = one("[data-import]");
const input = one("input[type=file]", form);
const [start, stop] = [one("button:not([type])", form), one("[data-stop]", form)];
const result = one("[data-result]", form);
const bar = one("progress", result);
const line = one("[data-line]", result);
let isOpen = false;

form.hidden = false;
form.addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  begin(input.files[0]);
});
addEventListener("beforeunload", (event) => isOpen && event.preventDefault());

/** @param {File} file */
async function begin(file) {
  const aborting = new AbortController();
  stop.onclick = () => aborting.abort();
  setOpen(true);
  line.textContent = t("Reading %(name)s (%(size)s)", { name: file.name, size: bytes(file.size) });
  bar.removeAttribute("value");
  /** @type {Import | null} */
  let work = null;
  try {
    work = new Import(await Archive.open(file), form.dataset.kinds.split(" "), () => work && show(work), aborting.signal);
    await work.run();
    show(work);
    line.textContent = t("Import finished. %(result)s", { result: summary(work) });
  } catch (error) {
    const reason = aborting.signal.aborted ? t("Stopped by you") : reasonOf(error);
    line.textContent = work?.total ? t("Import stopped: %(reason)s. %(result)s Choose the file again to continue.", { reason, result: summary(work) }) : reason;
  }
  setOpen(false);
}

/** @param {unknown} error */
function reasonOf(error) {
  if (error instanceof NotAnExport) return t("This is not a complete Octavo export");
  if (error instanceof DamagedArchive || error instanceof SyntaxError) return t("The file is damaged or incomplete (%(detail)s)", { detail: error.message });
  return error instanceof RequestError ? error.cause.replace(/\.$/, "") : String(error);
}

/** @param {boolean} open */
function setOpen(open) {
  isOpen = open;
  start.disabled = input.disabled = open;
  stop.hidden = !open;
  result.hidden = false;
  bar.hidden = !open;
  if (open) one("[data-failed]", result).replaceChildren();
}

/** @param {Import} work */
function show(work) {
  bar.max = Math.max(work.total, 1);
  bar.value = work.done;
  line.textContent = t("%(done)s of %(total)s documents", { done: format(work.done), total: format(work.total) });
  const list = one("[data-failed]", result);
  for (const reason of work.failed.slice(list.children.length, MOST_SHOWN)) list.append(make("li", { dir: "auto" }, reason));
}

/** @param {Import} work */
function summary({ counts, failed }) {
  return [
    plural("%(number)s document added.", "%(number)s documents added.", counts.added),
    plural("%(number)s already here.", "%(number)s already here.", counts.exists),
    counts.trashed ? plural("%(number)s of them is in the trash.", "%(number)s of them are in the trash.", counts.trashed) : "",
    counts.records ? plural("%(number)s other record added.", "%(number)s other records added.", counts.records) : "",
    failed.length ? plural("%(number)s failed.", "%(number)s failed.", failed.length) : "",
  ]
    .filter(Boolean)
    .join(" ");
}
