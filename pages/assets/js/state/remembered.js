// Numbers that depend on published results only: they are computed once, and not again for what is provisional.

// What was made under a name, until something other than the open periods of the survey changes.
export function remembered(survey, name, made) {
  const store = (survey.remembered ??= new Map()), found = store.get(name);
  if (found && found.published === survey.published) return found.value;
  const value = made();
  store.set(name, { published: survey.published, value });
  return value;
}
