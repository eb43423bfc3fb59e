import { RE2JS } from 're2js'

/** What we read of re2js' compiled program (checked by automaton.test.ts, the version is exact). Code points throughout. */
interface Instruction {
  readonly op: number
  readonly out: number
  readonly arg: number
  readonly runes: readonly number[]
  matchRune(rune: number): boolean
}
interface Program {
  readonly inst: readonly Instruction[]
  readonly start: number
}

const Op = { alt: 1, altMatch: 2, capture: 3, emptyWidth: 4, fail: 5, match: 6, nop: 7, rune: 8, rune1: 9, runeAny: 10, runeAnyNotNewline: 11 } as const
/** Bits of an assertion about a place between two characters. */
const Flag = { beginLine: 1, endLine: 2, beginText: 4, endText: 8, word: 16, noWord: 32 } as const
const LOOKS_AHEAD = Flag.endLine | Flag.endText | Flag.word | Flag.noWord
const NEWLINE = 10

/** What an assertion may ask of a character; `none` stands before the first one. */
const Kind = { none: 0, newline: 1, word: 2, other: 3 } as const

/** Where in the program undecided matches may be. */
interface State {
  /** The earliest beginning first. */
  readonly places: readonly number[]
  /** Kind of the character before. */
  readonly before: number
  /** Index of the first place at which a match is not decided; -1: there is none. */
  readonly firstOpen: number
  /** By class of the next character, as far as one has come. */
  steps: (Step | undefined)[]
}

interface Step {
  readonly to: State
  /** For each place of `to`: the index of the place that its match comes from; one too many stands for a match that begins here. */
  readonly sources: readonly number[]
  /** A match ended before the character. Empty ones do not count. */
  readonly isMatch: boolean
}

/** Places in all states that are kept: a pattern that needs more of them is worked out again now and then. */
const KEPT_PLACES = 50_000
const KEPT_RUNES = 4096

/**
 * The automaton of a pattern, shared by all texts that it is fed. States are made when a text first leads to them, so that a
 * character costs one look into a table; where matches began is kept by each text itself.
 */
export class Automaton {
  /** It holds what is not understood here: nothing of a text is ever decided before its end. */
  readonly isOpaque: boolean
  readonly initial: State
  readonly #program: Program
  /** By instruction: a match that has come so far may still grow, or is not decided until the next character is known. */
  readonly #isOpen: readonly boolean[]
  readonly #looksAround: boolean
  /** One of each kind of instruction that takes a character: characters that the same of them take are of one class. */
  readonly #takers: readonly Instruction[]
  readonly #classes = new Map<string, number>()
  /** Of ASCII characters; -1: not looked at yet. */
  readonly #ascii = new Int32Array(128).fill(-1)
  readonly #others = new Map<number, number>()
  readonly #states = new Map<string, State>()
  #keptPlaces = 0

  constructor(pattern: string) {
    this.#program = (RE2JS.compile(pattern) as unknown as { re2Input: { prog: Program } }).re2Input.prog
    const { inst } = this.#program
    this.isOpaque = inst.some(({ op }) => op > Op.runeAnyNotNewline)
    this.#isOpen = inst.map((_, pc) => this.#mayGrow(pc))
    this.#looksAround = inst.some(({ op }) => op === Op.emptyWidth)
    this.#takers = [...new Map(inst.filter(({ op }) => consumes(op)).map((each) => [`${each.op} ${each.arg} ${each.runes.join()}`, each])).values()]
    this.initial = this.#stateOf([], Kind.none)
  }

  /** What a character does. */
  step(state: State, rune: number): Step {
    const known = rune < 128 ? this.#ascii[rune] : this.#others.get(rune)
    const ofClass = known === undefined || known === -1 ? this.#classify(rune) : known
    return state.steps[ofClass] ?? (state.steps[ofClass] = this.#advance(state, rune))
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

  #classify(rune: number): number {
    const key = this.#takers.map((each) => (takes(each, rune) ? '1' : '0')).join('') + String(kindOf(rune))
    const ofClass = this.#classes.get(key) ?? this.#classes.size
    this.#classes.set(key, ofClass)
    if (rune < 128) this.#ascii[rune] = ofClass
    else {
      if (this.#others.size >= KEPT_RUNES) this.#others.clear()
      this.#others.set(rune, ofClass)
    }
    return ofClass
  }

  /** Matches go on that the character fits, and a new one may begin with it. */
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
      // Sources come in the order of their beginnings: of two ways to one place only the earlier counts.
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
    this.#keptPlaces += places.length + 1
    if (this.#keptPlaces > KEPT_PLACES) this.#forget()
    const state = { places, before, firstOpen: places.findIndex((pc) => this.#isOpen[pc] === true), steps: [] }
    this.#states.set(key, state)
    return state
  }

  /** States that texts are in live on, with nothing that they led to. */
  #forget(): void {
    for (const state of this.#states.values()) state.steps = []
    this.#states.clear()
    this.#keptPlaces = 0
  }
}

const consumes = (op: number): boolean => op >= Op.rune

function takes(instruction: Instruction, rune: number): boolean {
  switch (instruction.op) {
    case Op.rune:
    case Op.rune1:
      return instruction.matchRune(rune)
    case Op.runeAny:
      return true
    case Op.runeAnyNotNewline:
      return rune !== NEWLINE
    default:
      return false
  }
}

function kindOf(rune: number): number {
  if (rune === NEWLINE) return Kind.newline
  const isWord = (rune >= 48 && rune <= 57) || (rune >= 65 && rune <= 90) || rune === 95 || (rune >= 97 && rune <= 122)
  return isWord ? Kind.word : Kind.other
}

function flagsBetween(before: number, after: number): number {
  let flags = (before === Kind.word) === (after === Kind.word) ? Flag.noWord : Flag.word
  if (before === Kind.none) flags |= Flag.beginText | Flag.beginLine
  else if (before === Kind.newline) flags |= Flag.beginLine
  if (after === Kind.newline) flags |= Flag.endLine
  return flags
}

/**
 * Follows a text that comes in pieces and tells how much of it no undecided match can begin in: all matches that begin before
 * `safe` are known, whatever follows. Positions count UTF-16 code units from the beginning of the text.
 */
export class MatchFront {
  readonly #automaton: Automaton
  #state: State
  /** Where the matches at the places of the state began, and one more for what begins next. */
  #starts: number[] = []
  #spare: number[] = []
  #length = 0
  /** First half of a surrogate pair whose second has not come. */
  #half = ''
  /** Something matched since `forget`, or may have at its end. */
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
      this.#take(automaton.step(this.#state, rune))
      this.#length += width
      at += width
    }
  }

  #take({ to, sources, isMatch }: Step): void {
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

  /** Everything before it is decided. */
  get safe(): number {
    if (this.#automaton.isOpaque) return 0
    const { firstOpen } = this.#state
    return firstOpen === -1 ? this.#length : (this.#starts[firstOpen] ?? 0)
  }

  /** A match may be among what was decided since `forget`. */
  get hasMatch(): boolean {
    return this.#hasMatch || this.#state.places.length > 0
  }

  forget(): void {
    this.#hasMatch = false
  }
}
