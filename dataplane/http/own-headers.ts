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

const names: ReadonlySet<string> = new Set(Object.values(ownHeaders))
const X = 0x78

/** Whether a field (lower case) is one that only the gateway writes, in any spelling with underscores. */
export function isOwnHeader(name: string): boolean {
  return name.charCodeAt(0) === X && names.has(toDashes(name))
}

/** Removes what a client sent as if it were the gateway. */
export function removeOwnHeaders(headers: HeaderList): void {
  const { raw } = headers
  for (let i = raw.length - 2; i >= 0; i -= 2) {
    const name = raw[i] ?? ''
    if (!isOwnHeader(name)) continue
    headers.remove(name)
    i = raw.length
  }
}
