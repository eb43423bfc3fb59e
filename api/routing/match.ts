/** A condition on a header or a query parameter. */
export interface ValueMatch {
  readonly name: string
  readonly type: string
  readonly value: string
}

/** Keeps the first of the conditions with equal names (Gateway API). */
export function firstOfEachName<M extends ValueMatch>(matches: readonly M[] | undefined, normalize: (name: string) => string): M[] {
  const byName = new Map<string, M>()
  for (const match of matches ?? []) {
    const name = normalize(match.name)
    if (!byName.has(name)) byName.set(name, { ...match, name })
  }
  return [...byName.values()]
}
