// What is shown, as the part of an address after #: every view has a link of its own.

// The view that a hash describes. Unknown words are left out; what a view does not say has its default.
export function readView(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const view = {};
  for (const [name, value] of given) view[name] = value;
  return view;
}

// The hash of a view, the shortest one: whatever is empty is left out.
export function writeView(view) {
  const words = new URLSearchParams();
  for (const name of Object.keys(view).sort()) if (view[name] != null && view[name] !== "") words.set(name, view[name]);
  return `#${words}`;
}

// The first and last period of a span such as 0-6; null where it is not one.
export function readSpan(text) {
  const found = /^(\d+)-(\d+)$/.exec(text ?? "");
  if (!found || Number(found[1]) > Number(found[2])) return null;
  return { first: Number(found[1]), last: Number(found[2]) };
}
