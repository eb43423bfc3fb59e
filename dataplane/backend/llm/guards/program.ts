import { RE2JS } from 're2js'

/**
 * The parts of re2js' compiled program that are read here. Internal to re2js: the version is pinned, and automaton.test.ts checks them.
 * Characters are code points.
 */
export interface Instruction {
  readonly op: number
  readonly out: number
  readonly arg: number
  readonly runes: readonly number[]
  matchRune(rune: number): boolean
}
export interface Program {
  readonly inst: readonly Instruction[]
  readonly start: number
}

export const Op = { alt: 1, altMatch: 2, capture: 3, emptyWidth: 4, fail: 5, match: 6, nop: 7, rune: 8, rune1: 9, runeAny: 10, runeAnyNotNewline: 11 } as const
/** Bits of an assertion about the position between two characters. */
export const Flag = { beginLine: 1, endLine: 2, beginText: 4, endText: 8, word: 16, noWord: 32 } as const

/** The kinds of characters that assertions distinguish; `none` is the end of the text. */
export const Kind = { none: 0, newline: 1, word: 2, other: 3 } as const
export const KINDS = 4

const NEWLINE = 10
const MAX_CACHED_RUNES = 4096

/** Compiles a pattern. Throws if it is invalid. */
export function compileProgram(pattern: string): Program {
  return (RE2JS.compile(pattern) as unknown as { re2Input: { prog: Program } }).re2Input.prog
}

/** Whether the program has instructions that are not supported here. */
export function isOpaque({ inst }: Program): boolean {
  return inst.some(({ op }) => op > Op.runeAnyNotNewline)
}

/** Whether the operation consumes a character. */
export const consumes = (op: number): boolean => op >= Op.rune

/** Whether an instruction consumes the character. */
export function takes(instruction: Instruction, rune: number): boolean {
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

/** The kind of a character. The assertion `\b` knows ASCII words only. */
export function kindOf(rune: number): number {
  return rune < 128 ? (asciiKinds[rune] ?? Kind.other) : Kind.other
}

/** Kinds of ASCII characters. */
export const asciiKinds = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  return character === '\n' ? Kind.newline : /\w/.test(character) ? Kind.word : Kind.other
})

/** The characters that a program distinguishes: those that the same instructions consume form a class, numbered from 0. */
export class CharacterClasses {
  readonly #consumers: readonly Instruction[]
  readonly #classes = new Map<string, number>()
  /** Classes of ASCII characters; -1 if not computed yet. */
  readonly ascii = new Int32Array(128).fill(-1)
  readonly #others = new Map<number, number>()

  constructor({ inst }: Program) {
    this.#consumers = [...new Map(inst.filter(({ op }) => consumes(op)).map((each) => [`${each.op} ${each.arg} ${each.runes.join()}`, each])).values()]
  }

  classOf(rune: number): number {
    const known = rune < 128 ? this.ascii[rune] : this.#others.get(rune)
    return known === undefined || known === -1 ? this.#classify(rune) : known
  }

  #classify(rune: number): number {
    const key = this.#consumers.map((each) => (takes(each, rune) ? '1' : '0')).join('') + String(kindOf(rune))
    const runeClass = this.#classes.get(key) ?? this.#classes.size
    this.#classes.set(key, runeClass)
    if (rune < 128) this.ascii[rune] = runeClass
    else {
      if (this.#others.size >= MAX_CACHED_RUNES) this.#others.clear()
      this.#others.set(rune, runeClass)
    }
    return runeClass
  }
}
