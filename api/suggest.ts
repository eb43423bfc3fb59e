/** Edit distance (Damerau-Levenshtein): letters to change, add or drop, and adjacent letters to swap. */
function distance(a: string, b: string): number {
  let before: readonly number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = isSwap ? (before[j - 2] ?? 0) + 1 : Infinity
      current.push(Math.min(change, swap, (previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1))
    }
    before = previous
    previous = current
  }
  return previous[b.length] ?? 0
}

/** The word that a misspelt `text` probably stands for: the nearest one with at most a third of its letters wrong. Ignores case. */
export function suggest(text: string, words: Iterable<string>): string | undefined {
  if (text.length > 64) return undefined
  const near = Array.from(words)
    .map((word) => ({ word, far: distance(text.toLowerCase(), word.toLowerCase()) }))
    .filter(({ word, far }) => far <= Math.max(1, Math.floor(word.length / 3)))
    .toSorted((a, b) => a.far - b.far)
  return near[0]?.word
}
