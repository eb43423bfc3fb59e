import { evalString } from '#api/cel/index.ts'
import type { HttpCache as Section } from '#gen/config/types.ts'
import { discardResponse } from '../../request/exchange/compose.ts'
import type { Policy } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { variables } from '../../request/exchange/variables.ts'
import { compileExpression } from '../../request/expression/program.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import type { ResponseHead } from '../../http/message.ts'
import { setLogField } from '../../observe/telemetry/access-log/access-log.ts'
import { valueStores } from '../../runtime/value-store.ts'
import type { PolicyState } from '../state.ts'
import { directivesOf, secondsOf, type Directives } from './directives.ts'
import { cacheMetrics, type CacheResult } from './metrics.ts'
import { record } from './record.ts'
import { ageMsOf, isAbout, refreshed, replay } from './replay.ts'
import { RemoteResponses } from './remote.ts'
import { hasValidator, storableOf, type Times } from './storable.ts'
import { digestOf, HttpCache, type CachedResponse, type CacheKey, type ResponseStore } from './store.ts'

/** Whether responses of the backend of a request are shared: if the upstream says that they may be, only if it says so explicitly, never. */
export type Sharing = 'permitted' | 'explicit' | 'never'

/** What the chain knows besides the section. */
export interface CacheOptions {
  /** Of the backend that the rule picked. */
  readonly sharingOf: (exchange: Exchange) => Sharing
  /** Policies of the chain make requests that depend on more than what the client sent. */
  readonly isPersonal: boolean
}

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])
/** Requests with one of these are not for a cache, or ask for a part. */
const bypassing = ['range', 'if-match', 'if-unmodified-since', 'if-range']
const conditional = ['if-none-match', 'if-modified-since']
const STATUS = 'cache-status'

/**
 * A shared cache of responses to GET requests (traffic.md §8.15, RFC 9111). Stores what the upstream declares as shareable and fresh, revalidates it when it
 * is stale, and drops it when another method changed the URI. Everything in doubt is forwarded.
 *
 * @throws ProxyError CACHE_ONLY (504), for `only-if-cached` without a stored response.
 * @example
 * traffic:
 *   cache:
 *     tenant: jwt.org
 */
export function compileCache(section: Section, state: PolicyState, { sharingOf, isPersonal }: CacheOptions): Policy {
  const { registry, monotonicMs, epochMs } = state
  const values = section.store === 'Redis' ? valueStores.get(registry) : undefined
  const cache: ResponseStore = values === undefined ? HttpCache.of(state) : new RemoteResponses(values, state)
  const tenant = section.tenant === undefined ? undefined : compileExpression(section.tenant, 'request')
  const scope = JSON.stringify(section)

  const keyOf = (exchange: Exchange, isShared: boolean): CacheKey | undefined => {
    const { request, labels, picked } = exchange
    const of = tenant === undefined ? '' : evalString(tenant, new ExchangeView(exchange))
    if (of === undefined || (of === '' && tenant !== undefined)) return undefined
    return { uri: uriOf(exchange), group: digestOf([scope, labels, picked?.destination.type, picked?.destination.name, request.scheme, of, isShared]) }
  }
  const note = (exchange: Exchange, result: CacheResult, status: string): void => {
    setLogField(exchange, 'proxy.cache', result)
    cacheMetrics(registry).results(result).value++
    const { response } = exchange
    if (response !== undefined && response.upgraded === undefined) response.headers.append(STATUS, `proxy; ${status}`)
  }
  const respond = (exchange: Exchange, cached: CachedResponse, result: CacheResult, status: string): void => {
    const nowMs = monotonicMs()
    exchange.response = replay(cached, exchange.request.headers, nowMs)
    note(exchange, result, `${status}; ttl=${Math.floor((cached.freshness.lifetimeMs - ageMsOf(cached, nowMs)) / 1000)}`)
  }

  return async (c, next) => {
    const { exchange } = c.var
    const { request } = exchange
    if (request.method !== 'GET') {
      if (safeMethods.has(request.method)) return next()
      const uri = uriOf(exchange)
      await next()
      if (hasChanged(exchange)) cache.invalidate(uri)
      return undefined
    }
    const sharing = sharingOf(exchange)
    if (sharing === 'never') return next()
    const directives = directivesOf(request.headers)
    // What was stored for anonymous clients is no response to others, and vice versa.
    const isShared = sharing === 'permitted' && !isPersonal && !hasCredentials(exchange)
    const key = directives === undefined || directives.has('no-store') || isBypassing(exchange) ? undefined : keyOf(exchange, isShared)
    if (key === undefined || directives === undefined) {
      await next()
      note(exchange, 'bypass', 'fwd=bypass')
      return undefined
    }
    const found = await cache.find(key, request.headers)
    const isKnown = typeof found === 'object'
    const isUsable = isKnown && isFresh(found, monotonicMs())
    if (isUsable && isAccepted(found, request.headers.has('pragma'), directives, monotonicMs())) return void respond(exchange, found, 'hit', 'hit')
    if (directives.has('only-if-cached')) throw new ProxyError('CACHE_ONLY')
    // Selecting headers are those of the client: the request is changed for the upstream below.
    const client = request.headers.clone()
    const why = isKnown ? (isUsable ? 'request' : 'stale') : found
    const times = { requestedAtMs: epochMs(), receivedAtMs: 0 }
    const isAsked = isKnown && hasValidator(found.headers)
    if (isAsked) setConditions(exchange, found)
    await next()
    let isRevalidated = isAsked && isUpstreamResponse(exchange) && exchange.response?.status === 304
    if (isAsked && isRevalidated && !isAbout(found.headers, exchange.response?.headers)) {
      isRevalidated = false
      await cache.remove(key, client)
      prepareToAskAgain(exchange)
      times.requestedAtMs = epochMs()
      await next()
    }
    if (isAsked) restoreConditions(exchange, client)
    const { response } = exchange
    times.receivedAtMs = epochMs()
    if (response === undefined || !isUpstreamResponse(exchange)) return undefined
    if (isAsked && response.status === 304) {
      // Without conditions there is nothing that was not modified.
      if (!isRevalidated) throw new ProxyError('UPSTREAM_FAILED', { detail: 'protocol error' })
      const current = refresh(found, response, times, isShared)
      if (current.isStored) cache.store(key, client, current.storable, current.cached)
      else await cache.remove(key, client)
      return void respond(exchange, current.cached, 'revalidated', `fwd=${why}; fwd-status=304`)
    }
    if (isKnown && response.status < 500) await cache.remove(key, client)
    const storable = storableOf(response, !isShared, times)
    if (storable !== undefined) {
      const save = ({ status, headers }: Pick<CachedResponse, 'status' | 'headers'>, body: Buffer): void =>
        cache.store(key, client, storable, { status, headers, body, freshness: storable.freshness, storedAtMs })
      const storedAtMs = monotonicMs()
      record(exchange, response, save)
    }
    note(exchange, 'miss', `fwd=${why}`)
    return undefined
  }

  /** The stored response after a 304, and whether it may stay stored. */
  function refresh(found: CachedResponse, received: ResponseHead, times: Times, isShared: boolean) {
    const headers = refreshed(found.headers, received.headers)
    const { status } = found
    const storable = storableOf({ status, headers, upgraded: undefined }, !isShared, times)
    const freshness = storable?.freshness ?? { lifetimeMs: 0, initialAgeMs: 0 }
    const cached: CachedResponse = { ...found, headers, freshness, storedAtMs: monotonicMs() }
    return storable === undefined ? { cached, isStored: false as const } : { cached, isStored: true as const, storable }
  }
}

/** The URI that the upstream receives. */
function uriOf({ request, labels }: Exchange): string {
  return digestOf([labels?.gateway, request.authority.toLowerCase(), request.target])
}

/** Whether a request with another method may have changed its URI. */
function hasChanged({ response, error }: Exchange): boolean {
  return error === undefined && response !== undefined && response.status >= 200 && response.status < 400
}

function isBypassing({ request: { headers, body, upgrade } }: Exchange): boolean {
  return body !== undefined || upgrade !== undefined || bypassing.some((name) => headers.has(name))
}

/** Whether the client sent credentials that the response may depend on, also if a policy checked and removed them. */
function hasCredentials(exchange: Exchange): boolean {
  const { headers } = exchange.request
  if (headers.has('authorization') || headers.has('cookie') || headers.has('proxy-authorization')) return true
  return [variables.jwt, variables.apiKey, variables.basicAuth, variables.extauthz, variables.extproc].some((slot) => slot.get(exchange) !== undefined)
}

/** Whether the client accepts a stored response of this age. */
function isAccepted(found: CachedResponse, hasPragma: boolean, directives: Directives, nowMs: number): boolean {
  if (directives.has('no-cache') || (hasPragma && directives.size === 0)) return false
  const ageMs = ageMsOf(found, nowMs)
  const maxAge = secondsOf(directives, 'max-age')
  const minFresh = secondsOf(directives, 'min-fresh') ?? 0
  return (maxAge === undefined || ageMs <= maxAge * 1000) && ageMs + minFresh * 1000 <= found.freshness.lifetimeMs
}

const isFresh = (found: CachedResponse, nowMs: number): boolean => ageMsOf(found, nowMs) < found.freshness.lifetimeMs

const isUpstreamResponse = ({ error, isLocalAnswer }: Exchange): boolean => error === undefined && !isLocalAnswer

function removeConditions({ request }: Exchange): void {
  for (const name of conditional) request.headers.remove(name)
}

/** The upstream has another response than the stored one: the request is sent again without conditions. */
function prepareToAskAgain(exchange: Exchange): void {
  removeConditions(exchange)
  discardResponse(exchange)
}

/** Asks the upstream whether the stored response is current, instead of the client's own conditions, which are evaluated afterwards. */
function setConditions(exchange: Exchange, { headers }: CachedResponse): void {
  const { request } = exchange
  removeConditions(exchange)
  const etag = headers.get('etag')
  const modified = headers.get('last-modified')
  if (etag !== undefined) request.headers.append('if-none-match', etag)
  if (modified !== undefined) request.headers.append('if-modified-since', modified)
}

function restoreConditions({ request }: Exchange, client: Exchange['request']['headers']): void {
  for (const name of conditional) {
    request.headers.remove(name)
    for (const value of client.getAll(name)) request.headers.append(name, value)
  }
}
