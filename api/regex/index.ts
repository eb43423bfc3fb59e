import { RE2JS } from 're2js'
import { toLinearSource } from './linear.ts'

/** A user's pattern in RE2 syntax. `test` says whether the whole text matches, in time linear in the text. */
export interface Regex {
  readonly pattern: string
  test(text: string): boolean
}

export interface RegexError {
  /** What is wrong with the pattern, and where. */
  readonly error: string
}

/** Longer patterns are refused: their automata would take too much memory. */
const MAX_PATTERN_LENGTH = 4096

/** Work that compiling a pattern may be, as `estimateWork` has it: some 100 ms of a core. */
const MAX_WORK = 150_000
/** Instructions of an automaton: each character of a text may cost as many steps. */
const MAX_PROGRAM = 3000
const tooLarge: RegexError = { error: `pattern repeats too much: with its repetitions written out it has more than ${MAX_PROGRAM} steps` }

/** How large the automaton of a pattern may become: repetitions by number copy what they repeat. */
export function estimateWork(pattern: string): number {
  let copies = 1
  for (const [, least = '', most = ''] of pattern.matchAll(/\{(\d{1,6})(?:,(\d{0,6}))?\}/g)) copies += Math.max(Number(least), Number(most))
  return copies * pattern.length
}

/**
 * Compiles a pattern of a route match, prompt guard or expression. Whether it is legal is RE2's word (no look-around, no
 * back-references). What provably cannot backtrack runs on the native engine, which is 20 times faster; the rest on RE2.
 */
export function compileRegex(pattern: string): Regex | RegexError {
  if (pattern.length > MAX_PATTERN_LENGTH) return { error: `pattern has ${pattern.length} characters, at most ${MAX_PATTERN_LENGTH} are allowed` }
  if (estimateWork(pattern) > MAX_WORK) return tooLarge
  let re2: RE2JS
  try {
    re2 = RE2JS.compile(pattern)
  } catch (thrown) {
    return { error: thrown instanceof Error ? thrown.message : String(thrown) }
  }
  if (re2.programSize() > MAX_PROGRAM) return tooLarge
  const source = toLinearSource(pattern)
  if (source === undefined) return { pattern, test: (text) => re2.testExact(text) }
  const native = new RegExp(source, 'u')
  return { pattern, test: (text) => native.test(text) }
}

export function isRegexError(result: Regex | RegexError): result is RegexError {
  return 'error' in result
}
