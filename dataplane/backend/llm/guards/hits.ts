import type { Cooperative } from '../../../runtime/cooperative.ts'

/** Hits to merge or replace before other events may be processed. */
const HITS_PER_SLICE = 1024
const FIELDS = 3

/** The labels of all hits: a hit has the index. */
const labels: string[] = []

/**
 * Matches in a text, in order, with the labels that replace them. Kept as numbers outside of the heap, because a long text may have a
 * million of them.
 */
export class Hits {
  length = 0
  #fields = new Int32Array(16 * FIELDS)

  add(start: number, end: number, label: string): void {
    if (this.length * FIELDS === this.#fields.length) {
      const grown = new Int32Array(2 * this.#fields.length)
      grown.set(this.#fields)
      this.#fields = grown
    }
    this.length++
    const nth = this.length - 1
    let index = labels.indexOf(label)
    if (index === -1) index = labels.push(label) - 1
    this.#fields[nth * FIELDS] = start
    this.#fields[nth * FIELDS + 1] = end
    this.#fields[nth * FIELDS + 2] = index
  }

  start(nth: number): number {
    return this.#fields[nth * FIELDS] ?? 0
  }

  end(nth: number): number {
    return this.#fields[nth * FIELDS + 1] ?? 0
  }

  label(nth: number): string {
    return labels[this.#fields[nth * FIELDS + 2] ?? 0] ?? ''
  }

  /** Extends the last hit. */
  extend(end: number): void {
    const at = (this.length - 1) * FIELDS + 1
    this.#fields[at] = Math.max(this.#fields[at] ?? 0, end)
  }
}

/** Merges two lists of hits. Overlapping hits become one with the label of the first; of two that start together, that of `first`. */
export function* mergeHits(first: Hits, second: Hits): Cooperative<Hits> {
  if (second.length === 0) return first
  if (first.length === 0) return second
  const merged = new Hits()
  let last = 0
  for (let [a, b] = [0, 0]; a < first.length || b < second.length;) {
    if ((a + b) % HITS_PER_SLICE === 0) yield
    const isFirst = b === second.length || (a < first.length && first.start(a) <= second.start(b))
    const [from, nth] = isFirst ? [first, a++] : [second, b++]
    if (merged.length > 0 && from.start(nth) < last) merged.extend(from.end(nth))
    else merged.add(from.start(nth), from.end(nth), from.label(nth))
    last = Math.max(last, from.end(nth))
  }
  return merged
}

/** Replaces the hits in a text by their labels. */
export function* replaceHits(text: string, hits: Hits): Cooperative<string> {
  if (hits.length === 0) return text
  const chunks: string[] = []
  let pieces: string[] = []
  let at = 0
  for (let nth = 0; nth < hits.length; nth++) {
    pieces.push(text.slice(at, hits.start(nth)), hits.label(nth))
    at = hits.end(nth)
    if (nth % HITS_PER_SLICE !== 0) continue
    chunks.push(pieces.join(''))
    pieces = []
    yield
  }
  return [...chunks, ...pieces, text.slice(at)].join('')
}
