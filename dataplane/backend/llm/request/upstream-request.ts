import { setRetryHeader } from '../../forward/retry.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { BufferBody, type Body } from '../../../http/body.ts'
import type { HeaderList } from '../../../http/headers.ts'
import { pathOf, queryOf, withoutDefaultPort, type RequestHead } from '../../../http/message.ts'
import { transformForBackend, backendTransformation } from '../../../request/transformation/backend.ts'
import { authenticate, brokenAuth, fetchCredentials, isFetched, signRequest } from '../../../net/upstream/auth.ts'
import { acceptableCodings } from '../../../http/coding.ts'
import { isGeminiFormat, type ClientFormat, type UpstreamFormat } from '../common/types.ts'
import { fitHeaders, fitQuery } from '../rules/transport.ts'
import type { QueryRule, TargetRules } from '../rules/types.ts'
import type { LlmTarget } from '../choice/target.ts'
import { variables } from '../../../request/exchange/variables.ts'

/** The path and body to send to a provider. */
export interface Draft {
  /** Path, optionally with a query; undefined for the client's path and query. */
  readonly path: string | undefined
  /** Formats and rules of the request; undefined if the body is not interpreted. */
  readonly api?: { readonly from: ClientFormat; readonly to: UpstreamFormat; readonly rules: TargetRules }
  /** Buffers are consecutive pieces of JSON. */
  readonly body: readonly Buffer[] | Body | undefined
  /** How the response will be read, which limits `accept-encoding`: to supported codings for `buffered`, to none for `stream`. */
  readonly reads: 'buffered' | 'stream' | 'nothing'
}

/**
 * Builds the request for one attempt: target, authority, credentials, headers that the provider requires, backend transformation,
 * and the signature last (llm.md §2 steps 11 to 13). `endpoint` is `host:port`. Rejects with a ProxyError.
 */
export async function buildUpstreamRequest(
  exchange: Exchange,
  target: LlmTarget,
  endpoint: string,
  draft: Draft,
  maxBufferBytes: number,
): Promise<RequestHead> {
  const { provider, destination } = target
  const { settings } = destination
  const headers = exchange.request.headers.clone()
  setRetryHeader(headers, exchange.retryAttempt)
  const body = isBytes(draft.body) ? new BufferBody(draft.body) : draft.body
  if (isBytes(draft.body)) prepareBodyHeaders(headers)
  if (draft.reads !== 'nothing') limitCodings(headers, draft.reads)
  if (draft.api !== undefined) fitHeaders(headers, draft.api.from, draft.api.to, draft.api.rules)
  const request: RequestHead = {
    method: exchange.request.method,
    target: targetOf(exchange.request.target, target.path, draft, settings.auth !== undefined),
    scheme: settings.tls === undefined ? 'http' : 'https',
    // The provider's host, unless a policy fixes the authority (traffic.md §8.11).
    authority: exchange.isAuthorityFixed ? exchange.request.authority : withoutDefaultPort(endpoint, settings.tls !== undefined),
    version: 'HTTP/1.1',
    headers,
    body,
    upgrade: exchange.request.upgrade,
    acceptsTrailers: exchange.request.acceptsTrailers,
    loop: exchange.request.loop,
  }
  // A failure to authenticate happens before the transformation and must not apply its response side.
  backendTransformation.set(exchange, undefined)
  const { auth } = settings
  const hints = { signing: provider.signing, scope: provider.tokenScope, exchange }
  if (auth?.kind === 'broken') throw brokenAuth(auth)
  const needsFetch = isFetched(auth)
  if (auth !== undefined) authenticate(headers, auth, exchange)
  if (auth !== undefined && needsFetch) await fetchCredentials(headers, auth, hints)
  provider.finishHeaders?.(headers, draft.api?.from, pathOf(request.target))
  const { transformation } = settings
  if (transformation !== undefined) {
    const sent = exchange.fork(request)
    await transformForBackend(sent, transformation, maxBufferBytes)
    const metadata = variables.metadata.get(sent)
    if (metadata !== undefined) variables.metadata.set(exchange, metadata)
  }
  backendTransformation.set(exchange, transformation)
  if (auth !== undefined && needsFetch) await signRequest(request, auth, hints)
  return request
}

const isBytes = (body: Draft['body']): body is readonly Buffer[] => Array.isArray(body)

function prepareBodyHeaders(headers: HeaderList): void {
  headers.remove('content-length')
  headers.remove('content-encoding')
  headers.remove('expect')
  if (!/^application\/json\b/i.test(headers.get('content-type') ?? '')) headers.set('content-type', 'application/json')
}

function limitCodings(headers: HeaderList, reads: 'buffered' | 'stream'): void {
  const codings = reads === 'stream' ? undefined : acceptableCodings(headers.get('accept-encoding'))
  if (codings === undefined) headers.remove('accept-encoding')
  else headers.set('accept-encoding', codings)
}

/** A configured path replaces the whole target. The provider's own paths keep what it accepts of the client's query (llm.md §4.1). */
function targetOf(client: string, configured: string | undefined, { path: own, api }: Draft, hasAuth: boolean): string {
  if (configured !== undefined) return configured.startsWith('/') ? configured : `/${configured}`
  if (own === undefined) return client
  const query = api === undefined ? queryOf(client) : fitQuery(queryOf(client), hasAuth || isGeminiFormat(api.from) ? queryWithoutKeys(api) : api.rules.query)
  if (query === '') return own
  return `${own}${pathOf(own) === own ? '?' : '&'}${query}`
}

/** Keys of a query with credentials of Google's clients. */
const KEYS = ['key', 'access_token']

/** The query of a client of Google for other APIs is dropped, and its keys beside the credentials of the gateway. */
function queryWithoutKeys({ from, rules: { query } }: NonNullable<Draft['api']>): QueryRule {
  const { only, never } = query
  if (only === undefined) return isGeminiFormat(from) ? { only: [], never } : query
  return { only: only.filter((key) => !KEYS.includes(key)), never }
}
