// One upload: a single request with progress.

import { OFFLINE, RequestError, errorOf } from "./request.js";

const ADDRESS = "/api/v1/documents";

/** @typedef {{document_id: string, process_id: string, state: string, duplicate_of: string | null}} Outcome */
/** @typedef {"waiting" | "sending" | "done" | "twin" | "failed" | "cancelled"} State */

export class Transfer extends EventTarget {
  /** @param {File} file @param {Record<string, string>} [options] parameters of the request */
  constructor(file, options = {}) {
    super();
    this.file = file;
    this.options = options;
    /** @type {State} */
    this.state = "waiting";
    this.sent = 0;
    /** @type {Outcome | null} */
    this.outcome = null;
    /** @type {RequestError | null} */
    this.error = null;
    /** @type {XMLHttpRequest | null} */
    this.request = null;
  }

  get isOpen() {
    return this.state === "waiting" || this.state === "sending";
  }

  /** @param {State} state */
  become(state) {
    this.state = state;
    this.dispatchEvent(new Event("change"));
  }

  /** @param {RequestError} error */
  fail(error) {
    this.error = error;
    this.become("failed");
  }

  cancel() {
    if (!this.isOpen) return;
    this.become("cancelled");
    this.request?.abort();
  }

  /** Resolves when it has ended, also after an error. @returns {Promise<void>} */
  send() {
    return new Promise((resolve) => {
      const request = (this.request = new XMLHttpRequest());
      request.open("POST", `${ADDRESS}?${new URLSearchParams(this.options)}`);
      request.setRequestHeader("x-upload-filename", encodeURIComponent(this.file.name));
      request.setRequestHeader("content-type", this.file.type || "application/octet-stream");
      request.setRequestHeader("accept", "application/json");
      request.upload.addEventListener("progress", ({ loaded }) => {
        this.sent = loaded;
        if (this.state === "sending") this.become("sending");
      });
      request.addEventListener("load", () => this.#answer(request));
      request.addEventListener("error", () => this.fail(new RequestError(OFFLINE)));
      request.addEventListener("loadend", () => resolve());
      this.sent = 0;
      this.become("sending");
      request.send(this.file);
    });
  }

  /** @param {XMLHttpRequest} request */
  #answer(request) {
    if (request.status < 200 || request.status > 299) return this.fail(errorOf(request.status, request.responseText));
    this.outcome = /** @type {Outcome} */ (JSON.parse(request.responseText));
    this.become(this.outcome.state === "deduplicated" ? "twin" : "done");
  }
}
