import { printJsonInSteps } from '#api/json/index.ts'
import type { OpenApiBody, OpenApiTool } from '#gen/config/types.ts'
import type { HeaderList } from '../../../http/headers.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'
import { headersFor } from '../message/headers.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import { headerValue, pathValue, queryFields, textOf } from './serialize.ts'

/** Longest path with query, and longest value of a header: servers reject more. */
const MAX_TARGET = 16 * 1024
const MAX_HEADER = 8 * 1024

/** Arguments that cannot be sent. The message names the argument. */
export class ArgumentError extends Error {}

/** An HTTP request to the API. */
export interface ApiRequest {
  readonly method: OpenApiTool['method']
  /** Path and query. */
  readonly path: string
  readonly headers: HeaderList
  readonly body: Buffer | undefined
}

/**
 * Builds the request of a tool, in steps. `args` are valid by its schema. `received` are the headers of the client, which the API receives as an MCP
 * server would (mcp.md §3.4). Throws an ArgumentError.
 */
export function* buildRequest(operation: OpenApiTool, basePath: string, args: JsonObject, received: HeaderList): Cooperative<ApiRequest> {
  const query: string[] = []
  const headers = baseHeaders(received)
  let path = operation.path
  const inPath = new Map<string, string>()
  for (const parameter of operation.parameters) {
    const { argument, name } = parameter
    if (!Object.hasOwn(args, argument)) continue
    const value = args[argument]
    if (parameter.in === 'query') query.push(...queryFields(parameter, value))
    else if (parameter.in === 'path') inPath.set(name, checkedPathValue(argument, pathValue(parameter, value)))
    else headers.set(name.toLowerCase(), checkedHeader(argument, headerValue(parameter, value)))
  }
  path = basePath + fillTemplate(path, inPath)
  const target = query.length === 0 ? path : `${path}?${query.join('&')}`
  if (target.length > MAX_TARGET) throw new ArgumentError(`the arguments make a URL of ${target.length} characters, at most ${MAX_TARGET} are allowed`)
  const { body } = operation
  const content = body !== undefined && Object.hasOwn(args, body.argument) ? yield* writeBody(body, args[body.argument]) : undefined
  if (content !== undefined && body !== undefined) headers.set('content-type', body.mediaType)
  return { method: operation.method, path: target, headers, body: content }
}

/** The client's headers without those of MCP. */
function baseHeaders(received: HeaderList): HeaderList {
  const headers = headersFor(received, { sessionId: undefined, accept: 'application/json, */*;q=0.5', hasBody: false })
  for (const field of Array.from(headers, ([name]) => name).filter((name) => name.startsWith('mcp-'))) headers.remove(field)
  return headers
}

/** Replaces each placeholder once: values are not templates. */
function fillTemplate(template: string, values: ReadonlyMap<string, string>): string {
  const path = template.replaceAll(/\{([^{}]*)\}/g, (_, name: string) => {
    const value = values.get(name)
    if (value === undefined) throw new ArgumentError(`path parameter ${name} is required`)
    return value
  })
  // Servers normalize such segments, with or without percent-encoding, and some decode separators before: the request would be for another path.
  if (path.split(/\/|%2f|%5c/i).some(isDots)) throw new ArgumentError('the arguments make a path with a segment . or .., which is not allowed')
  return path
}

const isDots = (segment: string): boolean => /^(?:\.|%2e){1,2}$/i.test(segment)

function checkedPathValue(argument: string, encoded: string): string {
  if (encoded === '') throw new ArgumentError(`arguments.${argument} must not be empty, because it is a part of the path`)
  if (/%(?:0[0-9a-f]|1[0-9a-f]|7f)/i.test(encoded)) throw new ArgumentError(`arguments.${argument} must not contain control characters`)
  return encoded
}

function checkedHeader(argument: string, value: string): string {
  if (value.length > MAX_HEADER) throw new ArgumentError(`arguments.${argument} has ${value.length} characters, at most ${MAX_HEADER} are allowed in a header`)
  if (value !== '' && !/^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/.test(value))
    throw new ArgumentError(`arguments.${argument} is sent as a header: it must be printable ASCII without spaces at its ends`)
  return value
}

function* writeBody({ kind, encoding = [] }: OpenApiBody, value: unknown): Cooperative<Buffer> {
  if (kind === 'json') return Buffer.from((yield* printJsonInSteps(value)).join(''))
  if (kind === 'text' || !isObject(value)) return Buffer.from(textOf(value))
  const fields: string[] = []
  for (const [name, child] of Object.entries(value)) {
    // Without an encoding, objects in a form are JSON.
    const how = encoding.find((one) => one.name === name) ?? { name, style: 'form', explode: true, isJson: isObject(child) }
    for (const field of queryFields(how, child)) fields.push(field)
    yield
  }
  return Buffer.from(fields.join('&'))
}
