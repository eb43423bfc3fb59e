import { createHash } from 'node:crypto'
import { chargeNew, fits } from '../arithmetic.ts'
import { chargeLength } from '../budget.ts'
import { decodeText, toBytes, toText } from '../convert.ts'
import { badArgument, badJson, CelError, emptyText, noSuchKey, overflow } from '../error.ts'
import { toJsonValue } from '../host.ts'
import type { JsonLimits } from '../../json/index.ts'
import { parseStored, parseStoredInSteps } from '../json.ts'
import { CelMap, getField, getKey, isMap, keysOf, toKey } from '../map.ts'
import { load } from '../values.ts'
import type { Stored, Value } from '../values.ts'
import type { FunctionTable } from './table.ts'

/** Parsed bodies: parsing dominates the cost of an expression, and several expressions read the same body. */
const parsed = new WeakMap<Uint8Array, { readonly value: Stored }>()

function parseJson(source: Value): Value {
  if (source instanceof Uint8Array) {
    const known = parsed.get(source)
    if (known) return load(known.value)
    if (source.length === 0) return emptyText
    const text = decodeText(source)
    chargeLength(source.length)
    const value = text === undefined ? badJson : parseText(text)
    parsed.set(source, { value })
    return load(value)
  }
  if (typeof source !== 'string') return undefined
  chargeLength(source.length + 256)
  return load(parseText(source))
}

/**
 * Parses a body before expressions read it with `json()`, in steps (see `parseJsonInSteps`) and with limits of its own. Expressions that read
 * another body parse it at once, with the default limits.
 */
export function* parseInAdvance(bytes: Uint8Array, limits: JsonLimits): Generator<undefined, void, undefined> {
  if (parsed.has(bytes) || bytes.length === 0) return
  const text = decodeText(bytes)
  const value = text === undefined ? undefined : yield* parseStoredInSteps(text, limits)
  parsed.set(bytes, { value: value ?? badJson })
}

const parseText = (text: string): Stored => (text === '' ? emptyText : (parseStored(text) ?? badJson))

function jsonField(source: Value, key: Value): Value {
  if (typeof key !== 'string') return undefined
  const document = parseJson(source)
  if (!isMap(document)) return document === undefined || document instanceof CelError ? document : noSuchKey
  const member = getField(document, key)
  return member === undefined ? noSuchKey : load(member)
}

function toJson(value: Value): Value {
  const text = JSON.stringify(toJsonValue(value))
  return fits(text.length) ? text : overflow
}

/** The claims of a token, without verification. */
function readJwtPayload(token: Value): Value {
  if (typeof token !== 'string') return undefined
  const segments = token.split('.')
  const payload = segments[1] ?? ''
  if (segments.length !== 3 || !/^[A-Za-z0-9_-]*$/.test(payload)) return badArgument
  chargeNew(token.length)
  const claims = parseText(decodeText(Buffer.from(payload, 'base64url')) ?? '')
  return isMap(claims) ? claims : badArgument
}

function encodeBase64(value: Value): Value {
  const bytes = toBytes(value)
  if (bytes === undefined) return undefined
  return fits(bytes.length * 1.4) ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64') : overflow
}

function decodeBase64(value: Value): Value {
  const text = value instanceof Uint8Array ? decodeText(value) : value
  if (typeof text !== 'string') return value instanceof Uint8Array ? badArgument : undefined
  chargeNew(text.length)
  const digits = text.replace(/={0,2}$/, '')
  if (!/^[A-Za-z0-9+/]*$/.test(digits) || digits.length % 4 === 1) return badArgument
  return new Uint8Array(Buffer.from(digits, 'base64'))
}

function mapText(change: (text: string) => Value): (value: Value) => Value {
  return (value) => {
    if (typeof value !== 'string') return undefined
    return fits(value.length * 3) ? change(value) : overflow
  }
}

function decodeUrl(text: string): Value {
  try {
    return decodeURIComponent(text)
  } catch {
    return badArgument
  }
}

/** Encodes as `application/x-www-form-urlencoded`: keys are sorted, a list repeats its key, null is omitted. */
function encodeForm(map: Value): Value {
  if (!isMap(map)) return undefined
  const params = new URLSearchParams()
  for (const stored of keysOf(map)) {
    const key = toKey(stored)
    const member = key === undefined ? undefined : load(getKey(map, key))
    for (const item of Array.isArray(member) ? (member as Stored[]) : [member]) {
      const value = load(item)
      if (value === null) continue
      const text = toText(value)
      if (typeof text !== 'string') return text
      chargeLength((text.length + 64) * 16)
      params.append(String(key), text)
    }
  }
  params.sort()
  return params.toString()
}

function decodeForm(source: Value): Value {
  const text = source instanceof Uint8Array ? decodeText(source) : source
  if (typeof text !== 'string') return source instanceof Uint8Array ? badArgument : undefined
  chargeNew(text.length * 4)
  const map = new CelMap()
  for (const [key, value] of new URLSearchParams(text.replace(/^\?/, '%3F'))) {
    const before = map.entries.get(key)
    if (Array.isArray(before)) before.push(value)
    else map.entries.set(key, before === undefined ? value : [before, value])
  }
  return map
}

function hash(algorithm: string): (value: Value) => Value {
  return (value) => {
    const bytes = toBytes(value)
    if (bytes === undefined) return undefined
    chargeNew(bytes.length + 512)
    return createHash(algorithm).update(bytes).digest('hex')
  }
}

export const encoderFunctions: FunctionTable = {
  'json/1': parseJson,
  'toJson/1': toJson,
  'to_json/1': toJson,
  'jsonField/2': jsonField,
  'unvalidatedJwtPayload/1': readJwtPayload,
  'base64.encode/1': encodeBase64,
  'base64.decode/1': decodeBase64,
  'base64Encode/1': encodeBase64,
  'base64Decode/1': decodeBase64,
  'url.encode/1': mapText((text) => encodeURIComponent(text.toWellFormed())),
  'url.decode/1': mapText(decodeUrl),
  'form.encode/1': encodeForm,
  'form.decode/1': decodeForm,
  'sha1.encode/1': hash('sha1'),
  'sha256.encode/1': hash('sha256'),
  'md5.encode/1': hash('md5'),
}

/** The same functions as methods: `"x".base64Encode()`. */
export const encoderMethods: FunctionTable = {
  'base64Encode/0': encodeBase64,
  'base64Decode/0': decodeBase64,
}
