import { evalStored, evalString, type Program } from '#api/cel/index.ts'
import { fetchDestination, type CalloutResponse } from '../../net/callout/http.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { bufferedRequest, bufferResponse } from '../../request/expression/buffer.ts'
import { toFieldValue } from '../../request/expression/message.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import { BufferBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { ownHeaders } from '../../http/own-headers.ts'
import { isFieldValue, isOriginForm, isToken } from '../../http/syntax.ts'
import { beginCall } from '../../observe/telemetry/metrics/call.ts'
import type { Registry } from '../../observe/telemetry/metrics/registry.ts'
import type { Destination } from '../../net/upstream/destination.ts'
import { framingFields } from '../../request/exchange/fields.ts'
import { keepMetadata, type Decision } from './decision.ts'

const TIMEOUT_MS = 2000
const LIMIT_BYTES = 2 * 1024 * 1024

type Computed = readonly (readonly [key: string, program: Program])[]

/** The request to an HTTP authorization server and the use of its response. Header names are in lower case. */
export interface HttpPlan {
  readonly path: Program | undefined
  readonly redirect: Program | undefined
  readonly requestHeaders: readonly string[]
  readonly addedHeaders: Computed
  readonly responseHeaders: readonly string[] | 'all'
  readonly metadata: Computed
  readonly sendsBody: boolean
  readonly sendsHost: boolean
}

/** Checks a request by HTTP (traffic.md §8.7): 200 allows, any other response is returned to the client. Rejects if the call fails. */
export async function checkByHttp(exchange: Exchange, destination: Destination, plan: HttpPlan, registry: Registry): Promise<Decision> {
  const { request } = exchange
  const view = new ExchangeView(exchange)
  const target = plan.path === undefined ? request.target : evalString(plan.path, view)
  if (target === undefined || !isOriginForm(target)) throw new ProxyError('EXT_AUTH')
  const headers = headersOf(exchange, plan, view)
  const buffered = plan.sendsBody ? bufferedRequest(exchange) : undefined
  const body = plan.sendsBody ? (buffered?.prefix ?? Buffer.alloc(0)) : undefined
  if (buffered?.coded !== undefined) headers.remove('content-encoding')
  if (body !== undefined) headers.set(ownHeaders.partialBody, 'false')
  const call = beginCall(registry, exchange, 'Policy', 'ExtAuthz', { method: request.method, host: destination.name, path: target })
  if (call.traceparent !== undefined) headers.set('traceparent', call.traceparent)
  const authority = plan.sendsHost ? request.authority : undefined
  try {
    const callout = { method: request.method, target, headers, body, authority }
    const answer = await fetchDestination(destination, callout, { timeoutMs: TIMEOUT_MS, limitBytes: LIMIT_BYTES, exchange, isGuarded: true })
    call.end({ status: answer.status })
    return await decide(exchange, plan, answer)
  } catch (error) {
    call.end({ error: error as Error })
    throw error
  }
}

function headersOf({ request }: Exchange, { requestHeaders, addedHeaders }: HttpPlan, view: ExchangeView): HeaderList {
  const headers = new HeaderList()
  for (const name of requestHeaders) for (const value of request.headers.getAll(name)) headers.append(name, value)
  for (const [name, program] of addedHeaders) {
    const text = evalString(program, view)
    const value = text === undefined ? undefined : toFieldValue(text).trim()
    // A client's own value must not be used in place of a failed one.
    if (value === undefined || !isFieldValue(value)) headers.remove(name)
    else headers.set(name, value)
  }
  return headers
}

/** Whether a header may be sent or copied. Excludes framing headers, Host and pseudo headers. */
export function isCopied(name: string): boolean {
  return isToken(name) && name !== 'host' && !framingFields.has(name)
}

async function decide(exchange: Exchange, plan: HttpPlan, answer: CalloutResponse): Promise<Decision> {
  await computeMetadata(exchange, plan.metadata, answer)
  const { status, headers, body } = answer
  if (status === 200) {
    copyHeaders(exchange, plan, headers)
    return {}
  }
  const location = plan.redirect !== undefined && (status === 401 || status === 403) ? evalString(plan.redirect, new ExchangeView(exchange)) : undefined
  if (location === undefined || !isFieldValue(toFieldValue(location))) return { answer: { status, headers, body } }
  return { answer: { status: 302, headers: new HeaderList(['location', toFieldValue(location)]), body: Buffer.alloc(0) } }
}

/** Copies configured headers of the server to the request. Headers that the server did not send are removed, so that clients cannot forge them. */
function copyHeaders({ request }: Exchange, { responseHeaders }: HttpPlan, answered: HeaderList): void {
  const names = responseHeaders === 'all' ? new Set([...answered].map(([name]) => name).filter(isCopied)) : responseHeaders
  for (const name of names) {
    request.headers.remove(name)
    for (const value of answered.getAll(name)) request.headers.append(name, value)
  }
}

/** Evaluates metadata with `request` and the server's response as `response`. Failed values are left out. */
async function computeMetadata(exchange: Exchange, programs: Computed, { status, headers, body }: CalloutResponse): Promise<void> {
  if (programs.length === 0) return
  const before = exchange.response
  exchange.response = { status, headers, body: new BufferBody(body), upgraded: undefined }
  try {
    await bufferResponse(exchange, LIMIT_BYTES, true)
    const view = new ExchangeView(exchange)
    const values = programs.map(([key, program]) => [key, evalStored(program, view)] as const).filter(([, value]) => value !== undefined)
    keepMetadata(exchange, Object.fromEntries(values))
  } finally {
    exchange.response = before
  }
}
