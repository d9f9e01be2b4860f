// Drawing what is seen, and only that: a chart that is out of sight waits until it is scrolled into sight.

const waiting = new WeakMap();
const seen = new Set();
let observer = null;

function watching() {
  observer ??= new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) seen.add(target);
      else seen.delete(target);
      if (isIntersecting) drawNow(target);
    }
  }, { rootMargin: "100px" });
  return observer;
}

function drawNow(element) {
  const job = waiting.get(element);
  if (job?.due) {
    job.due = false;
    job.drawn();
  }
}

// Draws into the element now if it is in sight, or else as soon as it is.
export function drawWhenSeen(element, drawn) {
  const known = waiting.has(element);
  waiting.set(element, { drawn, due: true });
  if (!known) watching().observe(element);
  else if (seen.has(element)) drawNow(element);
}

// Draws everything below an element, in sight or not: before printing. Drawing may make further charts, so it is repeated.
export function drawAll(root) {
  for (let round = 0; round < 3; round += 1) {
    for (const element of root.querySelectorAll("[data-chart]")) if (!element.closest("[hidden]")) drawNow(element);
  }
}

// Stops watching what is below an element, which is about to go.
export function forget(root) {
  for (const element of root.querySelectorAll("[data-chart]")) {
    observer?.unobserve(element);
    seen.delete(element);
  }
}
