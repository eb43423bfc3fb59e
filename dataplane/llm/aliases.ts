/**
 * Model names of clients to those of providers (llm.md §1.4): the exact name first, then patterns, the longer before the shorter.
 * Each `*` stands for any text.
 */
export function createAliases(aliases: Readonly<Record<string, string>> | undefined): (model: string) => string {
  if (aliases === undefined) return (model) => model
  const exact = new Map(Object.entries(aliases))
  const patterns = [...exact]
    .filter(([name]) => name.includes('*'))
    .toSorted(([a], [b]) => b.length - a.length)
    .map(([pattern, target]) => ({ pieces: pattern.split('*'), target }))
  return (model) => exact.get(model) ?? patterns.find(({ pieces }) => matchesPieces(model, pieces))?.target ?? model
}

/** Leftmost matches suffice between the first and the last piece, so this is linear: no regular expression on clients' text. */
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
