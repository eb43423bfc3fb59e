import { compileSearch, isRegexError, type Search } from '#api/regex/search.ts'
import type { Regex } from '#gen/config/types.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'
import { Automaton } from './automaton.ts'
import { builtinPatterns, type BuiltinPattern } from './builtins.ts'
import { Finder } from './finder.ts'
import { Hits, mergeHits, replaceHits } from './hits.ts'
import { maskLeaves } from './json-leaves.ts'
import { findPhones, preparePhones } from './phone.ts'

interface Pattern extends Pick<BuiltinPattern, 'label' | 'check'> {
  /** undefined for phone numbers. */
  readonly finder: Finder | undefined
  /** Tests short texts, several times faster than the finder but without a pause. */
  readonly test: Search
  readonly automaton: Automaton
}

const MASKED = '<masked>'
/** Length times cost of texts that are tested without a pause: at most a millisecond. */
const MAX_TEST_COST = 1_000_000

/**
 * The patterns of one or more regex guards, searched together. Searches are cooperative: their time is linear in the text, and other events
 * are processed in between.
 */
export class Patterns {
  readonly #patterns: readonly Pattern[]

  constructor(patterns: readonly Pattern[]) {
    this.#patterns = patterns
  }

  get automata(): readonly Automaton[] {
    return this.#patterns.map(({ automaton }) => automaton)
  }

  /** A pattern has an assertion about the beginning or end of a text. */
  get dependsOnEnds(): boolean {
    return this.#patterns.some(({ finder }) => finder?.dependsOnEnds === true)
  }

  join(others: Patterns): Patterns {
    return new Patterns([...this.#patterns, ...others.#patterns])
  }

  /** The hits from `from` on, in order. Overlapping hits are merged under the label of the first. Empty matches do not count. */
  *find(text: string, from = 0): Cooperative<Hits> {
    let hits = new Hits()
    for (const pattern of this.#patterns) {
      const found = new Hits()
      yield* search(pattern, text, from, (start, end) => {
        found.add(start, end, pattern.label)
        return true
      })
      hits = yield* mergeHits(hits, found)
    }
    return hits
  }

  /** Whether there is a hit. Stops at the first. */
  *hasHit(text: string): Cooperative<boolean> {
    let isFound = false
    for (const pattern of this.#patterns) {
      yield* search(pattern, text, 0, () => {
        isFound = true
        return false
      })
      if (isFound) return true
    }
    return false
  }

  *mask(text: string): Cooperative<string> {
    return yield* replaceHits(text, yield* this.find(text))
  }

  /** Masks the strings, numbers and member names in JSON text. Text that is not JSON is masked as text. */
  *maskJson(text: string): Cooperative<string> {
    return yield* maskLeaves(text, this)
  }
}

function* search({ finder, test, check }: Pattern, text: string, from: number, onMatch: (start: number, end: number) => boolean): Cooperative<void> {
  if (finder !== undefined && text.length * test.cost <= MAX_TEST_COST && !test.test(text)) return
  if (finder === undefined) yield* findPhones(text, from, onMatch)
  else yield* finder.find(text, from, onMatch, check)
}

/** Compiles the patterns of a guard. Returns an error text if one is invalid. */
export function compilePatterns({ matches = [], builtins = [] }: Pick<Regex, 'matches' | 'builtins'>): Patterns | string {
  const patterns: Pattern[] = []
  for (const { pattern, label, check, isPhone } of [
    ...matches.map((own): BuiltinPattern => ({ pattern: own, label: MASKED })),
    ...builtins.map((name) => builtinPatterns[name]),
  ]) {
    const compiled = compileSearch(pattern)
    if (isRegexError(compiled)) return `pattern ${JSON.stringify(pattern)}: ${compiled.error}`
    const automaton = new Automaton(pattern)
    if (automaton.isOpaque) return `pattern ${JSON.stringify(pattern)}: it uses a syntax that prompt guards do not support`
    if (isPhone === true) preparePhones()
    patterns.push({ label, ...(check && { check }), finder: isPhone === true ? undefined : new Finder(pattern), test: compiled, automaton })
  }
  return new Patterns(patterns)
}
