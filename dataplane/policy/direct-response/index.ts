import { evalBody, type Program } from '#api/cel/index.ts'
import { publishKeys } from '#api/credentials/signing-key.ts'
import type { DirectResponse, KeySetResponse } from '#gen/config/types.ts'
import { isNullBodyStatus } from '../../request/exchange/answer.ts'
import type { Policy } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import { bufferRequest, MAX_BUFFER_BYTES, releaseRequest } from '../../request/expression/buffer.ts'
import { needsRequestBody, parsesJson } from '../../request/expression/program.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import { compileTransform, computeFields, programsOf } from '../../request/transformation/compile.ts'
import { HeaderList } from '../../http/headers.ts'
import type { PolicyState } from '../state.ts'

/** Time that clients may keep a key set: a next key is published for longer than that before it signs. */
const KEY_SET_SECONDS = 300

/**
 * Responds instead of forwarding (traffic.md §8.11), with a fixed or computed body and computed headers. No content-type is set unless `headers` has one.
 * `keySet`: with the public keys of a Secret of `secrets`.
 *
 * @throws ProxyError FILTER_FAILED (500) if `bodyExpression` fails, or the key of the Secret cannot sign.
 * @example
 * traffic:
 *   directResponse:
 *     status: 503
 *     headers: [{ name: content-type, value: '"application/json"' }]
 *     bodyExpression: '{"path": request.path}'
 */
export function compileDirectResponse(
  { status, body, bodyExpression, headers, keySet }: DirectResponse,
  maxBufferBytes = MAX_BUFFER_BYTES,
  secrets: PolicyState['secrets'] = new Map(),
): Policy {
  if (keySet !== undefined) return respondWithKeys(status, keySet, secrets)
  const init = { status: status as 200 }
  const bytes = body === undefined || isNullBodyStatus(status) ? null : new TextEncoder().encode(body)
  if (bodyExpression === undefined && headers === undefined) return async (c) => (bytes === null ? c.body(null, init) : c.body(bytes, init))

  const transform = compileTransform({ ...(headers && { set: headers }), ...(bodyExpression !== undefined && { body: bodyExpression }) }, 'request')
  const programs = programsOf(transform)
  const [buffers, parses] = [needsRequestBody(programs), parsesJson(programs)]
  return async (c) => {
    const { exchange } = c.var
    if (buffers) await bufferRequest(exchange, maxBufferBytes, parses)
    try {
      const view = new ExchangeView(exchange)
      const computed = new HeaderList()
      computeFields(computed, transform, view, () => undefined)
      const content = transform.body === undefined ? bytes : contentOf(transform.body, view)
      const fields = Object.fromEntries(computed)
      return content === null || isNullBodyStatus(status) ? c.body(null, status as 200, fields) : c.body(content, status as 200, fields)
    } finally {
      if (buffers) releaseRequest(exchange)
    }
  }
}

function contentOf(program: Program, view: ExchangeView): Uint8Array<ArrayBuffer> {
  const content = evalBody(program, view)
  if (content === undefined) throw new ProxyError('FILTER_FAILED', { detail: 'bodyExpression of directResponse failed' })
  return typeof content === 'string' ? new TextEncoder().encode(content) : new Uint8Array(content)
}

function respondWithKeys(status: number, { secretRef }: KeySetResponse, secrets: PolicyState['secrets']): Policy {
  const data = secretRef.secret === undefined ? undefined : secrets.get(secretRef.secret)?.data
  const keys = data === undefined ? 'the Secret of keySet does not resolve' : publishKeys(data)
  const headers = { 'content-type': 'application/jwk-set+json', 'cache-control': `public, max-age=${KEY_SET_SECONDS}` }
  return async (c) => {
    if (typeof keys === 'string') throw new ProxyError('FILTER_FAILED', { detail: keys })
    return isNullBodyStatus(status) ? c.body(null, status as 204) : c.body(keys.text, status as 200, headers)
  }
}
