/** A source has at most as many bytes as a ConfigMap holds. */
export const MAX_SOURCE_BYTES = 1_048_576
/** Bytes of a layer after decompression. */
const MAX_LAYER_BYTES = 512 * 1024 * 1024
/** Bytes of a record with long names. */
const MAX_NAMES_BYTES = 64 * 1024
const BLOCK = 512

/** What a layer says about a path: its content, or that a layer below has nothing there (`removed`). */
export type Found = { readonly bytes: Buffer } | 'removed' | undefined

type Entry = 'ignored' | 'file' | 'names' | 'longName'

/**
 * Finds one file in a layer of an image: a tar archive (POSIX pax and GNU names) that arrives in pieces. Keeps nothing but that file in memory. Links are not followed.
 * `push` throws an Error if the archive is broken or exceeds a limit, or if the path is no file.
 */
export class LayerFile {
  readonly #path: string
  /** Names of whiteouts that remove the path from layers below (OCI image layer specification). */
  readonly #whiteouts: ReadonlySet<string>
  #found: Found
  #rest: Buffer = Buffer.alloc(0)
  #entry: Entry = 'ignored'
  /** Bytes of the content of the entry that have not arrived, without padding. */
  #content = 0
  #padding = 0
  #parts: Buffer[] = []
  #longName: string | undefined
  #longSize: number | undefined
  #total = 0
  #isOver = false

  /** @param path without a leading slash */
  constructor(path: string) {
    this.#path = path
    const parts = path.split('/')
    const parents = parts.map((_, index) => parts.slice(0, index))
    this.#whiteouts = new Set(parents.flatMap((parent, index) => [[...parent, '.wh..wh..opq'].join('/'), [...parent, `.wh.${parts[index]}`].join('/')]))
  }

  /** The result, when all pieces were pushed. */
  get found(): Found {
    if (!this.#isOver && (this.#content > 0 || this.#rest.length > 0)) throw new Error('a layer ends within an entry')
    return this.#found
  }

  push(piece: Buffer): void {
    this.#total += piece.length
    if (this.#total > MAX_LAYER_BYTES) throw new Error(`a layer has more than ${MAX_LAYER_BYTES / 1024 / 1024} MiB`)
    let data = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece])
    while (!this.#isOver) {
      if (this.#content > 0) {
        const taken = data.subarray(0, this.#content)
        if (this.#entry !== 'ignored') this.#parts.push(taken)
        this.#content -= taken.length
        data = data.subarray(taken.length)
        if (this.#content > 0) break
        this.#endEntry()
      }
      if (this.#padding > 0) {
        const skipped = Math.min(this.#padding, data.length)
        this.#padding -= skipped
        data = data.subarray(skipped)
        if (this.#padding > 0) break
      }
      if (data.length < BLOCK) break
      this.#startEntry(data.subarray(0, BLOCK))
      data = data.subarray(BLOCK)
    }
    // A copy: the piece would be kept as a whole.
    this.#rest = Buffer.from(this.#isOver ? [] : data)
  }

  #startEntry(header: Buffer): void {
    if (header.every((byte) => byte === 0)) {
      this.#isOver = true
      return
    }
    checkSum(header)
    const type = String.fromCharCode(header[156] ?? 0)
    const isSpecial = 'xgLK'.includes(type)
    const size = (isSpecial ? undefined : this.#longSize) ?? readNumber(header.subarray(124, 136))
    const prefix = header.toString('latin1', 257, 262) === 'ustar' ? readText(header.subarray(345, 500)) : ''
    const short = readText(header.subarray(0, 100))
    const name = clean(this.#longName ?? (prefix === '' ? short : `${prefix}/${short}`))
    this.#entry = type === 'x' ? 'names' : type === 'L' ? 'longName' : 'ignored'
    if (this.#entry !== 'ignored' && size > MAX_NAMES_BYTES) throw new Error(`a layer has a name of ${size} bytes`)
    if (!isSpecial) {
      this.#longName = undefined
      this.#longSize = undefined
      if (this.#whiteouts.has(name)) this.#found ??= 'removed'
      if (name === this.#path) this.#startFile(type, size)
    }
    this.#parts = []
    // Only files have content.
    this.#content = isSpecial || '07\0'.includes(type) ? size : 0
    this.#padding = (BLOCK - (this.#content % BLOCK)) % BLOCK
    if (this.#content === 0) this.#endEntry()
  }

  #startFile(type: string, size: number): void {
    if (!'07\0'.includes(type))
      throw new Error(`${this.#path} is ${type === '5' ? 'a directory' : type === '1' || type === '2' ? 'a link; links are not followed' : 'no file'}`)
    if (size > MAX_SOURCE_BYTES) throw new Error(`${this.#path} has ${size} bytes; a source has at most ${MAX_SOURCE_BYTES}`)
    this.#entry = 'file'
  }

  #endEntry(): void {
    const bytes = Buffer.concat(this.#parts)
    this.#parts = []
    if (this.#entry === 'file') this.#found = { bytes }
    else if (this.#entry === 'longName') this.#longName = readText(bytes)
    else if (this.#entry === 'names') this.#readRecords(bytes)
    this.#entry = 'ignored'
  }

  /** Records of pax: `<length> <keyword>=<value>\n`. */
  #readRecords(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) {
      const space = bytes.indexOf(0x20, at)
      const length = Number(bytes.toString('latin1', at, space))
      if (space === -1 || !Number.isSafeInteger(length) || length < 5 || at + length > bytes.length) throw new Error('a layer has a broken pax record')
      const record = bytes.toString('utf8', space + 1, at + length - 1)
      if (record.startsWith('path=')) this.#longName = record.slice(5)
      if (record.startsWith('size=')) this.#longSize = toSize(Number(record.slice(5)))
      at += length
    }
  }
}

const clean = (name: string): string => name.replace(/^(\.?\/)+/, '').replace(/\/+$/, '')

function readText(field: Buffer): string {
  const end = field.indexOf(0)
  return field.toString('utf8', 0, end === -1 ? field.length : end)
}

/** Octal text, or a number in base 256 if the first bit is set. */
function readNumber(field: Buffer): number {
  if (((field[0] ?? 0) & 0x80) === 0) return toSize(Number.parseInt(readText(field).trim() || '0', 8))
  return toSize(field.subarray(1).reduce((sum, byte) => sum * 256 + byte, (field[0] ?? 0) & 0x7f))
}

function toSize(size: number): number {
  if (!Number.isSafeInteger(size) || size < 0) throw new Error('a layer has an entry without a size')
  return size
}

/** Without it, any file with zeros in the right places would be read as an archive. */
function checkSum(header: Buffer): void {
  const sum = header.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 0x20 : byte), 0)
  if (Number.parseInt(readText(header.subarray(148, 156)).trim(), 8) !== sum) throw new Error('a layer is no tar archive')
}
