// The line above a live page: whether it is connected, and what the dashboard has trouble with.

import { make } from "../js/parts/dom.js";
import { label } from "../js/state/words.js";

const WORDS = {
  connecting: "connecting…", live: "live", paused: "paused while this page is hidden",
  ended: "refused by the server; trying again (reload the page to enter the token)",
};

// `links` are elements for the end of the line.
export function liveBar(...links) {
  const state = make("span", { "data-state": "connecting", role: "status" }, WORDS.connecting);
  const trouble = make("p", { class: "notice", role: "alert", hidden: true });
  const line = make("div", { class: "live" }, state, ...links, trouble);
  document.body.insertBefore(line, document.getElementById("header"));
  return {
    said(now) {
      state.dataset.state = now;
      state.textContent = WORDS[now];
    },
    // The status of the dashboard itself: an event without a survey.
    about(record) {
      const texts = [record.trouble && "Results cannot be read now. What is shown may be old.",
        record.unread.length && `Some records cannot be read, and are not shown. The last: ${label(record.unread.at(-1), 200)}.`].filter(Boolean);
      if (texts.length) texts.push("The dashboard's log says why.");
      trouble.hidden = !texts.length;
      trouble.textContent = texts.join(" ");
    },
  };
}
