import { MAX_LOG_LENGTH, type FromPlugin } from './guest/messages.ts'
import { MAX_DETAIL_LENGTH, MAX_SAMPLES, METRIC_NAME } from './guest/plugin-metrics.ts'

type Check = (value: unknown) => boolean
type Shape = Readonly<Record<string, Check>>

const isText: Check = (value) => typeof value === 'string'
const textOf =
  (maxLength: number): Check =>
  (value) =>
    typeof value === 'string' && value.length <= maxLength
const isId: Check = (value) => Number.isSafeInteger(value)
const isBytes: Check = (value) => value instanceof Uint8Array
const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value)
const oneOf =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value)
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)
const objectOf =
  (shape: Shape): Check =>
  (value) =>
    isRecord(value) && Object.entries(shape).every(([name, check]) => check(Object.hasOwn(value, name) ? value[name] : undefined))

const isStatus: Check = (value) => typeof value === 'number' && Number.isInteger(value) && value >= 200 && value <= 599
const isFields: Check = (value) => Array.isArray(value) && value.length % 2 === 0 && value.every(isText)
const isSample = (value: unknown): boolean =>
  objectOf({
    kind: oneOf('count', 'value'),
    name: (name) => typeof name === 'string' && METRIC_NAME.test(name),
    detail: textOf(MAX_DETAIL_LENGTH),
    amount: Number.isFinite,
  })(value) &&
  // Counters do not decrease.
  !(isRecord(value) && value['kind'] === 'count' && Number(value['amount']) < 0)
const isStream = oneOf('request', 'response')
const isMade: Check = (value) => value === 'stream' || isBytes(value)
const fieldChanges: Shape = {
  set: listOf((entry) => Array.isArray(entry) && entry.length === 2 && isText(entry[0]) && listOf(isText)(entry[1])),
  removed: listOf(isText),
}
const isCall = (value: unknown): boolean => isRecord(value) && oneOf('keyValue', 'fetch')(value['service']) && isRecord(value['call'])

/** The shape of each message, without its type. */
const shapes: Readonly<Record<FromPlugin['type'], Shape>> = {
  started: { thread: isId },
  ready: { hooks: listOf(isText) },
  invalid: { message: isText },
  next: { id: isId, change: objectOf({ ...fieldChanges, method: optional(isText), target: optional(isText), body: optional(isMade) }) },
  done: { id: isId, change: objectOf({ ...fieldChanges, status: optional(isStatus), body: optional(isMade) }) },
  answer: { id: isId, status: isStatus, headers: isFields, body: isBytes },
  hooked: { id: isId, output: isText, state: isText },
  failed: { id: isId, message: isText },
  log: { level: oneOf('error', 'warn', 'info', 'debug'), message: textOf(MAX_LOG_LENGTH) },
  metrics: { samples: (samples) => Array.isArray(samples) && samples.length <= MAX_SAMPLES && samples.every(isSample) },
  pull: { id: isId, stream: isStream },
  stop: { id: isId, stream: isStream },
  data: { id: isId, stream: isStream, chunk: isBytes },
  end: { id: isId, stream: isStream, error: optional(isText) },
  pong: {},
  use: { id: isId, call: isCall },
}

/** A message of a process that may send anything. Throws an Error if it is none. */
export function checkMessage(message: unknown): FromPlugin {
  const type = isRecord(message) ? message['type'] : undefined
  if (typeof type !== 'string' || !Object.hasOwn(shapes, type) || !objectOf(shapes[type as FromPlugin['type']])(message)) throw new Error('a malformed message')
  return message as FromPlugin
}
