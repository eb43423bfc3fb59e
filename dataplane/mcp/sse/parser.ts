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

/** Maximum length of one event, which may hold a complete result with images. */
export const MAX_EVENT_CHARS = 16 * 1024 * 1024

/** Incremental parser of event streams. Accepts all line endings and any chunking. */
export class SseParser {
  readonly #onEvent: (event: SseEvent) => void
  readonly #decoder = new TextDecoder()
  /** Pieces of the incomplete line. */
  #line: string[] = []
  #lineSize = 0
  #isAfterCr = false
  #data: string[] = []
  #size = 0
  #event: string | undefined
  #id: string | undefined
  #retry: string | undefined

  constructor(onEvent: (event: SseEvent) => void) {
    this.#onEvent = onEvent
  }

  /** Parses a chunk and calls back for each complete event. Throws if an event is longer than MAX_EVENT_CHARS. */
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
      this.#line.push(text.slice(start, end))
      this.#parseLine(this.#line.length === 1 ? (this.#line[0] ?? '') : this.#line.join(''))
      this.#line = []
      this.#lineSize = 0
      start = end + (text[end] === '\r' && text[end + 1] === '\n' ? 2 : 1)
      if (text[end] === '\r' && end + 1 === text.length) this.#isAfterCr = true
    }
    if (start < text.length) this.#line.push(text.slice(start))
    this.#lineSize += text.length - start
    if (this.#lineSize + this.#size > MAX_EVENT_CHARS) throw new Error(`an event is larger than ${MAX_EVENT_CHARS} characters`)
  }

  #parseLine(line: string): void {
    if (line === '') return this.#dispatch()
    const colon = line.indexOf(':')
    if (colon === 0) return
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'data') {
      this.#data.push(value)
      this.#size += value.length
    } else if (field === 'event') this.#event = value
    else if (field === 'id' && !value.includes('\0')) this.#id = value
    else if (field === 'retry' && /^\d+$/.test(value)) this.#retry = value
  }

  #dispatch(): void {
    const [data, event, id, retry] = [this.#data, this.#event, this.#id, this.#retry]
    this.#data = []
    this.#size = 0
    this.#event = this.#id = this.#retry = undefined
    // Events without data can carry an id to resume from, which clients need too.
    if (data.length > 0 || id !== undefined || retry !== undefined)
      this.#onEvent({ event, data: data.length === 1 ? (data[0] ?? '') : data.join('\n'), id, retry })
  }
}

function nextLineEnd(text: string, from: number): number {
  const lf = text.indexOf('\n', from)
  const cr = text.indexOf('\r', from)
  return lf === -1 ? cr : cr === -1 ? lf : Math.min(lf, cr)
}

const NEEDS_CARE = /[\r\n]/

/** Serializes an event. Each line of the data becomes a field of its own, so that data cannot end the event. */
export function formatEvent({ event, data, id, retry }: SseEvent): string {
  let text = ''
  if (id !== undefined && !NEEDS_CARE.test(id)) text += `id: ${id}\n`
  if (retry !== undefined) text += `retry: ${retry}\n`
  // An event with an id only contains no message and must not be read as one.
  if (data !== '') text += `event: ${event === undefined || event === '' || NEEDS_CARE.test(event) ? 'message' : event}\n`
  return `${text}data: ${NEEDS_CARE.test(data) ? data.replaceAll(/\r\n|\r|\n/g, '\ndata: ') : data}\n\n`
}
