import type { Cooperative } from '../../../runtime/cooperative.ts'
import { fileTokensOf } from '../accounting/prompt.ts'
import type { JsonObject } from '../common/types.ts'

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
  const boundary = boundaryOf(contentType)
  return boundary === undefined ? undefined : new ModelScanner(boundary, onModel)
}

/** The boundary in a content-type of multipart/form-data; undefined for others. */
export function boundaryOf(contentType: string | undefined): string | undefined {
  const match = /^multipart\/form-data\s*;(?:[^"]*;)?\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(contentType ?? '')
  const boundary = match?.[1] ?? match?.[2]
  return boundary === undefined || boundary.length > MAX_BOUNDARY_LENGTH ? undefined : boundary
}

/** What a budget reads of a form. */
export interface Form {
  /** Values of the fields that are no files. */
  readonly fields: JsonObject
  /** Estimated tokens of the files. */
  readonly fileTokens: number
}

const MAX_PARTS = 1000
const MAX_PART_HEAD_BYTES = 8192
/** Bytes that are searched in one step. */
const STEP_BYTES = 1024 * 1024

/**
 * Reads the fields and sizes of the files of a multipart body (RFC 7578). Undefined if servers could read another value than this one: a field that is
 * repeated and not a list (`name[]`), a part without an end or a name, too many parts.
 */
export function* readForm(body: Buffer, boundary: string): Cooperative<Form | undefined> {
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  const fields = new Map<string, unknown>()
  let fileTokens = 0
  // The first delimiter has no line end before it.
  let at = body.subarray(0, delimiter.length - 2).equals(delimiter.subarray(2)) ? delimiter.length - 2 : yield* endOf(body, delimiter, 0)
  for (let count = 0; at !== -1 && count < MAX_PARTS; count++) {
    if (body.toString('latin1', at, at + 2) === '--') return { fields: Object.fromEntries(fields), fileTokens }
    const end = yield* endOf(body, delimiter, at)
    if (end === -1) return undefined
    const part = body.subarray(at, end - delimiter.length)
    at = end
    const headEnd = part.subarray(0, MAX_PART_HEAD_BYTES).indexOf('\r\n\r\n')
    const head = part.toString('utf8', 0, Math.max(0, headEnd))
    const name = /^content-disposition:[^\r\n]*;[ \t]*name=(?:"([^"]*)"|([^\s;"]+))/im.exec(head)
    if (name === null) return undefined
    const key = name[1] ?? name[2] ?? ''
    const type = /^content-type:[ \t]*([^\r\n;]*)/im.exec(head)?.[1]?.trim() ?? ''
    const content = part.subarray(headEnd + 4)
    if (/;[ \t]*filename\*?=/i.test(head) || !/^(?:text\/plain)?$/i.test(type)) fileTokens += fileTokensOf(content, type)
    else if (key.endsWith('[]')) fields.set(key, [...((fields.get(key) as readonly string[] | undefined) ?? []), content.toString()])
    else if (fields.has(key)) return undefined
    else fields.set(key, content.toString())
  }
  return undefined
}

/** The position after the next delimiter; -1 if there is none. */
function* endOf(body: Buffer, delimiter: Buffer, from: number): Cooperative<number> {
  for (let at = from; at < body.length; at += STEP_BYTES) {
    const found = body.subarray(at, at + STEP_BYTES + delimiter.length - 1).indexOf(delimiter)
    if (found !== -1) return at + found + delimiter.length
    yield
  }
  return -1
}
