// The names of an attribute's values: a list, or the range of the survey, whose names are made when they are shown. Both
// have `length`, `at(place)` and `indexOf(name)`.

export function named({ range, ...attribute }) {
  return range ? { ...attribute, values: rangeNames(range) } : attribute;
}

function rangeNames({ first, last, step }) {
  const length = Math.floor((last - first) / step) + 1;
  const at = (place) => {
    const from = first + place * step;
    return step === 1 ? `${from}` : `${from}-${Math.min(from + step - 1, last)}`;
  };
  const indexOf = (name) => {
    const place = (Number.parseInt(name, 10) - first) / step;
    return place >= 0 && place < length && at(place) === name ? place : -1;
  };
  return { length, at, indexOf };
}
