import { fc } from '#api/property-testing.ts'

/** A valid message as bytes (Latin-1), with the parts that every parser must find in it. */
export interface ValidMessage {
  readonly bytes: string
  /** Lower-case names; without hop-by-hop and framing fields. */
  readonly fields: readonly (readonly [string, string])[]
  readonly body: string
  readonly trailers: readonly (readonly [string, string])[]
}

const alphabet = (characters: string, minLength: number, maxLength: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...characters), minLength, maxLength })
const latin1 = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)), maxLength: 60 })
const optionalSpace = fc.constantFrom('', ' ', '\t', '  \t')

/** Names without a meaning for a connection. */
const fieldName = alphabet("abcXYZ019-_!#$%&'*+.^`|~", 1, 12).map((name) => `x${name}`)
const fieldValue = fc
  .string({ unit: fc.constantFrom(...Array.from('abcXYZ019 \t,;:="\'()<>@[]{}?/\\\xe9\xff')), maxLength: 30 })
  .map((value) => value.replace(/^[ \t]+|[ \t]+$/g, ''))
const field = fc.tuple(fieldName, fieldValue)
type Field = readonly [string, string]

const written = ([name, value]: Field, before: string, after: string): string => `${name}:${before}${value}${after}\r\n`
const read = (fields: readonly Field[]): Field[] => fields.map(([name, value]) => [name.toLowerCase(), value])

interface Parts {
  readonly fields: Field[]
  readonly chunks: string[]
  readonly trailers: Field[]
  readonly framing: 'length' | 'chunked' | 'none'
  readonly before: string
  readonly after: string
  readonly extension: string
  readonly isUpper: boolean
}

const parts: fc.Arbitrary<Parts> = fc.record({
  fields: fc.array(field, { maxLength: 6 }),
  chunks: fc.array(
    latin1.filter((text) => text !== ''),
    { maxLength: 4 },
  ),
  trailers: fc.array(field, { maxLength: 3 }),
  framing: fc.constantFrom('length', 'chunked', 'none'),
  before: optionalSpace,
  after: optionalSpace,
  extension: fc.constantFrom('', ';a', ';a=b', ';a="b c"'),
  isUpper: fc.boolean(),
})

function assemble(startLine: string, required: readonly string[], part: Parts): ValidMessage {
  const { fields, chunks, trailers, framing, before, after, extension, isUpper } = part
  const body = framing === 'none' ? '' : chunks.join('')
  const size = (text: string): string => (isUpper ? text.length.toString(16).toUpperCase() : `0${text.length.toString(16)}`)
  const framingField = { length: `Content-Length: ${body.length}\r\n`, chunked: 'Transfer-Encoding: chunked\r\n', none: '' }[framing]
  const head = `${startLine}\r\n${required.join('')}${fields.map((one) => written(one, before, after)).join('')}${framingField}\r\n`
  const payload =
    framing === 'chunked'
      ? `${chunks.map((chunk) => `${size(chunk)}${extension}\r\n${chunk}\r\n`).join('')}0${extension}\r\n${trailers.map((one) => written(one, before, after)).join('')}\r\n`
      : body
  return { bytes: head + payload, fields: read(fields), body, trailers: framing === 'chunked' ? read(trailers) : [] }
}

/** A request with Host `a`; its target is `/` and a random number. */
export const validRequest: fc.Arbitrary<ValidMessage & { readonly method: string; readonly target: string }> = fc
  .record({ method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH'), path: alphabet('abc/?=&%20{}|~', 0, 12), part: parts })
  .map(({ method, path, part }) => ({ method, target: `/${path}`, ...assemble(`${method} /${path} HTTP/1.1`, ['Host: a\r\n'], part) }))

/** A response to GET with explicit framing: no body ends with the connection. */
export const validResponse: fc.Arbitrary<ValidMessage & { readonly status: number }> = fc
  .record({ status: fc.constantFrom(200, 201, 206, 302, 404, 418, 500, 503), reason: fc.constantFrom('', 'OK', 'Not so good'), part: parts })
  .map(({ status, reason, part }) => ({
    status,
    ...assemble(`HTTP/1.1 ${status} ${reason}`, [], part.framing === 'none' ? { ...part, framing: 'length', chunks: [] } : part),
  }))

/** Positions at which to split `length` bytes. */
export const cuts = (length: number): fc.Arbitrary<number[]> =>
  fc.uniqueArray(fc.integer({ min: 1, max: Math.max(1, length - 1) }), { maxLength: 8 }).map((places) => places.sort((a, b) => a - b))

export function cutAt(bytes: string, places: readonly number[]): Buffer[] {
  const all = Buffer.from(bytes, 'latin1')
  return [0, ...places].map((start, index) => all.subarray(start, places[index] ?? all.length)).filter((piece) => piece.length > 0)
}
