import { isValidPhoneNumber, type CountryCode } from 'libphonenumber-js/max'
import { runCooperatively, type Cooperative } from '../../../runtime/cooperative.ts'
import { callingCodeOf, compilePlans, exitPrefixOf, nationalPlanOf, planOf, type PhonePlan } from './phone-plans.ts'

/** Regions whose national numbers are found. International numbers of all countries are. */
const REGIONS: readonly CountryCode[] = ['US', 'GB', 'DE', 'IL', 'IN', 'CA', 'BR']
/** Characters after the first digit: at least, and at most. */
const LEAST_TAIL = 6
const MOST_TAIL = 30
/** The longest number that libphonenumber accepts: exit prefix, calling code and 17 digits. */
const MOST_DIGITS = 25
/** Work before other events may be processed: a position counts 1, a candidate 64, a judgement of libphonenumber 512. */
const WORK_PER_SLICE = 4096
const CANDIDATE_WORK = 64
const JUDGEMENT_WORK = 512
const MAX_REMEMBERED = 1000

const ZERO = 0x30
const PLUS = 0x2b
const PARENTHESIS = 0x28

interface Region {
  readonly name: CountryCode
  readonly plan: PhonePlan | undefined
  readonly exitPrefix: RegExp
}

let compiled: readonly Region[] | undefined

/** The regions, compiled on first use, which takes tens of milliseconds. Regions with one calling code share a plan; the first represents them. */
function* compileRegions(): Cooperative<readonly Region[]> {
  if (compiled !== undefined) return compiled
  const regions: Region[] = []
  for (const name of REGIONS) {
    const plan = nationalPlanOf(name)
    if (plan === undefined || !regions.some((other) => other.plan === plan)) regions.push({ name, plan, exitPrefix: exitPrefixOf(name) })
    yield
  }
  return (compiled = regions)
}

/** Compiles the numbering plans in slices, so that no request waits for it. */
export function preparePhones(): void {
  if (compiled !== undefined) return
  void runCooperatively(compileRegions()).then(compilePlans)
}

/**
 * Finds phone numbers in time linear in the text. A candidate is `[+(]{0,2}\d[\d ().-]{6,30}` that does not follow a digit. It may
 * extend into a number that follows, so groups of digits are removed from its end until it is valid. The numbering plans select which of
 * these libphonenumber has to judge. `onMatch` returns whether to search on.
 */
export function* findPhones(text: string, from: number, onMatch: (start: number, end: number) => boolean): Cooperative<void> {
  const candidate = new Candidate(yield* compileRegions())
  let work = 0
  for (let at = from; at < text.length; at++) {
    if (++work >= WORK_PER_SLICE) {
      work = 0
      yield
    }
    if (!candidate.read(text, at)) continue
    const end = candidate.findEnd()
    work += CANDIDATE_WORK + candidate.judgements * JUDGEMENT_WORK
    if (end === undefined) continue
    if (!onMatch(at, end)) return
    at = end - 1
  }
}

/** The digits from one position on, and the ends at which they may be a number. */
class Candidate {
  /** Calls of libphonenumber by `findEnd`. */
  judgements = 0
  readonly #regions: readonly Region[]
  #isInternational = false
  #digits = ''
  readonly #values = new Uint8Array(MOST_DIGITS)
  #count = 0
  /** libphonenumber's judgements on this text, by region and number. */
  readonly #remembered = new Map<string, boolean>()
  /** By end, in order: its position in the text, and the number of digits before it. */
  #ends: { readonly at: number; readonly count: number }[] = []

  constructor(regions: readonly Region[]) {
    this.#regions = regions
  }

  /** Reads the candidate that starts at a position; returns whether there is one. */
  read(text: string, start: number): boolean {
    let at = start
    // libphonenumber reads a plus sign only as the first character.
    this.#isInternational = text.charCodeAt(at) === PLUS
    if (this.#isInternational) at++
    while (at - start < 2 && text.charCodeAt(at) === PARENTHESIS) at++
    if (!isDigit(text.charCodeAt(at)) || (start > 0 && isDigit(text.charCodeAt(start - 1)))) return false
    const first = at
    this.#count = 0
    this.#ends = []
    for (; at - first <= MOST_TAIL; at++) {
      const unit = text.charCodeAt(at)
      if (isDigit(unit)) {
        if (this.#count === MOST_DIGITS) break
        this.#values[this.#count++] = unit - ZERO
      } else if (!isSeparator(unit)) break
      else if (isDigit(text.charCodeAt(at - 1))) this.#addEnd(start, at)
    }
    if (isDigit(text.charCodeAt(at - 1)) && (at - first > MOST_TAIL || !isDigit(text.charCodeAt(at)))) this.#addEnd(start, at)
    return at - first > LEAST_TAIL && this.#ends.length > 0
  }

  #addEnd(start: number, at: number): void {
    if (at - start > LEAST_TAIL) this.#ends.push({ at, count: this.#count })
  }

  /** The last end at which the digits are a valid number. */
  findEnd(): number | undefined {
    this.judgements = 0
    this.#digits = ''
    for (let nth = 0; nth < this.#count; nth++) this.#digits += String.fromCharCode(ZERO + (this.#values[nth] ?? 0))
    const possible = this.#isInternational ? [{ region: undefined, counts: this.#international(0) }] : this.#national()
    for (let nth = this.#ends.length - 1; nth >= 0; nth--) {
      const { at, count } = this.#ends[nth] ?? { at: 0, count: 0 }
      for (const { region, counts } of possible) if ((counts & (1 << count)) !== 0 && this.#judge(count, region)) return at
    }
    return undefined
  }

  #national(): { readonly region: CountryCode; readonly counts: number }[] {
    const possible: { region: CountryCode; counts: number }[] = []
    for (const { name, plan, exitPrefix } of this.#regions) {
      let counts = plan === undefined ? -1 : this.#counts(plan, 0)
      // The exit prefixes begin with 0.
      if (this.#values[0] === 0) {
        const exit = exitPrefix.exec(this.#digits)?.[0].length ?? 0
        if (exit > 0 && exit < this.#count && this.#values[exit] !== 0) counts |= this.#international(exit)
      }
      if (counts !== 0) possible.push({ region: name, counts })
    }
    return possible
  }

  /** The counts of digits with which the digits from `skipped` on may be an international number, as bits. */
  #international(skipped: number): number {
    if (this.#values[skipped] === 0) return 0
    const code = callingCodeOf(this.#digits.slice(skipped, skipped + 3))
    const plan = code === undefined ? undefined : planOf(code)
    return code === undefined || plan === undefined ? -1 : this.#counts(plan, skipped + code.length)
  }

  #counts(plan: PhonePlan, skipped: number): number {
    let counts = 0
    let state = plan.initial
    for (let nth = skipped; nth < this.#count && !state.isDead; nth++) {
      state = plan.step(state, this.#values[nth] ?? 0)
      if (state.isNumber) counts |= 1 << (nth + 1)
    }
    return counts
  }

  #judge(count: number, region: CountryCode | undefined): boolean {
    const number = (region === undefined ? '+' : '') + this.#digits.slice(0, count)
    const key = (region ?? '') + number
    const known = this.#remembered.get(key)
    if (known !== undefined) return known
    this.judgements++
    const isValid = isValidPhoneNumber(number, region ?? 'US')
    if (this.#remembered.size >= MAX_REMEMBERED) this.#remembered.clear()
    this.#remembered.set(key, isValid)
    return isValid
  }
}

const isDigit = (unit: number): boolean => unit >= ZERO && unit <= ZERO + 9

/** A space, parenthesis, dot or hyphen. */
const isSeparator = (unit: number): boolean => unit === 0x20 || unit === 0x28 || unit === 0x29 || unit === 0x2e || unit === 0x2d
