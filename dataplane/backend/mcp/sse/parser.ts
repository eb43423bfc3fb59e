/** One event of a stream of server-sent events (WHATWG HTML §9.2). */
export interface SseEvent {
  /** Event type; undefined means `message`. */
  readonly event?: string | undefined
  readonly data: string
  /** The id that the server sent with this event. */
  readonly id?: string | undefined
  /** Reconnection time in milliseconds, digits only. */
  readonly retry?: string | undefined
}

/** Default limit of one event, which may hold a complete result with images. */
export const MAX_EVENT_CHARS = 16 * 1024 * 1024

/** A part of an event that is longer than the limit. `start` is first, `end` is last; the texts of all `data` parts make up the data. */
export type LargePart =
  | ({ readonly kind: 'start' } & Omit<SseEvent, 'data'>)
  | { readonly kind: 'data'; readonly text: string }
  /** `id`, if the server sent it after data. */
  | { readonly kind: 'end'; readonly id: string | undefined }

/** Receives parsed events. */
export interface ParserSink {
  onEvent(event: SseEvent): void
  /** Receives events above the limit in parts as they arrive. */
  onPart(part: LargePart): void
}

/** Incremental parser of event streams. Accepts all line endings and any chunking. Buffers at most `limit` characters plus one chunk. */
export class SseParser {
  readonly #sink: ParserSink
  readonly #limit: number
  readonly #decoder = new TextDecoder()
  /** Pieces of the incomplete line. */
  #line: string[] = []
  #lineSize = 0
  /** What happens to the rest of the incomplete line: it is buffered, passed on as data of a large event, or dropped. */
  #rest: 'buffer' | 'pass' | 'drop' = 'buffer'
  #isAfterCr = false
  #data: string[] = []
  #size = 0
  #event: string | undefined
  #id: string | undefined
  #retry: string | undefined
  /** An event above the limit is in progress. */
  #isLarge = false

  constructor(sink: ParserSink, limit = MAX_EVENT_CHARS) {
    this.#sink = sink
    this.#limit = limit
  }

  /** Number of characters that are buffered. */
  get buffered(): number {
    return this.#lineSize + this.#size
  }

  /** Parses a chunk and calls back for each complete event. */
  push(chunk: Buffer): void {
    let text = this.#decoder.decode(chunk, { stream: true })
    if (this.#isAfterCr && text !== '') {
      if (text.startsWith('\n')) text = text.slice(1)
      this.#isAfterCr = false
    }
    let start = 0
    const hasCr = text.includes('\r')
    for (;;) {
      const end = hasCr ? nextLineEnd(text, start) : text.indexOf('\n', start)
      if (end === -1) break
      this.#endLine(text.slice(start, end))
      start = end + (text[end] === '\r' && text[end + 1] === '\n' ? 2 : 1)
      if (text[end] === '\r' && end + 1 === text.length) this.#isAfterCr = true
    }
    this.#addToLine(text.slice(start))
    if (this.#lineSize + this.#size > this.#limit || (this.#isLarge && this.#lineSize > 0)) this.#passBuffered()
  }

  #addToLine(text: string): void {
    if (text === '' || this.#rest === 'drop') return
    if (this.#rest === 'pass') return this.#sink.onPart({ kind: 'data', text })
    this.#line.push(text)
    this.#lineSize += text.length
  }

  #endLine(text: string): void {
    const rest = this.#rest
    if (rest !== 'buffer') {
      this.#addToLine(text)
      this.#rest = 'buffer'
      return
    }
    const line = this.#line.length === 0 ? text : this.#line.join('') + text
    this.#line = []
    this.#lineSize = 0
    this.#parseLine(line)
  }

  #parseLine(line: string): void {
    if (line === '') return this.#dispatch()
    const { field, value } = splitLine(line)
    if (field === 'data') this.#addData(value)
    else if (field === 'event') this.#event = value
    else if (field === 'id' && !value.includes('\0')) this.#id = value
    else if (field === 'retry' && /^\d+$/.test(value)) this.#retry = value
  }

  #addData(value: string): void {
    if (this.#isLarge) return this.#sink.onPart({ kind: 'data', text: `\n${value}` })
    this.#data.push(value)
    this.#size += value.length
  }

  /** Hands over what is buffered of a large event. A line that is too long and no data, such as a comment, is dropped. */
  #passBuffered(): void {
    if (this.#line.length > 1) this.#line = [this.#line.join('')]
    const line = this.#line[0] ?? ''
    const isData = line.startsWith('data:')
    // The space after the colon is not part of the value, so wait for the character there.
    const isKnown = line.length > 'data:'.length
    if (!this.#isLarge && (this.#size > 0 || isData)) {
      this.#isLarge = true
      this.#sink.onPart({ kind: 'start', event: this.#event, id: this.#id, retry: this.#retry })
      this.#id = undefined
      if (this.#data.length > 0) this.#sink.onPart({ kind: 'data', text: this.#data.join('\n') })
      if (isData && isKnown) this.#sink.onPart({ kind: 'data', text: `${this.#data.length > 0 ? '\n' : ''}${splitLine(line).value}` })
      this.#data = []
      this.#size = 0
    } else if (isData && isKnown) this.#sink.onPart({ kind: 'data', text: `\n${splitLine(line).value}` })
    if (isData && isKnown) this.#rest = 'pass'
    else if (this.#lineSize > this.#limit) this.#rest = 'drop'
    else return
    this.#line = []
    this.#lineSize = 0
  }

  #dispatch(): void {
    const [data, event, id, retry, isLarge] = [this.#data, this.#event, this.#id, this.#retry, this.#isLarge]
    this.#data = []
    this.#size = 0
    this.#event = this.#id = this.#retry = undefined
    this.#isLarge = false
    if (isLarge) return this.#sink.onPart({ kind: 'end', id })
    // Events without data can carry an id to resume from, which clients need too.
    if (data.length > 0 || id !== undefined || retry !== undefined)
      this.#sink.onEvent({ event, data: data.length === 1 ? (data[0] ?? '') : data.join('\n'), id, retry })
  }
}

/** Field and value of a line; a comment has the field ''. */
function splitLine(line: string): { field: string; value: string } {
  const colon = line.indexOf(':')
  if (colon === -1) return { field: line, value: '' }
  return { field: line.slice(0, colon), value: line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1) }
}

function nextLineEnd(text: string, from: number): number {
  const lf = text.indexOf('\n', from)
  const cr = text.indexOf('\r', from)
  return lf === -1 ? cr : cr === -1 ? lf : Math.min(lf, cr)
}

const NEEDS_CARE = /[\r\n]/
const inLines = (data: string): string => (NEEDS_CARE.test(data) ? data.replaceAll(/\r\n|\r|\n/g, '\ndata: ') : data)

/** Serializes an event. Each line of the data becomes a field of its own, so that data cannot end the event. */
export function formatEvent({ data, ...head }: SseEvent): string {
  // An event with an id only contains no message and must not be read as one.
  const isNamed = data !== '' || (head.event !== undefined && head.event !== 'message')
  return `${formatHead(head, isNamed)}data: ${inLines(data)}\n\n`
}

/** Serializes a part of a large event. */
export function formatPart(part: LargePart): string {
  switch (part.kind) {
    case 'start':
      return `${formatHead(part, true)}data: `
    case 'data':
      return inLines(part.text)
    case 'end':
      return `\n${formatHead({ id: part.id }, false)}\n`
  }
}

function formatHead({ event, id, retry }: Omit<SseEvent, 'data'>, isNamed: boolean): string {
  let text = ''
  if (id !== undefined && !NEEDS_CARE.test(id)) text += `id: ${id}\n`
  if (retry !== undefined) text += `retry: ${retry}\n`
  if (isNamed) text += `event: ${event === undefined || event === '' || NEEDS_CARE.test(event) ? 'message' : event}\n`
  return text
}
