import { isObject, isRawNumber } from './json.ts'
import { FormatError, type ClientFormat, type JsonObject } from './types.ts'

/** The required type of a field; `name` completes "must be". */
interface Shape {
  readonly name: string
  accepts(value: unknown): boolean
}

const bool: Shape = { name: 'true or false', accepts: (value) => typeof value === 'boolean' }
const number: Shape = { name: 'a number', accepts: (value) => typeof value === 'number' || isRawNumber(value) }
const list: Shape = { name: 'a list', accepts: Array.isArray }
const text: Shape = { name: 'a string', accepts: (value) => typeof value === 'string' }
const textOrList: Shape = { name: 'a string or a list', accepts: (value) => typeof value === 'string' || Array.isArray(value) }

const object: Shape = { name: 'an object', accepts: isObject }

type Shapes = Readonly<Record<string, Shape>>

const sampling: Shapes = { stream: bool, temperature: number, top_p: number, tools: list }
/** Gemini's servers accept names in snake case too. */
const gemini: Shapes = {
  contents: list,
  tools: list,
  systemInstruction: object,
  system_instruction: object,
  generationConfig: object,
  generation_config: object,
}
const fields: Readonly<Record<ClientFormat, Shapes>> = {
  completions: { ...sampling, messages: list, max_tokens: number, max_completion_tokens: number, stop: textOrList },
  messages: { ...sampling, messages: list, system: textOrList, max_tokens: number, stop_sequences: list },
  responses: { ...sampling, input: textOrList, max_output_tokens: number },
  embeddings: { input: textOrList, dimensions: number },
  tokenCount: { messages: list, system: textOrList, tools: list },
  gemini,
  geminiCount: { contents: list },
  geminiEmbeddings: { content: object, requests: list },
  rerank: { documents: list },
  moderations: { input: textOrList },
}
const messageFields = Object.entries({ role: text, content: textOrList } satisfies Shapes)
const entriesOf = Object.fromEntries(Object.entries(fields).map(([format, shapes]) => [format, Object.entries(shapes)]))

/**
 * Checks the types of the fields that the gateway reads (llm.md §10, wrong types). Throws a FormatError. Absent and null fields pass;
 * the provider checks everything else.
 */
export function checkShape(format: ClientFormat, body: JsonObject): void {
  for (const [field, shape] of entriesOf[format] ?? []) check(body[field], shape, field)
  const { messages } = body
  if (!Array.isArray(messages) || !('messages' in fields[format])) return
  for (const [index, message] of (messages as unknown[]).entries()) {
    if (!isObject(message)) throw wrong(`messages[${index}]`, 'an object')
    for (const [field, shape] of messageFields) if (!isValid(message[field], shape)) throw wrong(`messages[${index}].${field}`, shape.name)
  }
}

const isValid = (value: unknown, shape: Shape): boolean => value === undefined || value === null || shape.accepts(value)

function check(value: unknown, shape: Shape, field: string): void {
  if (!isValid(value, shape)) throw wrong(field, shape.name)
}

const wrong = (field: string, expected: string): FormatError => new FormatError('invalid', `failed to parse request: ${field} must be ${expected}`)
