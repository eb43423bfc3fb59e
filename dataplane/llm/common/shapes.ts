import { isObject, isRawNumber } from './json.ts'
import { FormatError, type ClientFormat, type JsonObject } from './types.ts'

/** A type that a field must have, and how errors name it. */
interface Shape {
  readonly name: string
  isOne(value: unknown): boolean
}

const bool: Shape = { name: 'true or false', isOne: (value) => typeof value === 'boolean' }
const number: Shape = { name: 'a number', isOne: (value) => typeof value === 'number' || isRawNumber(value) }
const list: Shape = { name: 'a list', isOne: Array.isArray }
const text: Shape = { name: 'a string', isOne: (value) => typeof value === 'string' }
const textOrList: Shape = { name: 'a string or a list', isOne: (value) => typeof value === 'string' || Array.isArray(value) }

type Shapes = Readonly<Record<string, Shape>>

const sampling: Shapes = { stream: bool, temperature: number, top_p: number, tools: list }
const fields: Readonly<Record<ClientFormat, Shapes>> = {
  completions: { ...sampling, messages: list, max_tokens: number, max_completion_tokens: number, stop: textOrList },
  messages: { ...sampling, messages: list, system: textOrList, max_tokens: number, stop_sequences: list },
  responses: { ...sampling, input: textOrList, max_output_tokens: number },
  embeddings: { input: textOrList, dimensions: number },
  tokenCount: { messages: list, system: textOrList, tools: list },
}
const messageFields = Object.entries({ role: text, content: textOrList } satisfies Shapes)
const entriesOf = Object.fromEntries(Object.entries(fields).map(([format, shapes]) => [format, Object.entries(shapes)]))

/**
 * Refuses a body in which a field that decides what happens to it has a type that no provider takes (llm.md §10, wrong types).
 * What is absent or null, and everything else, is for the provider to judge. Throws a FormatError.
 */
export function checkShape(format: ClientFormat, body: JsonObject): void {
  for (const [field, shape] of entriesOf[format] ?? []) check(body[field], shape, field)
  const { messages } = body
  if (!Array.isArray(messages) || !('messages' in fields[format])) return
  for (const [index, message] of (messages as unknown[]).entries()) {
    if (!isObject(message)) throw wrong(`messages[${index}]`, 'an object')
    for (const [field, shape] of messageFields) if (!isRight(message[field], shape)) throw wrong(`messages[${index}].${field}`, shape.name)
  }
}

const isRight = (value: unknown, shape: Shape): boolean => value === undefined || value === null || shape.isOne(value)

function check(value: unknown, shape: Shape, field: string): void {
  if (!isRight(value, shape)) throw wrong(field, shape.name)
}

const wrong = (field: string, expected: string): FormatError => new FormatError('invalid', `failed to parse request: ${field} must be ${expected}`)
