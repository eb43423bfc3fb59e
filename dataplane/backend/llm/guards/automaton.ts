import { CharacterClasses, compileProgram, consumes, Flag, isOpaque, Kind, kindOf, Op, takes, type Program } from './program.ts'

const LOOKS_AHEAD = Flag.endLine | Flag.endText | Flag.word | Flag.noWord

/** A state: the positions in the program that undecided matches have reached. */
interface State {
  /** Program positions, ordered by the start of their match, earliest first. */
  readonly places: readonly number[]
  /** Kind of the previous character. */
  readonly before: number
  /** Index of the first place with an undecided match; -1 if there is none. */
  readonly firstOpen: number
  /** Transitions by class of the next character, computed on first use. */
  steps: (Step | undefined)[]
}

interface Step {
  readonly to: State
  /** For each place of `to`, the index of the place that its match comes from. An index past the last place is a match that starts here. */
  readonly sources: readonly number[]
  /** A non-empty match ended before the character. */
  readonly isMatch: boolean
}

/** Most places in all cached states. Beyond it, the cache is cleared and states are computed again. */
const MAX_CACHED_PLACES = 50_000

/**
 * The automaton of a pattern, shared by all texts. States are computed when a text first reaches them, so that a character costs one
 * table lookup. Each text keeps the start positions of its own matches (MatchFront).
 */
export class Automaton {
  /** The pattern uses instructions that are not supported here: no match is decided before the end of the text. */
  readonly isOpaque: boolean
  readonly initial: State
  readonly #program: Program
  /** By instruction: a match that has reached it may still grow, or depends on the next character. */
  readonly #isOpen: readonly boolean[]
  readonly #looksAround: boolean
  readonly #classes: CharacterClasses
  readonly #states = new Map<string, State>()
  #cachedPlaces = 0

  constructor(pattern: string) {
    this.#program = compileProgram(pattern)
    const { inst } = this.#program
    this.isOpaque = isOpaque(this.#program)
    this.#isOpen = inst.map((_, pc) => this.#mayGrow(pc))
    this.#looksAround = inst.some(({ op }) => op === Op.emptyWidth)
    this.#classes = new CharacterClasses(this.#program)
    this.initial = this.#stateOf([], Kind.none)
  }

  /** The transition for a character. */
  step(state: State, rune: number): Step {
    const runeClass = this.#classes.classOf(rune)
    return state.steps[runeClass] ?? (state.steps[runeClass] = this.#advance(state, rune))
  }

  #mayGrow(from: number): boolean {
    const seen = new Set<number>()
    const open = [from]
    for (let pc = open.pop(); pc !== undefined; pc = open.pop()) {
      const instruction = this.#program.inst[pc]
      if (instruction === undefined || seen.has(pc)) continue
      seen.add(pc)
      const { op, out, arg } = instruction
      if (consumes(op) || (op === Op.emptyWidth && (arg & LOOKS_AHEAD) !== 0)) return true
      if (op === Op.alt || op === Op.altMatch) open.push(out, arg)
      else if (op === Op.capture || op === Op.nop || op === Op.emptyWidth) open.push(out)
    }
    return false
  }

  /** Continues the matches that accept the character; a new match may start with it. */
  #advance({ places, before }: State, rune: number): Step {
    const { inst, start } = this.#program
    const kind = kindOf(rune)
    const flags = flagsBetween(before, kind)
    const seen = new Set<number>()
    const next = new Map<number, number>()
    let isMatch = false
    const visit = (pc: number, source: number): void => {
      const instruction = inst[pc]
      if (instruction === undefined || seen.has(pc)) return
      seen.add(pc)
      const { op, out, arg } = instruction
      if (op === Op.alt || op === Op.altMatch) {
        visit(out, source)
        visit(arg, source)
      } else if (op === Op.capture || op === Op.nop) visit(out, source)
      else if (op === Op.emptyWidth) {
        if ((arg & ~flags) === 0) visit(out, source)
      } else if (op === Op.match) isMatch ||= source < places.length
      // Sources are ordered by start, so of two paths to one place the earlier match wins.
      else if (takes(instruction, rune) && !next.has(out)) next.set(out, source)
    }
    for (const [at, pc] of places.entries()) visit(pc, at)
    visit(start, places.length)
    return { to: this.#stateOf([...next.keys()], this.#looksAround ? kind : Kind.other), sources: [...next.values()], isMatch }
  }

  #stateOf(places: readonly number[], before: number): State {
    const key = `${before} ${places.join()}`
    const known = this.#states.get(key)
    if (known !== undefined) return known
    this.#cachedPlaces += places.length + 1
    if (this.#cachedPlaces > MAX_CACHED_PLACES) this.#clear()
    const state = { places, before, firstOpen: places.findIndex((pc) => this.#isOpen[pc] === true), steps: [] }
    this.#states.set(key, state)
    return state
  }

  /** Drops all states. States that texts are in stay valid, without their transitions. */
  #clear(): void {
    for (const state of this.#states.values()) state.steps = []
    this.#states.clear()
    this.#cachedPlaces = 0
  }
}

function flagsBetween(before: number, after: number): number {
  let flags = (before === Kind.word) === (after === Kind.word) ? Flag.noWord : Flag.word
  if (before === Kind.none) flags |= Flag.beginText | Flag.beginLine
  else if (before === Kind.newline) flags |= Flag.beginLine
  if (after === Kind.newline) flags |= Flag.endLine
  return flags
}

/**
 * Follows a text that arrives in pieces. All matches that start before `safe` are decided, whatever text follows. Positions count
 * UTF-16 code units from the beginning of the text.
 *
 * @example
 * const front = new MatchFront(new Automaton('abc'))
 * front.push('xxa')
 * front.safe // 2: a match may start at the `a`
 * front.push('x')
 * front.safe // 4
 */
export class MatchFront {
  readonly #automaton: Automaton
  #state: State
  /** Start positions of the matches at the places of the state, and one more for a match that starts next. */
  #starts: number[] = []
  #spare: number[] = []
  #length = 0
  /** A high surrogate whose low surrogate has not arrived. */
  #half = ''
  /** A match ended since `forget`, or may have. */
  #hasMatch = false

  constructor(automaton: Automaton) {
    this.#automaton = automaton
    this.#state = automaton.initial
  }

  push(text: string): void {
    const automaton = this.#automaton
    if (automaton.isOpaque) {
      this.#length += text.length
      this.#hasMatch = true
      return
    }
    const all = this.#half + text
    this.#half = ''
    for (let at = 0; at < all.length;) {
      let rune = all.charCodeAt(at)
      let width = 1
      if (rune >= 0xd8_00 && rune <= 0xdb_ff) {
        if (at === all.length - 1) {
          this.#half = all.slice(at)
          break
        }
        rune = all.codePointAt(at) ?? rune
        if (rune > 0xff_ff) width = 2
      }
      this.#apply(automaton.step(this.#state, rune))
      this.#length += width
      at += width
    }
  }

  #apply({ to, sources, isMatch }: Step): void {
    if (isMatch) this.#hasMatch = true
    if (sources.length > 0) {
      const starts = this.#starts
      const next = this.#spare
      starts[this.#state.places.length] = this.#length
      for (let at = 0; at < sources.length; at++) next[at] = starts[sources[at] ?? 0] ?? 0
      this.#starts = next
      this.#spare = starts
    }
    this.#state = to
  }

  /** The position before which all matches are decided. */
  get safe(): number {
    if (this.#automaton.isOpaque) return 0
    const { firstOpen } = this.#state
    return firstOpen === -1 ? this.#length : (this.#starts[firstOpen] ?? 0)
  }

  /** Whether the text that was decided since `forget` may contain a match. */
  get hasMatch(): boolean {
    return this.#hasMatch || this.#state.places.length > 0
  }

  /** Resets `hasMatch`. */
  forget(): void {
    this.#hasMatch = false
  }
}
