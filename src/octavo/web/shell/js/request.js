// Requests to the server. An error response becomes a RequestError with a message for people.

import { t } from "./dom.js";
export class RequestError extends Error {
  /** @param {{title?: string, detail?: string, code?: string, status?: number}} problem */
  constructor(problem) {
    super(problem.detail || t(problem.title || "The request failed."));
    this.title = t(problem.title || "The request failed.");
    this.code = problem.code || "";
    this.status = problem.status || 0;
  }

  /** The cause with its code, as shown in rows. */
  get cause() {
    return this.code ? `${this.message.replace(/\.$/, "")} (${this.code})` : this.message;
  }
}

export const OFFLINE = { title: t("The server is not responding. Check the connection and try again.") };

/** The error for an error response. Its body may be any text. @param {number} status @param {string} text */
export function errorOf(status, text) {
  try {
    return new RequestError({ status, ...JSON.parse(text) });
  } catch {
    return new RequestError({ status, title: t("The server responded with status %(status)s.", { status }) });
  }
}

/**
 * @param {string} address
 * @param {RequestInit} [options]
 * @returns {Promise<any>} the JSON of the response, or null if it has no body
 */
export async function request(address, options = {}) {
  const answer = await reach(address, { ...options, headers: { accept: "application/json", ...options.headers } });
  const text = await answer.text();
  if (!answer.ok) throw errorOf(answer.status, text);
  return text ? JSON.parse(text) : null;
}

/** Fetches a fragment of a page. @param {string} address @returns {Promise<string>} */
export async function fetchPiece(address) {
  const answer = await reach(address, { headers: { accept: "text/html" } });
  if (!answer.ok) throw errorOf(answer.status, "");
  return answer.text();
}

/** @param {string} address @param {RequestInit} options */
async function reach(address, options) {
  try {
    return await fetch(address, options);
  } catch {
    throw new RequestError(OFFLINE);
  }
}
