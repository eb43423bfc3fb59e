import { promisify } from 'node:util'
import {
  brotliCompress,
  brotliDecompress,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
  deflate,
  gunzip,
  gzip,
  inflate,
  zstdCompress,
  zstdDecompress,
} from 'node:zlib'
import { BodyTooLargeError, type Body } from '../../http/body.ts'
import { DecodedBody, type Decoder } from '../../http/decoded.ts'

type Decode = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>

interface Coding {
  readonly decode: Decode
  readonly encode: (bytes: Buffer) => Promise<Buffer>
  readonly createDecoder: () => Decoder
}

const gzipCoding: Coding = { decode: promisify(gunzip), encode: promisify(gzip), createDecoder: () => createGunzip() }
const codings: Readonly<Record<string, Coding>> = {
  gzip: gzipCoding,
  'x-gzip': gzipCoding,
  deflate: { decode: promisify(inflate), encode: promisify(deflate), createDecoder: () => createInflate() },
  br: { decode: promisify(brotliDecompress), encode: promisify(brotliCompress), createDecoder: () => createBrotliDecompress() },
  zstd: { decode: promisify(zstdDecompress), encode: promisify(zstdCompress), createDecoder: () => createZstdDecompress() },
}

/** A content-encoding that is not supported; `message` is its name. */
export class UnknownCodingError extends Error {}

/** The codings of a content-encoding field, in the order in which they were applied. */
function listCodings(field: string | undefined): Coding[] {
  const names = (field ?? '').split(',').map((name) => name.trim().toLowerCase())
  return names.flatMap((name) => {
    if (name === '' || name === 'identity') return []
    const coding = Object.hasOwn(codings, name) ? codings[name] : undefined
    if (coding === undefined) throw new UnknownCodingError(name)
    return coding
  })
}

/** Removes all codings. `field` is the content-encoding. Rejects with UnknownCodingError, BodyTooLargeError, or zlib's error for corrupt data. */
export async function decodeBytes(bytes: Buffer, field: string | undefined, limitBytes: number): Promise<Buffer> {
  let decoded = bytes
  for (const coding of listCodings(field).toReversed()) {
    decoded = await coding.decode(decoded, { maxOutputLength: limitBytes }).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ERR_BUFFER_TOO_LARGE' ? new BodyTooLargeError(limitBytes) : error
    })
  }
  return decoded
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

/** A body that decodes `body` as it streams. Throws UnknownCodingError. */
export function decodeBody(body: Body, field: string | undefined): Body {
  let decoded = body
  for (const coding of listCodings(field).toReversed()) decoded = new DecodedBody(decoded, coding.createDecoder())
  return decoded
}
