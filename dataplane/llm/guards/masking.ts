import type { ClientEvent, TextDelta } from '../common/types.ts'
import { MatchFront } from './automaton.ts'
import type { Hit, Patterns } from './patterns.ts'
import { StreamRejection, type StreamGuard } from './types.ts'

/** Most text that is held back, in UTF-16 units. Some patterns would hold back the whole response. */
const MAX_HELD_LENGTH = 1024 * 1024
/** Characters kept before the undecided text, because assertions such as \b look one character back. */
const CONTEXT = 2

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
  #isClosed = false

  constructor(patterns: Patterns, replace: Replace) {
    this.#patterns = patterns
    this.#replace = replace
    this.#fronts = patterns.automata.map((automaton) => new MatchFront(automaton))
  }

  get heldLength(): number {
    return this.#length - this.#base
  }

  add(delta: TextDelta): void {
    const { text } = delta
    for (const front of this.#fronts) front.push(text)
    this.#pending.push({ delta, start: this.#length, end: this.#length + text.length })
    this.#text += text
    this.#length += text.length
  }

  close(): void {
    this.#isClosed = true
  }

  isHeld(delta: TextDelta): boolean {
    return this.#pending.some((pending) => pending.delta === delta)
  }

  /** Masks and releases the deltas that are decided, and drops their text. */
  settle(): void {
    const safe = this.#isClosed ? this.#length : Math.min(...this.#fronts.map((front) => front.safe))
    const first = this.#pending[0]
    if (first === undefined || first.end > safe) return
    const hits = this.#fronts.some((front) => front.hasMatch) ? this.#find() : []
    while (this.#pending[0] !== undefined && this.#pending[0].end <= safe) {
      const { delta, start, end } = this.#pending[0]
      const masked = maskPart(this.#text, this.#base, start, end, hits)
      if (masked !== undefined) this.#replace(delta, masked)
      this.#pending.shift()
    }
    this.#trim(Math.min(safe, this.#pending[0]?.start ?? safe), hits)
  }

  #find(): Hit[] {
    return this.#patterns
      .find(this.#text, this.#from - this.#base)
      .map(({ start, end, label }) => ({ start: start + this.#base, end: end + this.#base, label }))
  }

  #trim(to: number, hits: readonly Hit[]): void {
    // Search again from the start of a hit that spans the position: it may still grow, and its label was sent already.
    this.#from = hits.find(({ start, end }) => start < to && to < end)?.start ?? to
    const base = Math.max(this.#base, this.#from - CONTEXT)
    this.#text = this.#text.slice(base - this.#base)
    this.#base = base
    if (!hits.some(({ end }) => end > this.#from)) for (const front of this.#fronts) front.forget()
  }
}

/** Masks `[start, end)` of a text; a label replaces the part in which its hit starts. undefined if there is nothing to mask. */
function maskPart(text: string, base: number, start: number, end: number, hits: readonly Hit[]): string | undefined {
  let masked = ''
  let at = start
  let isMasked = false
  for (const hit of hits) {
    if (hit.end <= at || hit.start >= end) continue
    isMasked = true
    if (hit.start >= at) masked += text.slice(at - base, hit.start - base) + hit.label
    at = Math.min(hit.end, end)
  }
  return isMasked ? masked + text.slice(at - base, end - base) : undefined
}

/** Holds tool input back until it is complete, because it must be masked as JSON. Clients cannot use partial input anyway. */
class HeldInput {
  readonly #patterns: Patterns
  readonly #replace: Replace
  #deltas: TextDelta[] = []
  #length = 0
  #isClosed = false

  constructor(patterns: Patterns, replace: Replace) {
    this.#patterns = patterns
    this.#replace = replace
  }

  get heldLength(): number {
    return this.#length
  }

  add(delta: TextDelta): void {
    this.#deltas.push(delta)
    this.#length += delta.text.length
  }

  close(): void {
    this.#isClosed = true
  }

  isHeld(delta: TextDelta): boolean {
    return this.#deltas.includes(delta)
  }

  settle(): void {
    if (!this.#isClosed || this.#deltas.length === 0) return
    const text = this.#deltas.map((delta) => delta.text).join('')
    const masked = this.#patterns.maskJson(text)
    if (masked !== text) for (const [at, delta] of this.#deltas.entries()) this.#replace(delta, at === 0 ? masked : '')
    this.#deltas = []
    this.#length = 0
  }
}

/**
 * Masks a stream exactly as its complete text would be masked. Text is released once no undecided match starts in it. Events keep
 * their order. Reasoning is not masked, because its signature covers it.
 */
export class MaskingStream implements StreamGuard {
  readonly #patterns: Patterns
  readonly #onMask: () => void
  readonly #segments = new Map<string, Segment | HeldInput>()
  #queue: ClientEvent[] = []

  /** `onMask` is called whenever a text is masked. */
  constructor(patterns: Patterns, onMask: () => void) {
    this.#patterns = patterns
    this.#onMask = onMask
  }

  push(events: readonly ClientEvent[]): readonly ClientEvent[] {
    for (const event of events) {
      this.#queue.push(event)
      for (const delta of event.deltas) this.#add(delta)
      for (const name of event.closes) this.#close(name)
    }
    return this.#release()
  }

  end(): readonly ClientEvent[] {
    for (const segment of this.#segments.values()) segment.close()
    return this.#release()
  }

  #add(delta: TextDelta): void {
    if (delta.kind === 'reasoning') return
    if (delta.isWhole) {
      const masked = delta.kind === 'toolInput' ? this.#patterns.maskJson(delta.text) : this.#patterns.mask(delta.text)
      if (masked !== delta.text) this.#replace(delta, masked)
      return
    }
    let segment = this.#segments.get(delta.segment)
    if (segment === undefined) this.#segments.set(delta.segment, (segment = this.#begin(delta.kind)))
    segment.add(delta)
  }

  #begin(kind: TextDelta['kind']): Segment | HeldInput {
    const replace: Replace = (delta, text) => this.#replace(delta, text)
    return kind === 'text' ? new Segment(this.#patterns, replace) : new HeldInput(this.#patterns, replace)
  }

  #replace(delta: TextDelta, text: string): void {
    this.#onMask()
    delta.replace(text)
  }

  #close(name: string): void {
    const prefix = name.endsWith('*') ? name.slice(0, -1) : undefined
    for (const [key, segment] of this.#segments) if (prefix === undefined ? key === name : key.startsWith(prefix)) segment.close()
  }

  #release(): readonly ClientEvent[] {
    let held = 0
    for (const segment of this.#segments.values()) {
      segment.settle()
      held += segment.heldLength
    }
    if (held > MAX_HELD_LENGTH)
      throw new StreamRejection('the response cannot be checked: a pattern needs more text than the gateway holds back', 'guard_failed')
    let ready = 0
    while (this.#queue[ready] !== undefined && !this.#isHeld(this.#queue[ready])) ready++
    return this.#queue.splice(0, ready)
  }

  #isHeld(event: ClientEvent | undefined): boolean {
    return event?.deltas.some((delta) => this.#segments.get(delta.segment)?.isHeld(delta) === true) === true
  }
}
