/** The bytes of one server-sent event, including its blank line. */
export interface SseEvent {
  readonly raw: Buffer
}

interface SseFields {
  readonly name: string | undefined
  /** undefined if the event has no data line; clients ignore such events. */
  readonly data: string | undefined
}

const LF = 0x0a
const CR = 0x0d

/**
 * Splits bytes into server-sent events, wherever chunks end. Lines end with LF, CRLF or CR. Copies bytes only of events that span chunks.
 *
 * @example
 * const scanner = new SseScanner()
 * scanner.push(Buffer.from('data: a\n\ndata: b')) // the event `data: a`
 * scanner.end() // the event `data: b`
 */
export class SseScanner {
  /** Chunks of the incomplete event. */
  #parts: Buffer[] = []
  #size = 0
  /** Length of the current line. */
  #line = 0
  #lastByte = 0
  /** A CR without LF was received, so that every CR ends a line. Until then only LF is searched, which is faster. */
  #isCr = false

  /** Bytes of the incomplete event. */
  get pending(): number {
    return this.#size
  }

  /** Whether all bytes so far are complete events, whose lines end with LF or CRLF. */
  get isAtEventStart(): boolean {
    return this.#size === 0 && !this.#isCr
  }

  push(chunk: Buffer): SseEvent[] {
    if (this.#isCr) return this.#pushLines(chunk)
    if (this.#hasBareCr(chunk)) return this.#startLines(chunk)
    const events: SseEvent[] = []
    let start = 0
    let at = 0
    for (;;) {
      const lf = chunk.indexOf(LF, at)
      if (lf === -1) break
      const length = this.#line + lf - at
      const before = lf > 0 ? chunk[lf - 1] : this.#lastByte
      if (length === 0 || (length === 1 && before === CR)) {
        events.push({ raw: this.#take(chunk.subarray(start, lf + 1)) })
        start = lf + 1
      }
      this.#line = 0
      at = lf + 1
    }
    this.#line += chunk.length - at
    if (start < chunk.length) {
      this.#parts.push(chunk.subarray(start))
      this.#size += chunk.length - start
    }
    this.#lastByte = chunk.at(-1) ?? this.#lastByte
    return events
  }

  /** Whether a CR before the end of the chunk, or at the end of the previous one, is not followed by LF. */
  #hasBareCr(chunk: Buffer): boolean {
    if (this.#lastByte === CR && chunk.length > 0 && chunk[0] !== LF) return true
    for (let at = chunk.indexOf(CR); at !== -1 && at + 1 < chunk.length; at = chunk.indexOf(CR, at + 2)) if (chunk[at + 1] !== LF) return true
    return false
  }

  /** Reads the incomplete event again, now with CR as a line end. */
  #startLines(chunk: Buffer): SseEvent[] {
    this.#isCr = true
    const bytes = Buffer.concat([...this.#parts, chunk])
    this.#parts = []
    this.#size = 0
    this.#line = 0
    return this.#pushLines(bytes)
  }

  /** As `push`, with all three line ends. The LF of a CRLF that is split across chunks is returned as an event without data. */
  #pushLines(chunk: Buffer): SseEvent[] {
    const events: SseEvent[] = []
    let start = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]
      if (byte !== CR && byte !== LF) {
        this.#line++
        continue
      }
      if (byte === CR && chunk[at + 1] === LF) at++
      if (this.#line === 0) {
        events.push({ raw: this.#take(chunk.subarray(start, at + 1)) })
        start = at + 1
      }
      this.#line = 0
    }
    if (start < chunk.length) {
      this.#parts.push(chunk.subarray(start))
      this.#size += chunk.length - start
    }
    return events
  }

  /** The last event of a body without final blank line; adds the missing line ends. */
  end(): SseEvent | undefined {
    if (this.#size === 0) return undefined
    const raw = this.#take(Buffer.from('\n\n'))
    return parseFields(raw).data === undefined ? undefined : { raw }
  }

  #take(tail: Buffer): Buffer {
    if (this.#size === 0) return tail
    const raw = Buffer.concat([...this.#parts, tail])
    this.#parts = []
    this.#size = 0
    return raw
  }
}

/** Parses the fields of one event (WHATWG HTML §9.2.6). Here CR alone ends a line too, as it does for clients. */
export function parseFields(raw: Buffer): SseFields {
  const text = raw.toString()
  const first = text.indexOf('\n')
  // Fast path: nearly every event is a single data line.
  if (text.startsWith('data: ') && first >= text.length - 2 && !text.includes('\r')) return { name: undefined, data: text.slice(6, first) }
  let name: string | undefined
  let data: string | undefined
  for (const line of (text.startsWith('\ufeff') ? text.slice(1) : text).split(/\r\n|\r|\n/)) {
    const colon = line.indexOf(':')
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'data') data = data === undefined ? value : `${data}\n${value}`
    else if (field === 'event') name = value
  }
  return { name: name === '' ? undefined : name, data }
}

/** Prints an event. `data` must not contain line ends. */
export function printEvent(name: string | undefined, data: string): string {
  return name === undefined ? `data: ${data}\n\n` : `event: ${name}\ndata: ${data}\n\n`
}
