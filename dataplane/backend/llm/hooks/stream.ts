import type { EventInput, EventOutput, RequestHooks } from '../../../request/exchange/plugin-hooks.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { ClientEvent, TextDelta } from '../common/types.ts'
import { StreamRejection, type StreamGuard } from '../guards/index.ts'
import { typeOf } from './answer.ts'
import { listIn, objectIn } from './parts.ts'

/** Most text of a response, and most of its events that wait for the next piece of a text. */
const MAX_LENGTH = 4 * 1024 * 1024
/** An event without text, for the limit. */
const EVENT_LENGTH = 256

type Events = readonly ClientEvent[]
type Piece = EventInput['deltas'][number]

/** One text of a response. */
interface Segment {
  readonly type: Piece['type']
  /** An event had all of the text, without pieces before. */
  readonly isWhole: boolean
  /** What the provider sent, and what the client receives instead. */
  readonly original: string[]
  readonly sent: string[]
  /** The last piece, while its event waits: text may be appended. */
  last: TextDelta | undefined
  /** Signatures that came while text was held back. */
  readonly copies: TextDelta[]
  isClosed: boolean
}

/** A change of events, in their order. With a piece, the hook receives it and `apply` its text; otherwise `text` is empty. */
interface Step {
  readonly piece?: Piece
  /** False: its text was sent already, and none can be added. */
  readonly isAppendable?: boolean
  readonly apply: (text: string) => void
}

/** Runs `llm.event` of one plugin on a stream. Events keep their order. */
export class EventHooks implements StreamGuard {
  readonly #hooks: RequestHooks
  readonly #exchange: Exchange
  readonly #segments = new Map<string, Segment>()
  #rests: Readonly<Record<string, string>> = {}
  #queue: ClientEvent[] = []
  #length = 0

  constructor(hooks: RequestHooks, exchange: Exchange) {
    this.#hooks = hooks
    this.#exchange = exchange
  }

  push(events: Events): Events | Promise<Events> {
    this.#queue.push(...events)
    return this.#run(events.flatMap((event) => this.#read(event)))
  }

  end(): Events | Promise<Events> {
    return this.#run(this.#close('*'))
  }

  #run(steps: readonly Step[]): Events | Promise<Events> {
    if (this.#length > MAX_LENGTH) throw new StreamRejection('the response is too long for a plugin', 'plugin_failed')
    const pieces = steps.flatMap(({ piece }) => piece ?? [])
    return pieces.length === 0 ? this.#apply(steps, []) : this.#call(steps, pieces)
  }

  async #call(steps: readonly Step[], deltas: readonly Piece[]): Promise<Events> {
    const input: EventInput = { deltas, rests: this.#rests }
    const outcome = await endOnFailure(
      this.#hooks.run('llm.event', input, (output) => readOutput(output, steps)),
      this.#exchange,
    )
    if (outcome !== undefined && 'value' in outcome) {
      this.#rests = outcome.value.rests
      return this.#apply(steps, outcome.value.texts)
    }
    return this.#apply(steps, this.#unchanged(deltas))
  }

  /** The texts if the hook failed and the stream goes on: those that were held back come first. */
  #unchanged(deltas: readonly Piece[]): readonly string[] {
    const rests = new Map(Object.entries(this.#rests))
    this.#rests = {}
    const texts = deltas.map(({ segment, text }) => {
      const rest = rests.get(segment) ?? ''
      rests.delete(segment)
      return rest + text
    })
    for (const [name, rest] of rests) this.#append(this.#segments.get(name), rest)
    return texts
  }

  #apply(steps: readonly Step[], texts: readonly string[]): Events {
    let nth = 0
    for (const { piece, apply } of steps) apply(piece === undefined ? '' : (texts[nth++] ?? ''))
    return this.#release()
  }

  /** The pieces in an event, the ends of texts after them, and then the texts that are repeated. */
  #read({ deltas, closes }: ClientEvent): Step[] {
    this.#length += EVENT_LENGTH
    const steps: Step[] = []
    for (const delta of deltas) if (!delta.isWhole && delta.kind !== 'copy') steps.push(this.#piece(delta))
    for (const name of closes) steps.push(...this.#close(name))
    for (const delta of deltas) {
      if (delta.isWhole) steps.push(this.#whole(delta))
      else if (delta.kind === 'copy') steps.push({ apply: () => this.#copy(delta) })
    }
    return steps
  }

  #piece(delta: TextDelta): Step {
    const { segment: name, text } = delta
    const known = this.#segments.get(name)
    const segment = known === undefined || known.isWhole ? this.#open(delta, false) : known
    segment.last = delta
    segment.isClosed = false
    segment.original.push(text)
    this.#length += text.length
    return {
      piece: { type: segment.type, segment: name, isLast: false, text },
      apply: (changed) => {
        segment.sent.push(changed)
        if (changed !== text) delta.replace(changed)
      },
    }
  }

  #open(delta: TextDelta, isWhole: boolean): Segment {
    const segment = create(delta, isWhole)
    this.#segments.set(delta.segment, segment)
    return segment
  }

  /** Ends texts; a trailing `*` matches a prefix. */
  #close(pattern: string): Step[] {
    const prefix = pattern.endsWith('*') ? pattern.slice(0, -1) : undefined
    const steps: Step[] = []
    for (const [name, segment] of this.#segments) {
      if (segment.isClosed || !(prefix === undefined ? name === pattern : name.startsWith(prefix))) continue
      segment.isClosed = true
      steps.push({
        piece: { type: segment.type, segment: name, isLast: true, text: '' },
        isAppendable: segment.last !== undefined,
        apply: (text) => {
          this.#append(segment, text)
          if (isChanged(segment)) for (const copy of segment.copies) copy.replace('')
        },
      })
    }
    return steps
  }

  #append(segment: Segment | undefined, text: string): void {
    if (segment === undefined || text === '') return
    segment.sent.push(text)
    segment.last?.replace(segment.last.text + text)
  }

  /** An event that repeats a text, or has all of one without pieces before. */
  #whole(delta: TextDelta): Step {
    const { segment: name, text } = delta
    const known = this.#segments.get(name)
    if (known?.original.join('') === text) return { apply: () => this.#repeat(delta, known) }
    // A text that differs from its pieces is one of its own.
    const segment = known === undefined || known.isWhole ? this.#open(delta, true) : create(delta, true)
    segment.isClosed = true
    segment.original.push(text)
    this.#length += text.length
    return {
      piece: { type: segment.type, segment: name, isLast: true, text },
      apply: (changed) => {
        segment.sent.push(changed)
        this.#repeat(delta, segment)
      },
    }
  }

  #repeat(delta: TextDelta, segment: Segment): void {
    const text = segment.sent.join('') + (segment.isClosed ? '' : (this.#rests[delta.segment] ?? ''))
    if (text !== delta.text) delta.replace(text)
  }

  #copy(delta: TextDelta): void {
    const segment = this.#segments.get(delta.segment)
    if (segment === undefined) return
    if (Object.hasOwn(this.#rests, delta.segment)) segment.copies.push(delta)
    else if (isChanged(segment)) delta.replace('')
  }

  /** The events before the first one that may still change. */
  #release(): Events {
    const held = new Set(Object.keys(this.#rests).map((name) => this.#segments.get(name)?.last))
    let ready = 0
    for (const { deltas } of this.#queue) {
      if (deltas.some((delta) => held.has(delta))) break
      ready++
      for (const delta of deltas) {
        const segment = this.#segments.get(delta.segment)
        if (segment?.last === delta) segment.last = undefined
      }
    }
    return this.#queue.splice(0, ready)
  }
}

const create = ({ kind }: TextDelta, isWhole: boolean): Segment => {
  return { type: typeOf(kind), isWhole, original: [], sent: [], last: undefined, copies: [], isClosed: false }
}

const isChanged = ({ original, sent }: Segment): boolean => original.join('') !== sent.join('')

function readOutput(output: unknown, steps: readonly Step[]): EventOutput {
  const { texts, rests } = objectIn(output, 'the result')
  const all = listIn(texts, 'texts')
  let nth = 0
  for (const { piece, isAppendable = true } of steps) {
    if (piece === undefined) continue
    const text = all[nth++]
    if (typeof text !== 'string') throw new TypeError('a text is no string')
    if (!isAppendable && text !== '') throw new TypeError('text was added with isLast after its last piece was sent; hold a rest back')
  }
  return { texts: all as readonly string[], rests: objectIn(rests, 'rests') as Readonly<Record<string, string>> }
}

/** Ends the stream with an error event if a hook fails. */
export async function endOnFailure<T>(work: Promise<T>, exchange: Exchange): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof ProxyError)) throw error
    exchange.error ??= error
    throw new StreamRejection(error.row.text, 'plugin_failed')
  }
}
