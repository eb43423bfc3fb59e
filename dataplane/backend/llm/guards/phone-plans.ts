import { getCountries, getCountryCallingCode, Metadata, type CountryCode } from 'libphonenumber-js/max'
import { Slice } from '../../../runtime/cooperative.ts'
import { compileProgram, consumes, Op, takes, type Program } from './program.ts'

/** A state of a PhonePlan. */
export interface PlanState {
  /** The digits so far may be a complete number. */
  readonly isNumber: boolean
  /** No further digits make it a number. */
  readonly isDead: boolean
  readonly places: readonly number[]
  /** By digit, computed on first use. */
  readonly steps: (PlanState | undefined)[]
}

/** Beyond it, the states are dropped and computed again. */
const MAX_STATES = 10_000
const DIGIT_ZERO = 48

/**
 * Recognizes the digits that may be a phone number of one calling code, one table lookup per digit. Accepts every number that
 * libphonenumber finds valid, and some that it does not, such as numbers of an impossible length.
 */
export class PhonePlan {
  readonly initial: PlanState
  readonly #program: Program
  readonly #states = new Map<string, PlanState>()

  constructor(pattern: string) {
    this.#program = compileProgram(pattern)
    this.initial = this.#stateOf([this.#program.start])
  }

  step(state: PlanState, digit: number): PlanState {
    return state.steps[digit] ?? (state.steps[digit] = this.#advance(state, digit))
  }

  #advance({ places }: PlanState, digit: number): PlanState {
    const next = new Set<number>()
    for (const pc of places) {
      const instruction = this.#program.inst[pc]
      if (instruction !== undefined && takes(instruction, DIGIT_ZERO + digit)) next.add(instruction.out)
    }
    return this.#stateOf([...next])
  }

  /** The state of the instructions that `from` lead to without a character. Assertions are taken to hold. */
  #stateOf(from: readonly number[]): PlanState {
    const { inst } = this.#program
    const seen = new Set<number>()
    const open = [...from]
    for (let pc = open.pop(); pc !== undefined; pc = open.pop()) {
      const instruction = inst[pc]
      if (instruction === undefined || seen.has(pc)) continue
      seen.add(pc)
      const { op, out, arg } = instruction
      if (consumes(op) || op === Op.match || op === Op.fail) continue
      open.push(out)
      if (op === Op.alt || op === Op.altMatch) open.push(arg)
    }
    const opOf = (pc: number): number => inst[pc]?.op ?? Op.fail
    const places = [...seen].filter((pc) => consumes(opOf(pc)) || opOf(pc) === Op.match).sort((a, b) => a - b)
    const key = places.join()
    const known = this.#states.get(key)
    if (known !== undefined) return known
    if (this.#states.size >= MAX_STATES) {
      for (const state of this.#states.values()) state.steps.length = 0
      this.#states.clear()
    }
    const state = { places, steps: [], isNumber: places.some((pc) => opOf(pc) === Op.match), isDead: places.length === 0 }
    this.#states.set(key, state)
    return state
  }
}

const TYPES = ['FIXED_LINE', 'MOBILE', 'TOLL_FREE', 'PREMIUM_RATE', 'PERSONAL_NUMBER', 'VOICEMAIL', 'UAN', 'PAGER', 'VOIP', 'SHARED_COST'] as const

/** Main countries of calling codes that several countries share: their national prefix holds for all. Elsewhere it is the first country. */
const MAIN_COUNTRIES: readonly CountryCode[] = ['US', 'GB', 'RU', 'AU', 'NO', 'FI', 'IT', 'MA', 'GP', 'RE', 'SH', 'CW']

/** The countries by calling code, the main one first. Codes without a country, such as 800, are not among them. */
const countriesByCode = new Map<string, CountryCode[]>()
for (const country of [...MAIN_COUNTRIES, ...getCountries()]) {
  const code = getCountryCallingCode(country)
  const countries = countriesByCode.get(code) ?? []
  if (!countries.includes(country)) countriesByCode.set(code, [...countries, country])
}

const plans = new Map<string, PhonePlan | undefined>()

/** The plan of a calling code, for numbers after it; undefined if libphonenumber has no patterns for it that can be read. */
export function planOf(code: string): PhonePlan | undefined {
  if (!plans.has(code)) plans.set(code, compilePlan(code, ''))
  return plans.get(code)
}

/** The plan of the numbers as they are dialled in a region: the calling code may precede them. */
export function nationalPlanOf(region: CountryCode): PhonePlan | undefined {
  const code = getCountryCallingCode(region)
  const key = `+${code}`
  if (!plans.has(key)) plans.set(key, compilePlan(code, `(?:${code})?`))
  return plans.get(key)
}

/** The calling code that digits begin with: no code is the beginning of another. */
export function callingCodeOf(digits: string): string | undefined {
  for (let length = 1; length <= 3; length++) if (countriesByCode.has(digits.slice(0, length))) return digits.slice(0, length)
  return undefined
}

/** Compiles the plans of all calling codes, so that no request waits for one. Takes a few hundred milliseconds in slices. */
export async function compilePlans(): Promise<void> {
  const slice = new Slice()
  for (const code of countriesByCode.keys()) {
    planOf(code)
    if (slice.isOver) await slice.next()
  }
}

function compilePlan(code: string, prefix: string): PhonePlan | undefined {
  const [main, ...others] = (countriesByCode.get(code) ?? []).map(numberingPlan)
  // A rule of another form puts digits in front of the number.
  const rule = main?.nationalPrefixTransformRule()
  if (main === undefined || (typeof rule === 'string' && !/^\$\d$/.test(rule))) return undefined
  // Carrier codes are optional groups of the prefix. A group that captures the number itself is left out.
  const trunk = (main.nationalPrefixForParsing() || '').replaceAll(/\(\\d\{[\d,]+\}\)/g, '')
  const numbers = [main, ...others].flatMap((plan) => {
    const types = TYPES.map((type) => plan.type(type)?.pattern()).filter((pattern) => pattern !== undefined)
    return types.length > 0 ? types : [plan.nationalNumberPattern()]
  })
  try {
    return new PhonePlan(`${prefix}(?:${trunk})?(?:${numbers.join('|')})`)
  } catch {
    return undefined
  }
}

function numberingPlan(country: CountryCode): NumberingPlan {
  const metadata = new Metadata()
  metadata.selectNumberingPlan(country)
  return metadata.numberingPlan as unknown as NumberingPlan
}

/** The members of libphonenumber's numbering plans that its types leave out. */
interface NumberingPlan {
  type(name: (typeof TYPES)[number]): { pattern(): string } | undefined
  nationalNumberPattern(): string
  nationalPrefixForParsing(): string | 0 | undefined
  nationalPrefixTransformRule(): unknown
  IDDPrefix(): string | undefined
}

/** The prefixes of international calls in a region, as a pattern for the beginning of the digits. */
export function exitPrefixOf(region: CountryCode): RegExp {
  return new RegExp(`^(?:${numberingPlan(region).IDDPrefix() ?? '(?!)'})`)
}
