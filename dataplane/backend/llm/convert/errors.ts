import { printJson } from '../common/json.ts'
import { typeOfGoogleStatus, writeGoogleError } from '../common/google-status.ts'
import { inside, textOf } from '../common/read.ts'
import { isGeminiFormat, type ClientFormat, type JsonObject } from '../common/types.ts'
import { isMessagesError } from '../formats/messages/events.ts'
import { parseLeniently } from '../stream/native.ts'

/** An upstream's error, in neutral form (llm.md §9). */
interface ParsedError {
  readonly shape: 'openai' | 'anthropic' | 'google' | 'bedrock' | 'other'
  readonly message: string
  /** `type` of OpenAI and Anthropic. */
  readonly type: string | undefined
  /** `status` of Google, such as RESOURCE_EXHAUSTED. */
  readonly status: string | undefined
}

interface ErrorBody {
  readonly body: string
  readonly contentType: string
  /** The error has the shape of no API. */
  readonly isUnknown: boolean
}

/** Limits error pages of load balancers, because clients log messages. */
const MAX_MESSAGE_LENGTH = 2000

const errorTypeByStatus: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
}
const messagesTypeByStatus: Readonly<Record<number, string>> = {
  ...errorTypeByStatus,
  413: 'request_too_large',
  504: 'timeout_error',
  529: 'overloaded_error',
}

/** The type of an error of OpenAI's APIs. */
function openaiType(status: number): string {
  return errorTypeByStatus[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error')
}

/** The type of an error of the Messages API. */
function messagesType(status: number): string {
  return messagesTypeByStatus[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}

/**
 * Translates the body of a non-2xx response to the client's format; undefined if it is in that format already. The shape of the body
 * decides, not the provider: compatible endpoints return errors in their own shape.
 */
export function translateError(client: ClientFormat, isNative: boolean, status: number, body: Buffer): ErrorBody | undefined {
  const text = body.toString()
  const problem = readProblem(text, status)
  const written = isGeminiFormat(client)
    ? toGoogle(isNative, problem, status)
    : client === 'messages' || client === 'tokenCount'
      ? toMessages(problem, status)
      : toOpenai(client, isNative, problem, status)
  return written && { body: printJson(written), contentType: 'application/json', isUnknown: problem.shape === 'other' }
}

function readProblem(text: string, status: number): ParsedError {
  const parsed = parseLeniently(text)
  const body = inside(Array.isArray(parsed) && parsed.length === 1 ? (parsed as unknown[])[0] : parsed)
  const error = body['error']
  const details = inside(error)
  const message = textOf(details['message'])
  const type = textOf(details['type'])
  if (message !== undefined) {
    const problem = { message, type, status: textOf(details['status']) }
    if (body['type'] === 'error') return { shape: 'anthropic', ...problem }
    return { shape: problem.status !== undefined || Array.isArray(parsed) ? 'google' : 'openai', ...problem }
  }
  const bare = textOf(body['message']) ?? textOf(body['Message']) ?? textOf(error)
  if (bare !== undefined) return { shape: 'bedrock', message: bare, type: undefined, status: undefined }
  const wrapped = text.trim().slice(0, MAX_MESSAGE_LENGTH)
  return { shape: 'other', message: wrapped === '' ? `the upstream returned status ${status}` : wrapped, type: undefined, status: undefined }
}

/** Errors of compatible endpoints of Google are in a list. */
function toGoogle(isNative: boolean, { shape, message, status: google }: ParsedError, status: number): JsonObject | undefined {
  return isNative && shape === 'google' ? undefined : writeGoogleError(status, message, google)
}

function toMessages({ shape, message, type, status: google }: ParsedError, status: number): JsonObject | undefined {
  if (shape === 'anthropic' && type !== undefined) return undefined
  const known = google === undefined ? (isMessagesError(type) ? type : undefined) : typeOfGoogleStatus(google)
  return { type: 'error', error: { type: known ?? messagesType(status), message } }
}

/** Native errors of these formats pass as they are, whatever their shape: their servers are of many vendors. */
const keepsErrors: ReadonlySet<ClientFormat> = new Set(['embeddings', 'rerank', 'moderations'])

function toOpenai(client: ClientFormat, isNative: boolean, { shape, message, type, status: google }: ParsedError, status: number): JsonObject | undefined {
  switch (shape) {
    case 'openai':
      return undefined
    case 'google':
      if (isNative && keepsErrors.has(client)) return undefined
      return { error: { type: type ?? typeOfGoogleStatus(google) ?? openaiType(status), message, param: null, code: google ?? String(status) } }
    case 'other':
      return isNative ? undefined : { error: { type: openaiType(status), message } }
    case 'anthropic':
    case 'bedrock':
      // SDKs read the message of a member `error` only; vLLM has none.
      return isNative && keepsErrors.has(client) ? undefined : { error: { type: openaiType(status), message } }
  }
}
