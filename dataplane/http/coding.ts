import { promisify } from 'node:util'
import {
  brotliCompress,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
  deflate,
  gzip,
  zstdCompress,
} from 'node:zlib'
import { BodyTooLargeError, BufferBody, type Body } from './body.ts'
import type { BodyHold } from './budget.ts'
import { DecodedBody, type Decoder } from './decoded.ts'
import type { HeaderList } from './headers.ts'

interface Coding {
  readonly encode: (bytes: Buffer) => Promise<Buffer>
  /** `first` is the first byte of the content. */
  readonly createDecoder: (first: number) => Decoder
}

/** Fewer steps between the threads of zlib and the loop than with its default of 16 KiB; a step is below a millisecond. */
const zlibOptions = { chunkSize: 64 * 1024 }

/** `deflate` is zlib's format (RFC 9110 §8.4.1.2); some senders omit its header, whose first byte no raw content has. */
const isZlib = (first: number | undefined): boolean => first !== undefined && (first & 0x0f) === 8

const gzipCoding: Coding = { encode: promisify(gzip), createDecoder: () => createGunzip(zlibOptions) }

/** The content codings that the gateway knows. */
const codings: Readonly<Record<string, Coding>> = {
  gzip: gzipCoding,
  'x-gzip': gzipCoding,
  deflate: {
    encode: promisify(deflate),
    createDecoder: (first) => (isZlib(first) ? createInflate(zlibOptions) : createInflateRaw(zlibOptions)),
  },
  br: { encode: promisify(brotliCompress), createDecoder: () => createBrotliDecompress(zlibOptions) },
  zstd: { encode: promisify(zstdCompress), createDecoder: () => createZstdDecompress(zlibOptions) },
}

/** Codings of one message at most: each one multiplies the work. */
const MAX_CODINGS = 4

/** Names of the codings, for `accept-encoding`. */
export const supportedCodings = Object.keys(codings)
  .filter((name) => name !== 'x-gzip')
  .join(', ')

/** A body that cannot be decoded. */
export class CodingError extends Error {
  /** The coding is not supported, and `message` is its name; otherwise, the content does not match it. */
  readonly isUnknown: boolean

  constructor(message: string, options: { readonly isUnknown?: boolean; readonly cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.isUnknown = options.isUnknown === true
  }
}

/** The codings of a content-encoding field, in the order in which they were applied. */
function listCodings(field: string | undefined): Coding[] {
  const names = codingNames(field)
  if (names.length > MAX_CODINGS) throw new CodingError(`more than ${MAX_CODINGS} codings`, { isUnknown: true })
  return names.map((name) => {
    const coding = Object.hasOwn(codings, name) ? codings[name] : undefined
    if (coding === undefined) throw new CodingError(name, { isUnknown: true })
    return coding
  })
}

function codingNames(field: string | undefined): string[] {
  if (field === undefined) return []
  return field
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity')
}

/** The content-encoding of a message, of all its fields; undefined if its content is not coded. */
export function contentCoding(headers: HeaderList): string | undefined {
  if (!headers.has('content-encoding')) return undefined
  const field = headers.getAll('content-encoding').join(', ')
  return codingNames(field).length === 0 ? undefined : field
}

const mismatch = (cause: Error): CodingError => new CodingError(`the content does not match its content-encoding (${cause.message})`, { cause })

/**
 * A body that decodes `body` as it streams. It fails with what `describe` makes of the decoder's error; default: a CodingError. Throws a CodingError
 * for a coding that is not supported.
 */
export function decodeBody(body: Body, field: string | undefined, describe: (error: Error) => Error = mismatch): Body {
  let decoded = body
  for (const coding of listCodings(field).toReversed()) decoded = new DecodedBody(decoded, coding.createDecoder, describe)
  return decoded
}

interface DecodeOptions {
  /** Most bytes of the result. */
  readonly limitBytes: number
  /** False: the coded bytes may end anywhere. Default: they are the whole content. */
  readonly isWhole?: boolean
  /** Reserves the bytes of the result, until the owner of the hold ends. */
  readonly hold?: BodyHold
}

/** Removes all codings from content, up to a limit. Rejects with a CodingError, or with the error of the hold. */
export async function decodePrefix(
  bytes: Buffer,
  field: string | undefined,
  { limitBytes, isWhole = true, hold }: DecodeOptions,
): Promise<{ readonly bytes: Buffer; readonly isComplete: boolean }> {
  const body = decodeBody(new BufferBody(bytes), field)
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const finish = (isComplete: boolean): void => resolve({ bytes: Buffer.concat(chunks).subarray(0, limitBytes), isComplete })
    body.start({
      onData: (chunk) => {
        const excess = hold?.reserve(chunk.length)
        if (excess !== undefined) {
          body.cancel()
          return reject(excess)
        }
        chunks.push(chunk)
        size += chunk.length
        if (size <= limitBytes) return
        body.cancel()
        finish(false)
      },
      onEnd: () => finish(isWhole),
      onError: (error) => (!isWhole && isCut(error) ? finish(false) : reject(error)),
    })
  })
}

/** Whether the content ended too early. */
const isCut = ({ cause }: Error): boolean => (cause as NodeJS.ErrnoException | undefined)?.code === 'Z_BUF_ERROR'

/** As `decodePrefix`, for whole content. Rejects also with BodyTooLargeError. */
export async function decodeBytes(bytes: Buffer, field: string | undefined, limitBytes: number): Promise<Buffer> {
  const decoded = await decodePrefix(bytes, field, { limitBytes })
  if (!decoded.isComplete) throw new BodyTooLargeError(limitBytes)
  return decoded.bytes
}

/** Applies the codings of a content-encoding field. */
export async function encodeBytes(bytes: Buffer, field: string | undefined): Promise<Buffer> {
  let encoded = bytes
  for (const coding of listCodings(field)) encoded = await coding.encode(encoded)
  return encoded
}

/** The part of an accept-encoding field that is supported here; `identity` if none is, undefined without the field. */
export function acceptableCodings(field: string | undefined): string | undefined {
  if (field === undefined) return undefined
  const known = field.split(',').filter((item) => {
    const [name = ''] = item.trim().toLowerCase().split(';')
    return name === 'identity' || Object.hasOwn(codings, name)
  })
  return known.length === 0 ? 'identity' : known.map((item) => item.trim()).join(', ')
}

/**
 * The coding of `offered` that an accept-encoding field prefers (RFC 9110 §12.5.3); of equal ones the first. Undefined if it prefers the content
 * as it is, or names none.
 */
export function preferredCoding(field: string | undefined, offered: readonly string[]): string | undefined {
  if (field === undefined) return undefined
  const weights = new Map<string, number>()
  for (const item of field.split(',')) {
    const [, name = '', q = '1'] = /^\s*([^\s;]+)\s*(?:;\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?$/i.exec(item) ?? []
    const coding = name.toLowerCase()
    if (coding !== '') weights.set(coding === 'x-gzip' ? 'gzip' : coding, Number(q))
  }
  let best: string | undefined
  // Content as it is needs no mention to be acceptable: any coding that is mentioned is preferred to it.
  let most = weights.get('identity') ?? 0
  for (const coding of offered) {
    const weight = weights.get(coding) ?? weights.get('*') ?? 0
    if (weight > most || (weight === most && weight > 0 && best === undefined)) [best, most] = [coding, weight]
  }
  return best
}

/** Fields that describe the bytes of a body, and are wrong for another one (RFC 9110 §8, RFC 9530). */
const contentFields = ['content-length', 'content-encoding', 'content-md5', 'content-digest', 'repr-digest', 'digest']

const none: ReadonlySet<string> = new Set()

/**
 * Removes what the head says about the bytes of a body that is replaced, and weakens its entity tag: the content may mean the same, but it is not
 * the same bytes (RFC 9110 §8.8.1). `own`: fields that describe the new body.
 */
export function describeNewBody(headers: HeaderList, own: ReadonlySet<string> = none): void {
  for (const name of contentFields) if (!own.has(name)) headers.remove(name)
  const tag = headers.get('etag')
  if (tag?.startsWith('"') === true && !own.has('etag')) headers.set('etag', `W/${tag}`)
}
