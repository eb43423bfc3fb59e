import { gunzipSync } from 'node:zlib'
import { parse } from 'yaml'
import { isJsonObject, type JsonObject } from '#api/json/index.ts'

/** Largest document, in bytes after decompression. */
export const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
/** Largest document in YAML, whose parser takes about a second per megabyte. */
const MAX_YAML_CHARS = 2 * 1024 * 1024
/** References that lead to references, before the chain counts as a circle. */
const MAX_CHAIN = 32

/** A document, or a part of it, that cannot be used. The message names the problem. */
export class DocumentError extends Error {}

/** A text that is neither JSON nor YAML. The message quotes it. */
export class DocumentSyntaxError extends DocumentError {}

/** A parsed OpenAPI document. */
export class OpenApiDocument {
  readonly root: JsonObject
  /** Schemas are those of OpenAPI 3.0: `nullable`, and `$ref` without siblings. */
  readonly isVersion30: boolean

  constructor(root: JsonObject) {
    const { openapi, swagger } = root
    if (swagger !== undefined) throw new DocumentError(`it is of version ${short(swagger)}; convert it to OpenAPI 3.0 or 3.1`)
    if (typeof openapi !== 'string' || !/^3\.[01]\.\d/.test(openapi))
      throw new DocumentError(openapi === undefined ? 'it has no field openapi' : `version ${short(openapi)} is not supported; use OpenAPI 3.0 or 3.1`)
    if (!isJsonObject(root['paths'])) throw new DocumentError('it has no paths')
    this.root = root
    this.isVersion30 = openapi.startsWith('3.0')
  }

  /** The value that a local reference points to. Throws a DocumentError. Nothing is ever read from elsewhere. */
  lookUp(pointer: string): unknown {
    if (!pointer.startsWith('#/')) throw new DocumentError(`$ref ${short(pointer)} leads out of the document; bundle it into one document`)
    let value: unknown = this.root
    for (const part of pointer.slice(2).split('/')) {
      const name = decode(part)
      value = typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Readonly<Record<string, unknown>>)[name] : undefined
    }
    if (value === undefined) throw new DocumentError(`$ref ${short(pointer)} points to nothing`)
    return value
  }

  /** An object, after the references that stand in its place. Throws a DocumentError. */
  resolve(value: unknown): JsonObject {
    let current = value
    for (let step = 0; step < MAX_CHAIN; step++) {
      if (!isJsonObject(current)) throw new DocumentError('an object is expected')
      if (typeof current['$ref'] !== 'string') return current
      current = this.lookUp(current['$ref'])
    }
    throw new DocumentError('a $ref leads back to itself')
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return part
  }
}

/** A value for messages, with a limited length. */
export function short(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > 100 ? `${text.slice(0, 97)}...` : text
}

/** Parses a document in JSON or YAML, compressed with gzip or not. Throws a DocumentError. */
export function parseDocument(bytes: Buffer): OpenApiDocument {
  const text = unzip(bytes)
    .toString()
    .replace(/^\ufeff/, '')
  const isJson = /^\s*\{/.test(text)
  if (!isJson && text.length > MAX_YAML_CHARS) throw new DocumentError('it is YAML of more than 2 MiB; convert it to JSON')
  let root: unknown
  try {
    root = isJson ? JSON.parse(text) : parse(text, { merge: true, logLevel: 'silent' })
  } catch (error) {
    // A JSON parser and a YAML parser that recurse too deeply throw a RangeError.
    throw new DocumentSyntaxError(`it is neither JSON nor YAML: ${short(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error))}`)
  }
  if (!isJsonObject(root)) throw new DocumentError('it is not an object')
  return new OpenApiDocument(root)
}

function unzip(bytes: Buffer): Buffer {
  const isZipped = bytes[0] === 0x1f && bytes[1] === 0x8b
  if (bytes.length > MAX_DOCUMENT_BYTES) throw tooLarge()
  if (!isZipped) return bytes
  try {
    return gunzipSync(bytes, { maxOutputLength: MAX_DOCUMENT_BYTES })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge()
    throw new DocumentError('it does not decompress')
  }
}

const tooLarge = (): DocumentError => new DocumentError(`it is larger than ${MAX_DOCUMENT_BYTES / 1024 / 1024} MiB`)
