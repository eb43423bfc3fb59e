/** Bytes of a part that are read: its head and the value of a short field. */
const MAX_PART_BYTES = 1024
/** RFC 2046 §5.1.1. */
const MAX_BOUNDARY_LENGTH = 70

/**
 * Finds the form field `model` in a multipart body (RFC 7578) as it streams by. Keeps at most about 1 KiB of the body.
 *
 * @example
 * const scanner = createModelScanner('multipart/form-data; boundary=b', (model) => console.log(model))
 * scanner?.push(Buffer.from('--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--b--'))
 */
export class ModelScanner {
  readonly #delimiter: Buffer
  readonly #onModel: (model: string) => void
  /** The end of the previous chunks, where a delimiter may have begun, or the part whose beginning is read. */
  #kept: Buffer
  #isInPart = false
  #isDone = false

  constructor(boundary: string, onModel: (model: string) => void) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
    this.#onModel = onModel
    // The first delimiter has no line end before it.
    this.#kept = Buffer.from('\r\n')
  }

  push(chunk: Buffer): void {
    if (this.#isDone) return
    let rest = this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk])
    for (;;) {
      const at = rest.indexOf(this.#delimiter)
      if (this.#isInPart) {
        const end = at === -1 ? rest.length : at
        if (at === -1 && end < MAX_PART_BYTES) return this.#keep(rest)
        if (at !== -1 && at <= MAX_PART_BYTES) this.#read(rest.toString('utf8', 0, at))
        this.#isInPart = false
      }
      if (this.#isDone) return this.#keep(Buffer.alloc(0))
      if (at === -1) return this.#keep(rest.subarray(-this.#delimiter.length))
      rest = rest.subarray(at + this.#delimiter.length)
      this.#isInPart = true
    }
  }

  /** Copies, so that the chunk is not held. */
  #keep(bytes: Buffer): void {
    this.#kept = Buffer.from(bytes)
  }

  #read(part: string): void {
    const headEnd = part.indexOf('\r\n\r\n')
    if (headEnd === -1) return
    const value = part.slice(headEnd + 4)
    const head = part.slice(0, headEnd).split('\r\n')
    const disposition = head.find((line) => /^content-disposition:/i.test(line)) ?? ''
    if (value === '' || /[\r\n]/.test(value) || !/;\s*name="?model"?\s*(?:;|$)/i.test(disposition)) return
    this.#isDone = true
    this.#onModel(value)
  }
}

/** A scanner for a content-type of multipart/form-data; undefined for others. */
export function createModelScanner(contentType: string | undefined, onModel: (model: string) => void): ModelScanner | undefined {
  const match = /^multipart\/form-data\s*;(?:[^"]*;)?\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(contentType ?? '')
  const boundary = match?.[1] ?? match?.[2]
  return boundary === undefined || boundary.length > MAX_BOUNDARY_LENGTH ? undefined : new ModelScanner(boundary, onModel)
}
