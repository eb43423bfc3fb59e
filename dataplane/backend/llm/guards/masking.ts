import type { Cooperative } from '../../../runtime/cooperative.ts'
import type { ClientEvent, TextDelta } from '../common/types.ts'
import { MatchFront } from './automaton.ts'
import type { Hits } from './hits.ts'
import type { Patterns } from './patterns.ts'
import { StreamRejection } from './types.ts'

/** Most text that is held back, in UTF-16 units. Some patterns would hold back the whole response. */
const MAX_HELD_LENGTH = 1024 * 1024
/** Characters kept before the undecided text, because assertions such as \b look one character back. */
const CONTEXT = 2
/** Characters to read before other events may be processed. */
const CHARACTERS_PER_SLICE = 2048
/** Pieces of text to release before other events may be processed. */
const DELTAS_PER_SLICE = 256

type Replace = (delta: TextDelta, text: string) => void

interface PendingDelta {
  readonly delta: TextDelta
  readonly start: number
  readonly end: number
}

/** One text of a response, as it arrives. Positions count from its beginning. */
class Segment {
  readonly #patterns: Patterns
  readonly #fronts: readonly MatchFront[]
  readonly #replace: Replace
  /** The text from `#base` on. */
  #text = ''
  #base = 0
  /** Where the search starts. No match spans this position. */
  #from = 0
  #length = 0
  #pending: PendingDelta[] = []
  readonly #held = new Set<TextDelta>()
  #isClosed = false
  #isMasked = false

  constructor(patterns: Patterns, replace: Replace) {
    this.#patterns = patterns
    this.#replace = replace
    this.#fronts = patterns.automata.map((automaton) => new MatchFront(automaton))
  }

  get heldLength(): number {
    return this.#length - this.#base
  }

  *add(delta: TextDelta): Cooperative<void> {
    const text = delta.kind === 'copy' ? '' : delta.text
    for (const front of this.#fronts)
      for (let at = 0; at < text.length; at += CHARACTERS_PER_SLICE) {
        if (at > 0) yield
        front.push(text.slice(at, at + CHARACTERS_PER_SLICE))
      }
    this.#held.add(delta)
    this.#pending.push({ delta, start: this.#length, end: this.#length + text.length })
    this.#text += text
    this.#length += text.length
  }

  close(): void {
    this.#isClosed = true
  }

  isHeld(delta: TextDelta): boolean {
    return this.#held.has(delta)
  }

  /** Masks and releases the deltas that are decided, and drops their text. */
  *settle(): Cooperative<void> {
    const safe = this.#isClosed ? this.#length : Math.min(...this.#fronts.map((front) => front.safe))
    const first = this.#pending[0]
    if (first === undefined || first.end > safe) return
    const hits = this.#fronts.some((front) => front.hasMatch) ? yield* this.#patterns.find(this.#text, this.#from - this.#base) : undefined
    let settled = 0
    let nth = 0
    for (const { delta, start, end } of this.#pending) {
      if (end > safe) break
      settled++
      this.#held.delete(delta)
      if (delta.kind === 'copy') {
        if (this.#isMasked) this.#replace(delta, '')
        continue
      }
      if (hits === undefined) continue
      while (nth < hits.length && hits.end(nth) + this.#base <= start) nth++
      const masked = this.#maskPart(hits, nth, start, end)
      if (masked !== undefined) {
        this.#isMasked = true
        this.#replace(delta, masked)
      }
      if (settled % DELTAS_PER_SLICE === 0) yield
    }
    this.#pending.splice(0, settled)
    this.#trim(Math.min(safe, this.#pending[0]?.start ?? safe), hits)
  }

  /** Masks `[start, end)`, from the hit `first` on; a label replaces the part in which its hit starts. undefined if there is nothing to mask. */
  #maskPart(hits: Hits, first: number, start: number, end: number): string | undefined {
    const pieces: string[] = []
    const base = this.#base
    let at = start
    for (let nth = first; nth < hits.length && hits.start(nth) + base < end; nth++) {
      const [from, to] = [hits.start(nth) + base, hits.end(nth) + base]
      if (to <= at) continue
      if (from >= at) pieces.push(this.#text.slice(at - base, from - base), hits.label(nth))
      else if (pieces.length === 0) pieces.push('')
      at = Math.min(to, end)
    }
    return pieces.length === 0 ? undefined : pieces.join('') + this.#text.slice(at - base, end - base)
  }

  #trim(to: number, hits: Hits | undefined): void {
    // Search again from the start of a hit that spans the position: it may still grow, and its label was sent already.
    let from = to
    let hasLater = false
    if (hits !== undefined)
      for (let nth = hits.length - 1; nth >= 0; nth--) {
        const [start, end] = [hits.start(nth) + this.#base, hits.end(nth) + this.#base]
        if (end <= to) break
        hasLater = true
        if (start < to) from = start
      }
    this.#from = from
    const base = Math.max(this.#base, from - CONTEXT)
    this.#text = this.#text.slice(base - this.#base)
    this.#base = base
    if (!hasLater) for (const front of this.#fronts) front.forget()
  }
}

/** Holds tool input back until it is complete, because it must be masked as JSON. Clients cannot use partial input anyway. */
class HeldInput {
  readonly #patterns: Patterns
  readonly #replace: Replace
  #deltas = new Set<TextDelta>()
  #length = 0
  #isClosed = false

  constructor(patterns: Patterns, replace: Replace) {
    this.#patterns = patterns
    this.#replace = replace
  }

  get heldLength(): number {
    return this.#length
  }

  // oxlint-disable-next-line require-yield -- as Segment
  *add(delta: TextDelta): Cooperative<void> {
    this.#deltas.add(delta)
    this.#length += delta.text.length
  }

  close(): void {
    this.#isClosed = true
  }

  isHeld(delta: TextDelta): boolean {
    return this.#deltas.has(delta)
  }

  *settle(): Cooperative<void> {
    if (!this.#isClosed || this.#deltas.size === 0) return
    const deltas = [...this.#deltas]
    const text = deltas.map((delta) => delta.text).join('')
    const masked = yield* this.#patterns.maskJson(text)
    if (masked !== text) for (const [at, delta] of deltas.entries()) this.#replace(delta, at === 0 ? masked : '')
    this.#deltas = new Set()
    this.#length = 0
  }
}

/**
 * Masks a stream exactly as its complete text would be masked. Text is released once no undecided match starts in it. Events keep
 * their order.
 */
export class MaskingStream {
  readonly #patterns: Patterns
  readonly #onMask: () => void
  readonly #segments = new Map<string, Segment | HeldInput>()
  #queue: ClientEvent[] = []

  /** `onMask` is called whenever a text is masked. */
  constructor(patterns: Patterns, onMask: () => void) {
    this.#patterns = patterns
    this.#onMask = onMask
  }

  /** Accepts the next events; returns the events to send now. The next call must wait for the end of the work. */
  *push(events: readonly ClientEvent[]): Cooperative<readonly ClientEvent[]> {
    for (const event of events) {
      this.#queue.push(event)
      for (const delta of event.deltas) yield* this.#add(delta)
      for (const other of event.others) yield* this.#add(other)
      for (const name of event.closes) this.#close(name)
    }
    return yield* this.#release()
  }

  /** Returns the remaining events. */
  *end(): Cooperative<readonly ClientEvent[]> {
    for (const segment of this.#segments.values()) segment.close()
    return yield* this.#release()
  }

  /** The length of the text that is held back. */
  get heldLength(): number {
    let held = 0
    for (const segment of this.#segments.values()) held += segment.heldLength
    return held
  }

  *#add(delta: TextDelta): Cooperative<void> {
    if (delta.isWhole) {
      const masked = delta.kind === 'toolInput' ? yield* this.#patterns.maskJson(delta.text) : yield* this.#patterns.mask(delta.text)
      if (masked !== delta.text) this.#replace(delta, masked)
      return
    }
    let segment = this.#segments.get(delta.segment)
    if (segment === undefined && delta.kind === 'copy') return
    if (segment === undefined) this.#segments.set(delta.segment, (segment = this.#begin(delta.kind)))
    yield* segment.add(delta)
  }

  #begin(kind: TextDelta['kind']): Segment | HeldInput {
    const replace: Replace = (delta, text) => this.#replace(delta, text)
    return kind === 'toolInput' ? new HeldInput(this.#patterns, replace) : new Segment(this.#patterns, replace)
  }

  #replace(delta: TextDelta, text: string): void {
    this.#onMask()
    delta.replace(text)
  }

  #close(name: string): void {
    const prefix = name.endsWith('*') ? name.slice(0, -1) : undefined
    for (const [key, segment] of this.#segments) if (prefix === undefined ? key === name : key.startsWith(prefix)) segment.close()
  }

  *#release(): Cooperative<readonly ClientEvent[]> {
    for (const segment of this.#segments.values()) yield* segment.settle()
    if (this.heldLength > MAX_HELD_LENGTH)
      throw new StreamRejection('the response cannot be checked: a pattern needs more text than the gateway holds back', 'guard_failed')
    let ready = 0
    while (this.#queue[ready] !== undefined && !this.#isHeld(this.#queue[ready])) ready++
    return this.#queue.splice(0, ready)
  }

  #isHeld(event: ClientEvent | undefined): boolean {
    return event?.deltas.some((delta) => this.#segments.get(delta.segment)?.isHeld(delta) === true) === true
  }
}
