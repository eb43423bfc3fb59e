/** One server-sent event as it came, up to and including its blank line. */
export interface SseEvent {
  readonly raw: Buffer
}

interface SseFields {
  readonly name: string | undefined
  /** undefined: the event has no data line, so no client dispatches it. */
  readonly data: string | undefined
}

const LF = 0x0a
const CR = 0x0d

/** Cuts bytes into server-sent events, wherever they are split. Lines end with LF or CRLF. Bytes of an event are not copied unless chunks split it. */
export class SseScanner {
  /** Chunks of an event that has not ended. */
  #parts: Buffer[] = []
  #size = 0
  /** Bytes in the line so far. */
  #line = 0
  #lastByte = 0

  /** Bytes of the event that has not ended. */
  get pending(): number {
    return this.#size
  }

  push(chunk: Buffer): SseEvent[] {
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

  /** The last event of a body that ends without a blank line; its missing line ends are added. */
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

/** Reads the fields of one event (WHATWG HTML §9.2.6). CR alone ends a line here, as it does for clients. */
export function parseFields(raw: Buffer): SseFields {
  const text = raw.toString()
  const first = text.indexOf('\n')
  // Nearly every event of an LLM is one data line.
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

/** Writes an event; `data` has no line ends (JSON has none). */
export function printEvent(name: string | undefined, data: string): string {
  return name === undefined ? `data: ${data}\n\n` : `event: ${name}\ndata: ${data}\n\n`
}
