import { toDashes, type HeaderList } from './headers.ts'

/** Request headers that only the gateway writes or reads as its own, by what they hold (traffic.md §5 step 1). */
export const ownHeaders = {
  clientCertificate: 'x-forwarded-client-cert',
  endpoint: 'x-gateway-destination-endpoint',
  loop: 'x-proxy-loop',
  model: 'x-proxy-llm-model',
  partialBody: 'x-envoy-auth-partial-body',
  retryAttempt: 'x-retry-attempt',
  traceId: 'x-proxy-trace-id',
} as const

const forwarding: ReadonlySet<string> = new Set(['forwarded', 'x-real-ip', 'x-request-id'])
const FORWARDED = 'x-forwarded-'

const names: ReadonlySet<string> = new Set(Object.values(ownHeaders))
const F = 0x66
const X = 0x78

/** Whether a field (lower case) is one that only the gateway writes, in any spelling with underscores. */
export function isOwnHeader(name: string): boolean {
  return name.charCodeAt(0) === X && names.has(toDashes(name))
}

/** Whether a field (lower case) says where a request is from, which only the gateway and trusted proxies may, in any spelling with underscores. */
export function isForwardingHeader(name: string): boolean {
  const first = name.charCodeAt(0)
  if (first !== X && first !== F) return false
  const dashed = toDashes(name)
  return (dashed.startsWith(FORWARDED) && dashed !== ownHeaders.clientCertificate) || forwarding.has(dashed)
}

/** Removes what says where a request is from, for upstreams that are not meant to know it. What a policy set is kept. */
export function removeForwardingHeaders(headers: HeaderList): void {
  headers.removeWhere((name) => isForwardingHeader(name) && !headers.isChanged(name))
}
