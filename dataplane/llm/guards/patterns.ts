import { RE2JS } from 're2js'
import { compileSearch, isRegexError, type Search } from '#api/regex/search.ts'
import type { Regex } from '#gen/config/types.ts'
import { isObject, isRawNumber, parseJson, printJson } from '../common/json.ts'
import { Automaton } from './automaton.ts'
import { builtinPatterns, type BuiltinPattern } from './builtins.ts'

/** A match in a text, and its replacement. */
export interface Hit {
  readonly start: number
  readonly end: number
  readonly label: string
}

interface Pattern extends Pick<BuiltinPattern, 'label' | 'check'> {
  readonly search: Search
  readonly expression: RE2JS
  readonly automaton: Automaton
}

const MASKED = '<masked>'

/** The patterns of one or more regex guards, searched together. */
export class Patterns {
  readonly #patterns: readonly Pattern[]

  constructor(patterns: readonly Pattern[]) {
    this.#patterns = patterns
  }

  get automata(): readonly Automaton[] {
    return this.#patterns.map(({ automaton }) => automaton)
  }

  join(others: Patterns): Patterns {
    return new Patterns([...this.#patterns, ...others.#patterns])
  }

  /** The hits from `from` on, in order. Overlapping hits are merged under the label of the first. Empty matches do not count. */
  find(text: string, from = 0): Hit[] {
    const hits = this.#patterns.flatMap((pattern) => findAll(pattern, text, from))
    if (hits.length < 2) return hits
    // The sort is stable: if two hits start at one position, the pattern that is listed first wins.
    hits.sort((a, b) => a.start - b.start)
    const merged: Hit[] = []
    for (const hit of hits) {
      const last = merged.at(-1)
      if (last !== undefined && hit.start < last.end) merged[merged.length - 1] = { ...last, end: Math.max(last.end, hit.end) }
      else merged.push(hit)
    }
    return merged
  }

  mask(text: string): string {
    return this.find(text).reduceRight((masked, { start, end, label }) => masked.slice(0, start) + label + masked.slice(end), text)
  }

  /** Masks the strings and numbers in JSON text. Text that is not JSON is masked as text. */
  maskJson(text: string): string {
    let value: unknown
    try {
      value = parseJson(text)
    } catch {
      return this.mask(text)
    }
    const masked = this.#maskValue(value)
    return masked === value ? text : printJson(masked)
  }

  #maskValue(value: unknown): unknown {
    if (typeof value === 'string') return this.mask(value)
    if (typeof value === 'number' || isRawNumber(value)) {
      const text = typeof value === 'number' ? String(value) : value.rawJSON
      const masked = this.mask(text)
      return masked === text ? value : masked
    }
    if (Array.isArray(value)) {
      const items = (value as unknown[]).map((item) => this.#maskValue(item))
      return items.some((item, at) => item !== value[at]) ? items : value
    }
    if (!isObject(value)) return value
    const entries = Object.entries(value).map(([key, inner]) => [key, this.#maskValue(inner)] as const)
    return entries.some(([key, inner]) => inner !== value[key]) ? Object.fromEntries(entries) : value
  }
}

function findAll({ search, expression, label, check }: Pattern, text: string, from: number): Hit[] {
  if (!search.test(text)) return []
  const hits: Hit[] = []
  const matcher = expression.matcher(text)
  for (let isFound = matcher.find(from); isFound;) {
    const [start, end] = [matcher.start(), matcher.end()]
    const checked = check === undefined ? { end } : check(text, start, end)
    if (checked !== undefined && end > start) hits.push({ start, end: checked.end, label })
    // After a discarded match, search from its next character, so that the result does not depend on where the search started.
    isFound = check === undefined ? matcher.find() : matcher.find(checked?.end ?? start + 1)
  }
  return hits
}

/** Compiles the patterns of a guard. Returns an error text if one is invalid. */
export function compilePatterns({ matches = [], builtins = [] }: Pick<Regex, 'matches' | 'builtins'>): Patterns | string {
  const patterns: Pattern[] = []
  for (const { pattern, ...rest } of [...matches.map((own) => ({ pattern: own, label: MASKED })), ...builtins.map((name) => builtinPatterns[name])]) {
    const search = compileSearch(pattern)
    if (isRegexError(search)) return `pattern ${JSON.stringify(pattern)}: ${search.error}`
    patterns.push({ ...rest, search, expression: RE2JS.compile(pattern), automaton: new Automaton(pattern) })
  }
  return new Patterns(patterns)
}
