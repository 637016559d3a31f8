// Keeps a fragment of a page up to date: not too often, never with two requests in parallel, and never with a response
// that is older than the last event.

/**
 * A call while a request is running schedules another one, since the running one may miss the latest change.
 * @param {() => Promise<unknown>} work
 * @param {number} least milliseconds between the end of one run and the start of the next
 * @returns {() => void} schedules a run
 */
export function throttled(work, least) {
  let last = -least;
  let timer = 0;
  let isBusy = false;
  let again = false;
  const plan = () => {
    if (isBusy) again = true;
    else if (!timer && !document.hidden) timer = setTimeout(run, Math.max(0, last + least - performance.now()));
  };
  const run = async () => {
    timer = 0;
    isBusy = true;
    again = false;
    try {
      await work();
    } catch {
      // The server is unavailable; the next event tries again.
    }
    last = performance.now();
    isBusy = false;
    if (again) plan();
  };
  document.addEventListener("visibilitychange", plan);
  return plan;
}
