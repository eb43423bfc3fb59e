/** One event of a stream of server-sent events (WHATWG HTML §9.2). */
export interface SseEvent {
  /** Undefined: `message`. */
  readonly event?: string | undefined
  readonly data: string
  /** As the server sent it with this event. */
  readonly id?: string | undefined
  /** Digits only. */
  readonly retry?: string | undefined
}

/** One event may hold a whole result, images included. */
export const MAX_EVENT_CHARS = 16 * 1024 * 1024

/** Reads events out of a stream of bytes, whichever way lines end and chunks fall. */
export class SseParser {
  readonly #onEvent: (event: SseEvent) => void
  readonly #decoder = new TextDecoder()
  /** Pieces of the line that has not ended. */
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

  /** Calls back for each event that is complete. Throws when one is larger than MAX_EVENT_CHARS. */
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
      this.#takeLine(this.#line.length === 1 ? (this.#line[0] ?? '') : this.#line.join(''))
      this.#line = []
      this.#lineSize = 0
      start = end + (text[end] === '\r' && text[end + 1] === '\n' ? 2 : 1)
      if (text[end] === '\r' && end + 1 === text.length) this.#isAfterCr = true
    }
    if (start < text.length) this.#line.push(text.slice(start))
    this.#lineSize += text.length - start
    if (this.#lineSize + this.#size > MAX_EVENT_CHARS) throw new Error(`an event is larger than ${MAX_EVENT_CHARS} characters`)
  }

  #takeLine(line: string): void {
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
    // Events without data tell where to resume from, which clients of ours must learn too.
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

/** An event as it goes to a client; data of several lines gets several fields, so nothing in it can end the event. */
export function formatEvent({ event, data, id, retry }: SseEvent): string {
  let text = ''
  if (id !== undefined && !NEEDS_CARE.test(id)) text += `id: ${id}\n`
  if (retry !== undefined) text += `retry: ${retry}\n`
  // An event that only says where to resume from has no message in it, and is not to be read as one.
  if (data !== '') text += `event: ${event === undefined || event === '' || NEEDS_CARE.test(event) ? 'message' : event}\n`
  return `${text}data: ${NEEDS_CARE.test(data) ? data.replaceAll(/\r\n|\r|\n/g, '\ndata: ') : data}\n\n`
}
