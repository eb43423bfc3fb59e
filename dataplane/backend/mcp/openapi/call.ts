import { readHeldBody } from '../../../request/exchange/held.ts'
import { evalJson, type Program } from '#api/cel/index.ts'
import { bufferResponse } from '../../../request/expression/buffer.ts'
import { ExchangeView } from '../../../request/expression/view.ts'
import { BodyTooLargeError, BufferBody } from '../../../http/body.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'
import { failureClass } from '../../../net/upstream/failure-class.ts'
import { isObject, parseInSteps, type JsonObject } from '../message/json.ts'
import type { Target } from '../target/target.ts'
import { callTarget, type CallContext } from '../upstream/call.ts'
import { nextPage } from './next-page.ts'
import { ArgumentError, buildRequest } from './request.ts'
import type { ApiTool } from './tools.ts'

/** Largest response. Models cannot use more, and writing it into a message must not block the event loop. */
const MAX_RESPONSE_BYTES = 1024 * 1024
/** Text of a response with an error status that the client receives. */
const MAX_ERROR_CHARS = 16 * 1024
/** U+FEFF in UTF-8. */
const BYTE_ORDER_MARK = Buffer.from('\ufeff')

/** Calls a tool. Returns its result in JSON: failures of arguments and of the API are results with `isError` (mcp.md §2.1). */
export async function callTool(context: CallContext, target: Target, tool: ApiTool, args: unknown): Promise<string> {
  const { exchange } = context
  const given = args ?? {}
  const problem = await runWhileConnected(tool.input.check(given, 'arguments'), exchange)
  if (problem !== undefined) return errorResult(`Invalid arguments: ${problem}`)
  try {
    const request = await runWhileConnected(buildRequest(tool.operation, target.path, given as JsonObject, exchange.request.headers), exchange)
    const { response } = await callTarget(context, target, {
      ...request,
      message: { method: 'tools/call', name: tool.operation.name },
      isRepeatable: request.method === 'GET',
    })
    return await readResult(context, tool, request.path, response)
  } catch (error) {
    if (error instanceof ArgumentError) return errorResult(`Invalid arguments: ${error.message}`)
    const failure = failureClass(error)
    if (failure === undefined || exchange.abortReason !== undefined) throw error
    return errorResult(`The API could not be called: ${failure}`)
  }
}

/** `sent` is the path and query of the request. */
async function readResult(context: CallContext, tool: ApiTool, sent: string, response: ResponseHead): Promise<string> {
  const { status, headers, body } = response
  const isSuccessful = status >= 200 && status <= 299
  const type = (headers.get('content-type') ?? '').toLowerCase()
  let bytes: Buffer
  try {
    bytes = (await readHeldBody(context.exchange, body, MAX_RESPONSE_BYTES)).bytes
  } catch (error) {
    if (error instanceof BodyTooLargeError)
      return errorResult(`${isSuccessful ? '' : `HTTP ${status}. `}The response is larger than ${MAX_RESPONSE_BYTES} bytes`)
    throw error
  }
  if (isSuccessful && /^(?:image|audio)\/[\w.+-]+/.test(type)) return mediaResult(type, bytes)
  // Parsers may ignore it (RFC 8259 §8.1).
  if (bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)) bytes = bytes.subarray(3)
  if (!isSuccessful) return errorResult(describeFailure(status, type, decode(type, bytes)))
  if (bytes.length > 0 && !isText(type)) return errorResult(`The response has the content type ${cut(type, 100) || 'none'}, which is no text, image or audio`)
  if (tool.response !== undefined) return computedResult(context, tool.response, { ...response, body: new BufferBody(bytes) })
  const more = nextPage(tool.operation, headers.get('link'), sent, tool.inputSchema)
  const hint = more === undefined ? [] : [{ type: 'text', text: `There are more results: call again with the arguments ${JSON.stringify(more)}` }]
  return textResult(context, tool, type, decode(type, bytes), hint)
}

/** The result of an expression. Texts are returned as they are, objects as structured content too. */
async function computedResult({ exchange }: CallContext, program: Program, response: ResponseHead): Promise<string> {
  const sent = exchange.fork(exchange.request)
  sent.response = response
  await bufferResponse(sent, MAX_RESPONSE_BYTES, true)
  const value = evalJson(program, new ExchangeView(sent))
  if (value === undefined) return errorResult('The API succeeded, and the gateway could not compute the result from its response')
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return JSON.stringify({ content: [{ type: 'text', text }], ...(isObject(value) && { structuredContent: value }) })
}

/** Results of JSON objects have structured content. With an output schema, clients require it, and that it conforms. */
async function textResult({ exchange }: CallContext, tool: ApiTool, type: string, text: string, hint: readonly object[]): Promise<string> {
  const isJson = text !== '' && (/^application\/(?:[\w.-]+\+)?json\b/.test(type) || tool.output !== undefined)
  const value = isJson ? await runWhileConnected(parse(text, exchange.jsonLimits), exchange) : undefined
  const content = JSON.stringify([{ type: 'text', text }, ...hint])
  // Messages have no line breaks, because they may become events.
  const json = /[\r\n]/.test(text) ? JSON.stringify(value) : text
  if (tool.output === undefined) return isObject(value) ? `{"content":${content},"structuredContent":${json}}` : `{"content":${content}}`
  const structured = text === '' ? {} : value
  const problem = isObject(structured) ? await runWhileConnected(tool.output.check(structured, 'result'), exchange) : 'it is not a JSON object'
  if (problem === undefined) return `{"content":${content},"structuredContent":${text === '' ? '{}' : json}}`
  const note = `The API succeeded, and its response does not match its description: ${problem}`
  return `{"content":${JSON.stringify([
    { type: 'text', text: note },
    { type: 'text', text },
  ])},"isError":true}`
}

/** Undefined if the text is not JSON, or exceeds the limits of JSON. */
function* parse(text: string, limits: CallContext['exchange']['jsonLimits']): Generator<undefined, unknown, undefined> {
  try {
    return yield* parseInSteps(text, limits)
  } catch {
    return undefined
  }
}

/** Text of the charset of the content type, UTF-8 by default. */
function decode(type: string, bytes: Buffer): string {
  const [, charset = 'utf-8'] = /;\s*charset="?([\w.:-]+)/.exec(type) ?? []
  if (charset === 'utf-8' || charset === 'us-ascii') return bytes.toString()
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    return bytes.toString()
  }
}

function mediaResult(type: string, bytes: Buffer): string {
  const [mimeType = ''] = type.split(';')
  const kind = mimeType.startsWith('image/') ? 'image' : 'audio'
  return JSON.stringify({ content: [{ type: kind, data: bytes.toString('base64'), mimeType: mimeType.trim() }] })
}

/** Redirects are not followed: the document does not decide where requests go, and neither does the API. */
function describeFailure(status: number, type: string, body: string): string {
  if (status === 304) return 'HTTP 304: not modified. The resource meets the condition of the request, such as If-None-Match, and the response has no content'
  if (status >= 300 && status <= 399) return `HTTP ${status}: a redirect, which is not followed`
  const text = isText(type) ? body : ''
  return text === '' ? `HTTP ${status}` : `HTTP ${status}\n${cut(text, MAX_ERROR_CHARS)}`
}

const isText = (type: string): boolean =>
  type === '' || /^text\/|^application\/(?:[\w.-]+\+)?(?:json|xml|(?:x-)?yaml|x-ndjson|javascript|x-www-form-urlencoded)\b/.test(type)

const cut = (text: string, length: number): string => (text.length > length ? `${text.slice(0, length).toWellFormed()}... (${text.length} characters)` : text)

const errorResult = (text: string): string => JSON.stringify({ content: [{ type: 'text', text }], isError: true })
