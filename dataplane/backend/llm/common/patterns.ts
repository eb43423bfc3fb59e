/**
 * Returns a lookup by name. An exact entry wins, then the longest matching pattern. `*` matches any text.
 *
 * @example
 * const alias = createNameTable({ 'gpt-*': 'large', 'gpt-4o-mini': 'small' })
 * alias('gpt-4o-mini') // 'small'
 * alias('gpt-5') // 'large'
 * alias('o3') // undefined
 */
export function createNameTable<T>(entries: Readonly<Record<string, T>> | undefined): (name: string) => T | undefined {
  if (entries === undefined) return () => undefined
  const exact = new Map(Object.entries(entries))
  const patterns = [...exact]
    .filter(([name]) => name.includes('*'))
    .toSorted(([a], [b]) => b.length - a.length)
    .map(([pattern, value]) => ({ pieces: pattern.split('*'), value }))
  return (name) => exact.get(name) ?? patterns.find(({ pieces }) => matchesPieces(name, pieces))?.value
}

/** Matches greedily from the left, in linear time: client text never meets a backtracking regular expression. */
function matchesPieces(text: string, pieces: readonly string[]): boolean {
  const first = pieces[0] ?? ''
  const last = pieces.at(-1) ?? ''
  const end = text.length - last.length
  if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false
  let at = first.length
  for (const piece of pieces.slice(1, -1)) {
    const found = text.indexOf(piece, at)
    if (found === -1 || found + piece.length > end) return false
    at = found + piece.length
  }
  return true
}
