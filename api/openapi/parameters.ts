import { isJsonObject, type JsonObject } from '#api/json/index.ts'
import type { OpenApiBody, OpenApiParameter, OpenApiTool } from '#gen/config/types.ts'
import { DocumentError, short, type OpenApiDocument } from './document.ts'

type Style = OpenApiParameter['style']

/** A parameter with its schema and the name that it has among the arguments of the tool. */
export interface Parameter {
  readonly message: OpenApiParameter
  readonly schema: unknown
  readonly description: string | undefined
  readonly isRequired: boolean
}

/** The body of an operation. */
export interface Body {
  readonly message: OpenApiBody
  readonly schema: unknown
  readonly description: string | undefined
  readonly isRequired: boolean
}

/** Styles by place; the first is the default (OpenAPI 3.1, style values). */
const styles = {
  path: ['simple', 'label', 'matrix'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'],
  header: ['simple'],
} as const satisfies Record<string, readonly Style[]>

/**
 * Headers that are no parameters: the specification reserves the first three, the gateway or the connection determines the others, or they
 * are credentials and facts about the client that proxies vouch for.
 */
const RESERVED_HEADERS =
  /^(accept|content-type|authorization|accept-encoding|connection|content-encoding|content-length|cookie|expect|forwarded|host|keep-alive|te|trailer|transfer-encoding|upgrade|via|x-real-ip|(proxy|sec|mcp|x-forwarded)-.*)$/i
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Names of arguments that LLM APIs accept. */
const ARGUMENT = /^[a-zA-Z0-9_.-]{1,64}$/

/** Most parameters of an operation. */
const MAX_PARAMETERS = 500
/** Longest name without the number that makes it distinct. */
const MAX_BASE = 48

/** Hands out names of arguments: those of parameters if they are valid and unused. */
export class ArgumentNames {
  readonly #used = new Set<string>()

  take(name: string, place: string): string {
    const base = ARGUMENT.test(name)
      ? name
      : name
          .replaceAll(/[^a-zA-Z0-9_.-]+/g, '_')
          .replaceAll(/^_+|_+$/g, '')
          .slice(0, MAX_BASE) || place
    let argument = base
    const stem = base.slice(0, MAX_BASE)
    if (this.#used.has(argument)) argument = `${stem}_${place}`
    for (let number = 2; this.#used.has(argument); number++) argument = `${stem}_${number}`
    this.#used.add(argument)
    return argument
  }
}

/** The parameters of an operation, with those of its path. Cookies and reserved headers are left out. Throws a DocumentError. */
export function readParameters(document: OpenApiDocument, path: string, lists: readonly unknown[], names: ArgumentNames): Parameter[] {
  const found = new Map<string, JsonObject>()
  // Those of the operation replace those of the path.
  for (const list of lists)
    for (const entry of Array.isArray(list) ? list : []) {
      const parameter = document.resolve(entry)
      found.set(`${String(parameter['in'])} ${String(parameter['name'])}`, parameter)
    }
  if (found.size > MAX_PARAMETERS) throw new DocumentError(`it has ${found.size} parameters, at most ${MAX_PARAMETERS} are supported`)
  const parameters = [...found.values()].flatMap((parameter) => readParameter(document, parameter, names) ?? [])
  const placeholders = [...path.matchAll(/\{([^{}]*)\}/g)].map(([, name]) => name)
  const missing = placeholders.find((name) => !parameters.some(({ message }) => message.in === 'path' && message.name === name))
  if (missing !== undefined) throw new DocumentError(`its path has {${short(missing)}}, which is no parameter`)
  return parameters.filter(({ message }) => message.in !== 'path' || placeholders.includes(message.name))
}

function readParameter(document: OpenApiDocument, parameter: JsonObject, names: ArgumentNames): Parameter | undefined {
  const { name, in: place, description, required, content } = parameter
  if (typeof name !== 'string' || name === '' || (place !== 'path' && place !== 'query' && place !== 'header')) return undefined
  if (place === 'header' && (RESERVED_HEADERS.test(name) || !HEADER_NAME.test(name))) return undefined
  const [[type, media] = ['', undefined]] = isJsonObject(content) ? Object.entries(content) : []
  const style = (styles[place] as readonly Style[]).find((one) => one === parameter['style']) ?? styles[place][0]
  return {
    message: {
      argument: names.take(name, place),
      name,
      in: place,
      style,
      explode: typeof parameter['explode'] === 'boolean' ? parameter['explode'] : style === 'form',
      ...(place === 'query' && parameter['allowReserved'] === true ? { allowReserved: true } : {}),
      // A value of another type, such as text/plain, is sent as it is.
      ...(media !== undefined && isJsonType(type) ? { isJson: true } : {}),
    },
    schema: media === undefined ? parameter['schema'] : document.resolve(media)['schema'],
    description: typeof description === 'string' ? description : undefined,
    isRequired: place === 'path' || required === true,
  }
}

const JSON_TYPE = /^application\/([\w.-]+\+)?json\b/i
const isJsonType = (type: string): boolean => JSON_TYPE.test(type) || type.startsWith('*/*')
const FORM_TYPE = 'application/x-www-form-urlencoded'
const TEXT_TYPE = /^text\/[\w.+-]+/i

const kindOf = (type: string): OpenApiBody['kind'] | undefined =>
  JSON_TYPE.test(type) ? 'json' : type.toLowerCase().startsWith(FORM_TYPE) ? 'form' : TEXT_TYPE.test(type) ? 'text' : undefined

/** The body of an operation, as JSON, a form or text. Throws a DocumentError if it is required and nothing of these. */
export function readBody(document: OpenApiDocument, given: unknown, names: ArgumentNames): Body | undefined {
  if (given === undefined) return undefined
  const { content, description, required } = document.resolve(given)
  const types = isJsonObject(content) ? Object.entries(content) : []
  const isRequired = required === true
  for (const kind of ['json', 'form', 'text'] as const) {
    const entry = types.find(([type]) => (type.startsWith('*/*') ? kind === 'json' : kindOf(type) === kind))
    if (entry === undefined) continue
    const [type, media] = entry
    const mediaType = type.startsWith('*/*') ? 'application/json' : type
    if (!/^[\w.+/-]+(; *[\w-]+=[\w.+"-]+)*$/.test(mediaType)) continue
    const { schema, encoding } = document.resolve(media)
    const encodings =
      kind === 'form' && isJsonObject(encoding) ? Object.entries(encoding).map(([name, value]) => encodingOf(name, document.resolve(value))) : []
    return {
      message: { argument: names.take('body', 'request'), mediaType, kind, ...(encodings.length > 0 ? { encoding: encodings } : {}) },
      schema,
      description: typeof description === 'string' ? description : undefined,
      isRequired,
    }
  }
  if (isRequired) throw new DocumentError(`its body is ${types.map(([type]) => short(type)).join(', ') || 'of no type'}, and JSON, a form or text is supported`)
  return undefined
}

function encodingOf(name: string, { style, explode }: JsonObject): NonNullable<OpenApiBody['encoding']>[number] {
  const known = styles.query.find((one) => one === style) ?? 'form'
  return { name, style: known, explode: typeof explode === 'boolean' ? explode : known === 'form' }
}

/** Schemas that decide whether a result is an object. */
const MAX_PARTS = 64

/** The schema of successful responses, if all of them are JSON objects or empty. */
export function readResultSchema(document: OpenApiDocument, responses: unknown): unknown {
  if (!isJsonObject(responses)) return undefined
  let found: unknown
  for (const [status, response] of Object.entries(responses)) {
    if (!/^2(\d\d|XX)$/.test(status)) continue
    const { content } = document.resolve(response)
    const types = isJsonObject(content) ? Object.entries(content) : []
    if (types.length === 0) continue
    const json = types.find(([type]) => isJsonType(type))
    const schema = json === undefined ? undefined : document.resolve(json[1])['schema']
    // Several kinds of results have no common schema.
    if (schema === undefined || found !== undefined || !isObjectSchema(document, schema)) return undefined
    found = schema
  }
  return found
}

/** `seen` are the schemas that were looked at, each once: combinations of combinations multiply. */
function isObjectSchema(document: OpenApiDocument, schema: unknown, seen = new Set<object>()): boolean {
  const resolved = document.resolve(schema)
  const { type, properties, allOf } = resolved
  if (type !== undefined) return type === 'object'
  if (isJsonObject(properties)) return true
  if (seen.has(resolved) || seen.size > MAX_PARTS) return false
  seen.add(resolved)
  return Array.isArray(allOf) && allOf.some((part) => isObjectSchema(document, part, seen))
}

/** Methods of operations that become tools. */
export const METHODS = ['get', 'put', 'post', 'delete', 'patch'] as const
export const methodOf = (method: (typeof METHODS)[number]): OpenApiTool['method'] => method.toUpperCase() as OpenApiTool['method']
