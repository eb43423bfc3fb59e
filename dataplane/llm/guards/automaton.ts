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

/** The automaton of a pattern, shared by all texts that it is fed. */
export class Automaton {
  readonly program: Program
  /** By instruction: a match that has come so far may still grow, or is not decided until the next character is known. */
  readonly isOpen: readonly boolean[]
  /** ASCII characters that a match may begin with. */
  readonly begins: Uint8Array
  /** It holds what is not understood here: nothing of a text is ever decided before its end. */
  readonly isOpaque: boolean

  constructor(pattern: string) {
    this.program = (RE2JS.compile(pattern) as unknown as { re2Input: { prog: Program } }).re2Input.prog
    const { inst, start } = this.program
    this.isOpaque = inst.some(({ op }) => op > Op.runeAnyNotNewline)
    this.isOpen = inst.map((_, pc) => this.#reaches(pc, ({ op, arg }) => consumes(op) || (op === Op.emptyWidth && (arg & LOOKS_AHEAD) !== 0)))
    this.begins = new Uint8Array(128)
    for (let rune = 0; rune < 128; rune++) this.begins[rune] = this.#reaches(start, (instruction) => takes(instruction, rune)) ? 1 : 0
  }

  #reaches(from: number, isWanted: (instruction: Instruction) => boolean): boolean {
    const seen = new Set<number>()
    const open = [from]
    for (let pc = open.pop(); pc !== undefined; pc = open.pop()) {
      const instruction = this.program.inst[pc]
      if (instruction === undefined || seen.has(pc)) continue
      seen.add(pc)
      if (isWanted(instruction)) return true
      const { op, out, arg } = instruction
      if (op === Op.alt || op === Op.altMatch) open.push(out, arg)
      else if (op === Op.capture || op === Op.nop || op === Op.emptyWidth) open.push(out)
    }
    return false
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

const isWord = (rune: number): boolean => (rune >= 48 && rune <= 57) || (rune >= 65 && rune <= 90) || rune === 95 || (rune >= 97 && rune <= 122)

/**
 * Follows a text that comes in pieces and tells how much of it no undecided match can begin in: all matches that begin before
 * `safe` are known, whatever follows. Positions count UTF-16 code units from the beginning of the text.
 */
export class MatchFront {
  readonly #automaton: Automaton
  /** Where in the program matches may be that began earlier, and where they began: the earliest of each. */
  #threads = new Map<number, number>()
  #next = new Map<number, number>()
  #before = -1
  #length = 0
  /** First half of a surrogate pair whose second has not come. */
  #half = ''
  /** Something matched since `forget`, or may have at its end. */
  #hasMatch = false

  constructor(automaton: Automaton) {
    this.#automaton = automaton
  }

  push(text: string): void {
    const { program, begins, isOpaque } = this.#automaton
    if (isOpaque) {
      this.#length += text.length
      this.#hasMatch = true
      return
    }
    const all = this.#half + text
    this.#half = ''
    for (let at = 0; at < all.length;) {
      const rune = all.codePointAt(at) ?? 0
      const width = rune > 0xff_ff ? 2 : 1
      if (width === 1 && at === all.length - 1 && rune >= 0xd8_00 && rune <= 0xdb_ff) {
        this.#half = all.slice(at)
        break
      }
      if (this.#threads.size > 0 || rune >= 128 || begins[rune] === 1) this.#step(program, rune)
      this.#before = rune
      this.#length += width
      at += width
    }
  }

  /** Everything before it is decided. */
  get safe(): number {
    const { isOpaque, isOpen } = this.#automaton
    if (isOpaque) return 0
    let safe = this.#length
    for (const [pc, start] of this.#threads) if (start < safe && isOpen[pc] === true) safe = start
    return safe
  }

  /** A match may be among what was decided since `forget`. */
  get hasMatch(): boolean {
    return this.#hasMatch || this.#threads.size > 0
  }

  forget(): void {
    this.#hasMatch = false
  }

  /** Takes one character: threads go on that it fits, and a new match may begin with it. */
  #step({ inst, start }: Program, rune: number): void {
    const flags = flagsBetween(this.#before, rune)
    const next = this.#next
    next.clear()
    const seen = new Set<number>()
    const visit = (pc: number, began: number): void => {
      const instruction = inst[pc]
      if (instruction === undefined || seen.has(pc)) return
      seen.add(pc)
      const { op, out, arg } = instruction
      if (op === Op.alt || op === Op.altMatch) {
        visit(out, began)
        visit(arg, began)
      } else if (op === Op.capture || op === Op.nop) visit(out, began)
      else if (op === Op.emptyWidth) {
        if ((arg & ~flags) === 0) visit(out, began)
      } else if (op === Op.match) this.#hasMatch = true
      else if (takes(instruction, rune) && !(next.get(out) !== undefined && (next.get(out) ?? 0) <= began)) next.set(out, began)
    }
    // The earliest first: of two ways to one place only the earlier beginning counts.
    for (const [pc, began] of [...this.#threads].sort((a, b) => a[1] - b[1])) visit(pc, began)
    visit(start, this.#length)
    this.#next = this.#threads
    this.#threads = next
  }
}

function flagsBetween(before: number, after: number): number {
  let flags = isWord(before) === isWord(after) ? Flag.noWord : Flag.word
  if (before === -1) flags |= Flag.beginText | Flag.beginLine
  else if (before === NEWLINE) flags |= Flag.beginLine
  if (after === NEWLINE) flags |= Flag.endLine
  return flags
}
