import type { Cooperative } from '../../../runtime/cooperative.ts'
import { asciiKinds, CharacterClasses, compileProgram, consumes, Flag, Kind, KINDS, kindOf, Op, takes, type Program } from './program.ts'

/** A state: the instructions from which a match can still be completed by the text behind a position. */
interface State {
  readonly reaches: Uint8Array
  /** A match starts at the position. It may be empty. */
  readonly isStart: boolean
  /** States of the previous position, by the class of its character and the kind of the character before that. */
  steps: (State | undefined)[]
  /** By instruction: the instruction by which the preferred match continues, that consumes a character or ends the match; 0 if not computed yet. */
  readonly continuations: Int16Array
}

/** The end of a match, or of the valid part of it; undefined discards the match. */
type Check = (text: string, start: number, end: number) => number | undefined
/** Called with each match, in order. Returns whether to search on. */
type OnMatch = (start: number, end: number) => boolean

/** Positions per block. States are kept for one position per block, and computed again where a block has matches. */
const BLOCK = 2048
/** Most bytes of cached states. Beyond it, the cache is cleared and states are computed again. */
const MAX_CACHED_BYTES = 2 * 1024 * 1024
/** States to compute, and matches to report, before other events may be processed. */
const STEPS_PER_SLICE = 32

/**
 * Finds all matches of a pattern in time linear in the text, as RE2 finds them: from left to right, without overlaps, preferring earlier
 * alternatives. A search from left to right alone would be quadratic: of `a.*b|a`, each `a` in a text without `b` looks at the whole
 * rest. So the text is first read from its end, which yields the positions at which a match starts and, for each position, the
 * instructions from which a match can be completed. With these, the preferred match is followed without looking ahead.
 *
 * States are computed when a text first reaches them, and shared by all texts, so that a character costs one table lookup.
 */
export class Finder {
  /** The pattern has an assertion about the beginning or end of the text. */
  readonly dependsOnEnds: boolean
  readonly #program: Program
  readonly #classes: CharacterClasses
  readonly #looksAround: boolean
  /** By instruction: the instructions that lead to it without consuming a character, and the assertions that must hold (0 for none). */
  readonly #sources: readonly (readonly { readonly pc: number; readonly flags: number }[])[]
  readonly #matches: readonly number[]
  readonly #consumers: readonly number[]
  readonly #states = new Map<string, State>()
  #cachedBytes = 0
  /** States computed since the last pause. */
  #computed = 0

  constructor(pattern: string) {
    this.#program = compileProgram(pattern)
    const { inst } = this.#program
    this.#classes = new CharacterClasses(this.#program)
    this.#looksAround = inst.some(({ op }) => op === Op.emptyWidth)
    this.dependsOnEnds = inst.some(({ op, arg }) => op === Op.emptyWidth && (arg & (Flag.beginText | Flag.endText)) !== 0)
    const sources: { pc: number; flags: number }[][] = inst.map(() => [])
    for (const [pc, { op, out, arg }] of inst.entries()) {
      if (consumes(op) || op === Op.match || op === Op.fail) continue
      sources[out]?.push({ pc, flags: op === Op.emptyWidth ? arg : 0 })
      if (op === Op.alt || op === Op.altMatch) sources[arg]?.push({ pc, flags: 0 })
    }
    this.#sources = sources
    const all = [...inst.keys()]
    this.#matches = all.filter((pc) => inst[pc]?.op === Op.match)
    this.#consumers = all.filter((pc) => consumes(inst[pc]?.op ?? 0))
  }

  /** Searches from `from` on. After a discarded match the search goes on with its next character. Empty matches are skipped. */
  *find(text: string, from: number, onMatch: OnMatch, check?: Check): Cooperative<void> {
    if (from >= text.length) return
    const blocks = new Blocks(text, from, (state, at) => this.#stepBack(text, state, at), this.#last(text))
    yield* blocks.scan(() => this.#takePause(), this.#classes, this.#looksAround)
    const { inst, start } = this.#program
    let reported = 0
    for (let at = from; at < text.length;) {
      if (!blocks.hasStart(at)) {
        at = blocks.nextBlock(at)
        continue
      }
      if (!blocks.isLoaded(at)) yield* blocks.load(at, () => this.#takePause())
      let state = blocks.stateAt(at)
      if (state?.isStart !== true) {
        at++
        continue
      }
      const begin = at
      for (let pc = this.#continue(state, start); inst[pc]?.op !== Op.match; pc = this.#continue(state, inst[pc]?.out ?? 0)) {
        at += widthAt(text, at)
        if (!blocks.isLoaded(at)) yield* blocks.load(at, () => this.#takePause())
        const next = blocks.stateAt(at)
        if (next === undefined) throw new Error('a match left the text')
        state = next
      }
      const end = at === begin ? undefined : check === undefined ? at : check(text, begin, at)
      if (++reported % STEPS_PER_SLICE === 0) yield
      if (end !== undefined && !onMatch(begin, end)) return
      at = end ?? begin + 1
    }
  }

  /** Whether enough states were computed for a pause. */
  #takePause(): boolean {
    if (this.#computed < STEPS_PER_SLICE) return false
    this.#computed = 0
    return true
  }

  /** The state at the end of the text. */
  #last(text: string): State {
    return this.#stateOf([], flagsBetween(text === '' ? Kind.none : kindOf(text.charCodeAt(text.length - 1)), Kind.none))
  }

  /** The state at the position before `at`, from the state at `at`. */
  #stepBack(text: string, state: State, at: number): State {
    const unit = text.charCodeAt(at - 1)
    const before = isLow(unit) ? at - widthBefore(text, at) : at - 1
    const rune = unit < 0xd8_00 ? unit : (text.codePointAt(before) ?? 0)
    const kind = !this.#looksAround || before === 0 ? Kind.none : kindOf(text.charCodeAt(before - 1))
    const step = this.#classes.classOf(rune) * KINDS + kind
    return state.steps[step] ?? (state.steps[step] = this.#compute(state, rune, kind))
  }

  #compute({ reaches }: State, rune: number, before: number): State {
    this.#computed++
    const { inst } = this.#program
    const taken = this.#consumers.filter((pc) => {
      const instruction = inst[pc]
      return instruction !== undefined && reaches[instruction.out] === 1 && takes(instruction, rune)
    })
    return this.#stateOf(taken, flagsBetween(before, kindOf(rune)))
  }

  #stateOf(taken: readonly number[], flags: number): State {
    const reaches = new Uint8Array(this.#program.inst.length)
    const open = [...taken, ...this.#matches]
    for (const pc of open) reaches[pc] = 1
    for (let pc = open.pop(); pc !== undefined; pc = open.pop())
      for (const source of this.#sources[pc] ?? []) {
        if (reaches[source.pc] === 1 || (source.flags & ~flags) !== 0) continue
        reaches[source.pc] = 1
        open.push(source.pc)
      }
    const key = Buffer.from(reaches.buffer).toString('latin1')
    const known = this.#states.get(key)
    if (known !== undefined) return known
    this.#cachedBytes += 5 * reaches.length + 100
    if (this.#cachedBytes > MAX_CACHED_BYTES) this.#clear()
    const state = { reaches, isStart: reaches[this.#program.start] === 1, steps: [], continuations: new Int16Array(reaches.length) }
    this.#states.set(key, state)
    return state
  }

  /** Drops all states. States that texts are in stay valid, without their transitions. */
  #clear(): void {
    for (const state of this.#states.values()) state.steps = []
    this.#states.clear()
    this.#cachedBytes = 0
  }

  /** The first instruction in the order of preference, from `pc` on, that can complete a match and that consumes a character or ends the match. */
  #continue(state: State, pc: number): number {
    const known = state.continuations[pc]
    if (known !== undefined && known !== 0) return known
    const { inst } = this.#program
    const seen = new Set<number>()
    const open = [pc]
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const instruction = inst[next]
      if (instruction === undefined || seen.has(next) || state.reaches[next] !== 1) continue
      seen.add(next)
      const { op, out, arg } = instruction
      if (consumes(op) || op === Op.match) return (state.continuations[pc] = next)
      if (op === Op.alt || op === Op.altMatch) open.push(arg, out)
      else open.push(out)
    }
    throw new Error('a match has no continuation')
  }
}

interface LoadedBlock {
  readonly block: number
  readonly states: readonly (State | undefined)[]
}

/** The states of a text, in blocks: at most two blocks have a state for each position. */
class Blocks {
  readonly #from: number
  readonly #stepBack: (state: State, at: number) => State
  readonly #text: string
  /** By block: the first known state behind it, and its position. */
  readonly #ends: { readonly state: State; readonly at: number }[] = []
  readonly #hasStart: boolean[] = []
  #current: LoadedBlock = { block: -2, states: [] }
  #previous: LoadedBlock = { block: -2, states: [] }

  constructor(text: string, from: number, stepBack: (state: State, at: number) => State, last: State) {
    this.#text = text
    this.#from = from
    this.#stepBack = stepBack
    this.#ends[Math.floor(text.length / BLOCK)] = { state: last, at: text.length }
  }

  /** Reads the text from its end to `from`. */
  *scan(mustPause: () => boolean, { ascii }: CharacterClasses, looksAround: boolean): Cooperative<void> {
    const text = this.#text
    for (let block = Math.floor(this.#text.length / BLOCK); block >= Math.floor(this.#from / BLOCK); block--) {
      const end = this.#ends[block]
      if (end === undefined) throw new Error('a block has no end')
      let { state, at } = end
      const begin = Math.max(block * BLOCK, this.#from)
      let hasStart = state.isStart
      while (at > begin) {
        // Most characters take this short way.
        const unit = text.charCodeAt(at - 1)
        const before = looksAround && at > 1 ? text.charCodeAt(at - 2) : 0
        const step = unit < 128 && before < 128 ? (ascii[unit] ?? -1) * KINDS + (looksAround && at > 1 ? (asciiKinds[before] ?? 0) : Kind.none) : -1
        const next = step < 0 ? undefined : state.steps[step]
        if (next === undefined) {
          state = this.#stepBack(state, at)
          at -= widthBefore(text, at)
          if (mustPause()) yield
        } else {
          state = next
          at--
        }
        if (state.isStart) hasStart = true
      }
      this.#hasStart[block] = hasStart
      if (block > 0) this.#ends[block - 1] = { state, at }
      yield
    }
  }

  /** Whether a match may start in the block of a position. */
  hasStart(at: number): boolean {
    return this.#hasStart[Math.floor(at / BLOCK)] === true
  }

  nextBlock(at: number): number {
    return (Math.floor(at / BLOCK) + 1) * BLOCK
  }

  isLoaded(at: number): boolean {
    const block = Math.floor(at / BLOCK)
    return this.#current.block === block || this.#previous.block === block
  }

  /** The state at a position of a loaded block; undefined between the halves of a surrogate pair. */
  stateAt(at: number): State | undefined {
    const { block, states } = this.#current
    const offset = at - block * BLOCK
    return offset >= 0 && offset < BLOCK ? states[offset] : this.#previous.states[at - this.#previous.block * BLOCK]
  }

  /** Computes the states of the block of a position. The last two blocks stay loaded. */
  *load(position: number, mustPause: () => boolean): Cooperative<void> {
    const block = Math.floor(position / BLOCK)
    const begin = block * BLOCK
    const states = Array.from<State | undefined>({ length: BLOCK })
    const end = this.#ends[block]
    if (end === undefined) throw new Error('a block has no end')
    let { state, at } = end
    if (at < begin + BLOCK) states[at - begin] = state
    while (at > begin) {
      state = this.#stepBack(state, at)
      at -= widthBefore(this.#text, at)
      if (at >= begin && at < begin + BLOCK) states[at - begin] = state
      if (mustPause()) yield
    }
    this.#previous = this.#current
    this.#current = { block, states }
  }
}

const isHigh = (unit: number): boolean => unit >= 0xd8_00 && unit <= 0xdb_ff
const isLow = (unit: number): boolean => unit >= 0xdc_00 && unit <= 0xdf_ff

/** UTF-16 units of the character at a position. */
function widthAt(text: string, at: number): number {
  return isHigh(text.charCodeAt(at)) && isLow(text.charCodeAt(at + 1)) ? 2 : 1
}

/** UTF-16 units of the character before a position. */
function widthBefore(text: string, at: number): number {
  return isLow(text.charCodeAt(at - 1)) && isHigh(text.charCodeAt(at - 2)) ? 2 : 1
}

function flagsBetween(before: number, after: number): number {
  let flags = (before === Kind.word) === (after === Kind.word) ? Flag.noWord : Flag.word
  if (before === Kind.none) flags |= Flag.beginText | Flag.beginLine
  else if (before === Kind.newline) flags |= Flag.beginLine
  if (after === Kind.none) flags |= Flag.endText | Flag.endLine
  else if (after === Kind.newline) flags |= Flag.endLine
  return flags
}
