import { FormatError } from '../common/types.ts'
import { ProxyError } from '../../../request/exchange/error.ts'

/** Characters of the name of a model. */
const MAX_MODEL_BYTES = 256
const MAX_HEAD_BYTES = 8192
const LINE_END = '\r\n'
/** A part has one name, and a file name behind it. Servers differ in what they read of any other form. */
const DISPOSITION = /^content-disposition:[ \t]*form-data;[ \t]*name=(?:"([^"\\]*)"|([\w.[\]-]+))(?:;[ \t]*filename\*?=(?:"[^"]*"|[^";]*))*$/i

type State = 'start' | 'delimiter' | 'head' | 'model' | 'content' | 'end'

/**
 * Finds the field `model` of a form (RFC 7578) as it streams by, and rejects forms in which a server could find another one: repeated fields, delimiters with
 * other line ends, heads that are read in several ways. Keeps at most 8 KiB of the body.
 *
 * @example
 * const reader = new FormModels('b', (model) => keys.check(model))
 * reader.push(chunk) // throws the error of the check, or a FormatError
 */
export class FormModels {
  readonly #delimiter: Buffer
  readonly #onModel: (model: string) => void
  #kept: Buffer = Buffer.alloc(0)
  #state: State = 'start'
  #hasModel = false

  constructor(boundary: string, onModel: (model: string) => void) {
    this.#delimiter = Buffer.from(`--${boundary}`, 'latin1')
    this.#onModel = onModel
  }

  /** Throws what the check of a model throws, or a FormatError for a form that is read in several ways. */
  push(chunk: Buffer): void {
    let rest = this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk])
    for (let next = this.#read(rest); next !== undefined; next = this.#read(rest)) rest = next
    // A copy, so that the chunk is not held.
    this.#kept = Buffer.from(this.#state === 'content' ? rest.subarray(-this.#delimiter.length - 1) : rest)
  }

  /** Throws a FormatError for a form that is cut off. */
  end(): void {
    if (this.#state !== 'end') throw broken('it ends without its last delimiter')
  }

  /** The bytes after the next piece of the form; undefined: it is not complete. */
  #read(bytes: Buffer): Buffer | undefined {
    const { length } = this.#delimiter
    switch (this.#state) {
      case 'start':
        if (bytes.length < length) return undefined
        if (!bytes.subarray(0, length).equals(this.#delimiter)) throw broken('it does not begin with its boundary')
        return this.#go('delimiter', bytes.subarray(length))
      case 'delimiter': {
        if (bytes.length < 2) return undefined
        const after = bytes.toString('latin1', 0, 2)
        if (after !== LINE_END && after !== '--') throw broken('a delimiter does not end its line')
        return this.#go(after === '--' ? 'end' : 'head', bytes.subarray(2))
      }
      case 'head': {
        const end = bytes.indexOf(`${LINE_END}${LINE_END}`)
        if (end > MAX_HEAD_BYTES || (end === -1 && bytes.length > MAX_HEAD_BYTES)) throw broken(`the head of a part has more than ${MAX_HEAD_BYTES} bytes`)
        if (end === -1) return undefined
        const isModel = isModelPart(bytes.toString('utf8', 0, end))
        if (isModel && this.#hasModel) throw broken('the field "model" is repeated; send it once')
        // The line end of an empty content belongs to the next delimiter.
        return this.#go(isModel ? 'model' : 'content', bytes.subarray(end + 2))
      }
      case 'model': {
        const end = this.#find(bytes)
        if (end === -1 && bytes.length <= MAX_MODEL_BYTES + length + 4) return undefined
        const model = bytes.toString('utf8', 2, end - 2)
        if (end === -1 || model === '' || Buffer.byteLength(model) > MAX_MODEL_BYTES) throw broken(`the field "model" needs 1 to ${MAX_MODEL_BYTES} bytes`)
        this.#hasModel = true
        this.#onModel(model)
        return this.#go('delimiter', bytes.subarray(end + length))
      }
      case 'content': {
        const end = this.#find(bytes)
        return end === -1 ? undefined : this.#go('delimiter', bytes.subarray(end + length))
      }
      case 'end':
        if (bytes.length > 0 && !/^(?:\r|\r\n)$/.test(bytes.toString('latin1', 0, 3))) throw broken('bytes follow its last delimiter')
        return undefined
    }
  }

  #go(state: State, rest: Buffer): Buffer {
    this.#state = state
    return rest
  }

  /** Position of the next delimiter; -1: none yet. Some servers accept one after LF alone, or in a line. */
  #find(bytes: Buffer): number {
    const at = bytes.indexOf(this.#delimiter)
    if (at !== -1 && bytes.toString('latin1', Math.max(0, at - 2), at) !== LINE_END) throw broken('its boundary is not at the beginning of a line')
    return at
  }
}

/** Whether a part is the field `model`. Throws a FormatError for a head that servers read differently. */
function isModelPart(head: string): boolean {
  let name: string | undefined
  for (const line of head.split(LINE_END)) {
    // oxlint-disable-next-line no-control-regex -- the pattern finds control characters
    if (/^[ \t]|[\0-\x08\n-\x1f]/.test(line)) throw broken('a line of the head of a part is folded or has a control character')
    if (/^content-transfer-encoding\b/i.test(line)) throw broken('a part has a Content-Transfer-Encoding; send its bytes')
    if (!/^content-disposition\b/i.test(line)) continue
    const found = DISPOSITION.exec(line)
    if (found === null || name !== undefined) throw broken('a part needs one Content-Disposition: form-data; name="..."')
    name = found[1] ?? found[2] ?? ''
  }
  if (name === undefined) throw broken('a part has no Content-Disposition')
  if (name === 'model') return true
  if (/^model(?:\W|$)/i.test(name.trim())) throw broken(`the field ${JSON.stringify(name.slice(0, 64))} is not "model"; rename it`)
  return false
}

/**
 * The boundary of a form whose model is checked. Undefined: the body is no form. Throws a FormatError for one that servers read differently, and a ProxyError
 * for a content coding.
 */
export function boundaryOfChecked(type: string, coding: string | undefined): string | undefined {
  if (/^\s*application\/x-www-form-urlencoded\b/i.test(type)) throw new FormatError('invalid', 'failed to parse request: send the form as multipart/form-data')
  if (!/^\s*multipart\//i.test(type)) return undefined
  if (coding !== undefined && !/^identity$/i.test(coding.trim()))
    throw new ProxyError('LLM_REQUEST_ENCODING', { detail: 'the model of a form cannot be checked with a content-encoding; send it without' })
  const found = /^multipart\/form-data;[ \t]*boundary=(?:"([\w'()+,./:=? -]{1,70})"|([\w'()+./:=?-]{1,70}))[ \t]*(?:;[ \t]*charset=[\w"-]+)?$/i.exec(
    type.trim(),
  )
  const boundary = found?.[1] ?? found?.[2]
  if (boundary === undefined) throw broken('its content-type needs multipart/form-data and one boundary of 1 to 70 characters')
  return boundary
}

const broken = (problem: string): FormatError => new FormatError('invalid', `failed to parse request: the form is not valid: ${problem}`)
