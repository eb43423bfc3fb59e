import type { Cooperative } from '../../../runtime/cooperative.ts'
import { Hits, mergeHits, replaceHits } from './hits.ts'
import type { Patterns } from './patterns.ts'
import { readLeaves, textOf, type GuardText } from './texts.ts'

/** Values to collect before other events may be processed. */
const VALUES_PER_SLICE = 1024
/** Between texts that are searched together. */
const SEPARATOR = '\n'

/** Texts that a model may read as one: of adjacent messages with one role. Results of tools are read one by one. */
type Chain = readonly GuardText[]

/** Whether any of the texts has a hit. */
export function* hasHit(texts: readonly GuardText[], patterns: Patterns): Cooperative<boolean> {
  const chains = findChains(texts)
  if (!(yield* mayHit(texts, chains, patterns))) return false
  for (const text of texts) {
    const isHit = text.kind === 'json' ? (yield* patterns.maskJson(textOf(text))) !== textOf(text) : (yield* findInParts(text, patterns)).length > 0
    if (isHit) return true
  }
  for (const chain of chains) if ((yield* findInChain(chain, patterns)).size > 0) return true
  return false
}

/** Masks the texts; returns those that changed. */
export function* maskTexts(texts: readonly GuardText[], patterns: Patterns): Cooperative<Map<GuardText, string>> {
  const masked = new Map<GuardText, string>()
  const chains = findChains(texts)
  if (!(yield* mayHit(texts, chains, patterns))) return masked
  const across = new Map<GuardText, Hits>()
  for (const chain of chains) for (const [text, hits] of yield* findInChain(chain, patterns)) across.set(text, hits)
  for (const text of texts) {
    const before = textOf(text)
    if (text.kind === 'json') {
      const after = yield* patterns.maskJson(before)
      if (after !== before) masked.set(text, after)
      continue
    }
    const hits = yield* mergeHits(yield* findInParts(text, patterns), across.get(text) ?? new Hits())
    if (hits.length > 0) masked.set(text, yield* replaceHits(before, hits))
  }
  return masked
}

/**
 * Searches everything at once, so that requests without a hit take one search. A pattern that depends on the ends of a text is searched
 * text by text.
 */
function* mayHit(texts: readonly GuardText[], chains: readonly Chain[], patterns: Patterns): Cooperative<boolean> {
  if (patterns.dependsOnEnds) return true
  const pieces: string[] = []
  for (const text of texts) {
    if (text.kind === 'json')
      for (const leaf of readLeaves(text)) {
        if (pieces.push(leaf) % VALUES_PER_SLICE === 0) yield
      }
    else {
      pieces.push(textOf(text))
      if (isSplit(text)) pieces.push(text.parts.map((part) => part.text).join(''))
      if (pieces.length % VALUES_PER_SLICE === 0) yield
    }
  }
  for (const chain of chains) pieces.push(chain.map(textOf).join(''))
  return yield* patterns.hasHit(pieces.join(SEPARATOR))
}

const isSplit = ({ parts, joiner }: GuardText): boolean => parts.length > 1 && joiner !== ''

/** The hits in the joined parts, and those in the parts put together without a joiner: models may read them so. */
function* findInParts(text: GuardText, patterns: Patterns): Cooperative<Hits> {
  const joined = yield* patterns.find(textOf(text))
  if (!isSplit(text)) return joined
  const direct = yield* patterns.find(text.parts.map((part) => part.text).join(''))
  // Positions move by the joiners in front of them.
  const moved = new Hits()
  let [part, end] = [0, text.parts[0]?.text.length ?? 0]
  for (let nth = 0; nth < direct.length; nth++) {
    while (direct.start(nth) >= end && part < text.parts.length - 1) end += text.parts[++part]?.text.length ?? 0
    const start = direct.start(nth) + part * text.joiner.length
    while (direct.end(nth) > end && part < text.parts.length - 1) end += text.parts[++part]?.text.length ?? 0
    moved.add(start, direct.end(nth) + part * text.joiner.length, direct.label(nth))
  }
  return yield* mergeHits(joined, moved)
}

function findChains(texts: readonly GuardText[]): Chain[] {
  const chains: GuardText[][] = []
  let last: GuardText | undefined
  for (const text of texts) {
    const continues =
      last !== undefined &&
      last.isMessage &&
      text.isMessage &&
      last.role === text.role &&
      text.role !== 'tool' &&
      text.role !== 'function' &&
      last.message !== text.message
    if (!continues) chains.push([text])
    else chains.at(-1)?.push(text)
    last = text
  }
  return chains.filter((chain) => chain.length > 1)
}

/** The hits that span texts of a chain, by text: each is masked in all of them. */
function* findInChain(chain: Chain, patterns: Patterns): Cooperative<Map<GuardText, Hits>> {
  const found = new Map<GuardText, Hits>()
  const texts = chain.map(textOf)
  const hits = yield* patterns.find(texts.join(''))
  let [at, start] = [0, 0]
  for (let nth = 0; nth < hits.length; nth++) {
    while (hits.start(nth) >= start + (texts[at]?.length ?? 0)) start += texts[at++]?.length ?? 0
    if (hits.end(nth) <= start + (texts[at]?.length ?? 0)) continue
    for (let [other, from] = [at, start]; other < texts.length && from < hits.end(nth); from += texts[other++]?.length ?? 0) {
      const text = chain[other]
      if (text === undefined) continue
      const inner = found.get(text) ?? new Hits()
      found.set(text, inner)
      inner.add(Math.max(0, hits.start(nth) - from), Math.min(hits.end(nth) - from, texts[other]?.length ?? 0), hits.label(nth))
    }
  }
  return found
}
