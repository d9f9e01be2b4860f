// The stream of a live page: events come as they are published, and a page that was cut off is given what it lacks.

const RETRY_MS = 5000, HIDDEN_MS = 30000;

// Connects, and stays connected until the page is closed. `take` gets lists of events, `reset` says that everything is to
// be forgotten, `said` gets the state of the connection: connecting, live, paused (the page is not visible) or ended.
export function connect(address, { take, reset, said }) {
  let source = null, last = "", waiting = [], hiding = null;

  function open() {
    close();
    said("connecting");
    source = new EventSource(last ? `${address}${address.includes("?") ? "&" : "?"}after=${encodeURIComponent(last)}` : address);
    source.onopen = () => said("live");
    source.onmessage = (message) => {
      last = message.lastEventId || last;
      if (!waiting.length) setTimeout(flush, 0);
      waiting.push(JSON.parse(message.data));
    };
    source.addEventListener("reset", () => {
      waiting = [];
      last = "";
      reset();
    });
    source.onerror = failed;
  }

  function flush() {
    const events = waiting;
    waiting = [];
    if (events.length) take(events);
  }

  // A browser connects again by itself, unless it was refused: the token is no longer valid, or there are too many viewers.
  function failed() {
    if (source?.readyState !== EventSource.CLOSED) return said("connecting");
    close();
    said("ended");
    setTimeout(() => source || document.hidden || open(), RETRY_MS);
  }

  function close() {
    source?.close();
    source = null;
  }

  // Browsers allow six connections to a server: a page that nobody looks at gives its own back after a while.
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (!document.hidden) return source || open();
    hiding = setTimeout(() => {
      close();
      said("paused");
    }, HIDDEN_MS);
  });
  open();
}
