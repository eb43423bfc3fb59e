import { parseTimeout } from '#api/duration.ts'
import type { Authorization, Frontend, GatewayRef } from '#gen/config/types.ts'
import { requestHeadLimits, type HeadLimits, type Underscores } from '../http/syntax.ts'
import type { ConnectionSettings } from '../net/server/program.ts'
import type { ProxyProtocolSettings } from '../net/server/proxy-protocol.ts'
import type { TlsSettings } from '../net/server/tls.ts'
import { defaultHeldBytes } from '../runtime/memory.ts'
import { targetKey, type PolicyIndex } from '../config/merge.ts'

/** Merged frontend sections, with the network authorization rules of all policies. */
export type EffectiveFrontend = Omit<Frontend, 'networkAuthorization'> & { readonly networkAuthorization?: readonly Authorization[] }

/**
 * Merges the frontend policies of a Gateway: for each field the oldest policy wins; network authorization rules accumulate
 * (traffic.md §4.4). Frontend policies have no sections as targets.
 */
export function effectiveFrontend(index: PolicyIndex, { namespace, name }: GatewayRef): EffectiveFrontend {
  const sections = (index.get(targetKey('Gateway', namespace, name)) ?? []).flatMap(({ frontend }) => frontend ?? [])
  if (sections.length === 0) return nothing
  const { networkAuthorization: _, ...merged } = Object.assign({}, ...sections.toReversed()) as Frontend
  const rules = sections.flatMap(({ networkAuthorization }) => networkAuthorization ?? [])
  return rules.length === 0 ? merged : { ...merged, networkAuthorization: rules }
}

/** The limit of buffered bodies of the process: the smallest of all Gateways, or the default (traffic.md §10). */
export function heldBytesLimit(index: PolicyIndex, gateways: Iterable<GatewayRef>): number {
  const limits = [...gateways].flatMap((gateway) => effectiveFrontend(index, gateway).http?.maxHeldBytes ?? [])
  return limits.length === 0 ? defaultHeldBytes() : Math.min(...limits)
}

const nothing: EffectiveFrontend = {}
const HEAD_BYTES_PER_LINE = 64

/** PROXY protocol with its defaults (traffic.md §10). */
export function proxyProtocolSettings({ proxyProtocol }: EffectiveFrontend): ProxyProtocolSettings | undefined {
  return proxyProtocol && { version: 'V2', mode: 'Strict', ...proxyProtocol }
}

/** Settings of client connections; absent fields leave the defaults of the server (traffic.md §10). */
export function connectionSettings({ tcp, tls, http }: EffectiveFrontend): ConnectionSettings {
  const idleMs = parseTimeout(http?.http1IdleTimeout)
  const handshakeMs = parseTimeout(tls?.handshakeTimeout)
  const keepalive = tcp?.keepalive
  return {
    http1: {
      ...((http?.http1MaxHeaders ?? http?.headersWithUnderscores) !== undefined && { limits: headLimits(http?.http1MaxHeaders, http?.headersWithUnderscores) }),
      // One setting limits both an idle connection and the wait for a request head (decision D8).
      ...(idleMs !== undefined && { timeouts: { idleMs, headMs: idleMs } }),
    },
    http2: {
      ...(http?.http2WindowSize !== undefined && { streamWindow: http.http2WindowSize }),
      ...(http?.http2ConnectionWindowSize !== undefined && { connectionWindow: http.http2ConnectionWindowSize }),
      ...(http?.http2FrameSize !== undefined && { maxFrame: http.http2FrameSize }),
      ...setting('keepAliveMs', parseTimeout(http?.http2KeepaliveInterval)),
      ...setting('keepAliveTimeoutMs', parseTimeout(http?.http2KeepaliveTimeout)),
      ...setting('tunnelIdleMs', idleMs),
      ...(http?.headersWithUnderscores !== undefined && { underscores: http.headersWithUnderscores }),
    },
    ...(handshakeMs !== undefined && { handshakeMs }),
    maxConnectionMs: parseTimeout(http?.maxConnectionDuration),
    ...(keepalive !== undefined && {
      keepAlive: { timeMs: parseTimeout(keepalive.time) ?? 180_000, intervalMs: parseTimeout(keepalive.interval) ?? 180_000, retries: keepalive.retries ?? 9 },
    }),
  }
}

/** Raises the limit of bytes along with the limit of lines. */
function headLimits(maxHeaders = requestHeadLimits.maxHeaders, underscores?: Underscores): HeadLimits {
  return { ...requestHeadLimits, maxHeaders, maxHeadBytes: Math.max(requestHeadLimits.maxHeadBytes, maxHeaders * HEAD_BYTES_PER_LINE), underscores }
}

/** TLS settings of a Gateway's listeners; absent fields leave the defaults. */
export function tlsSettings({ tls }: EffectiveFrontend): Partial<TlsSettings> {
  return {
    ...(tls?.alpnProtocols !== undefined && { alpn: tls.alpnProtocols }),
    ...(tls?.minProtocolVersion !== undefined && { minVersion: `TLSv${tls.minProtocolVersion}` as const }),
    ...(tls?.maxProtocolVersion !== undefined && { maxVersion: `TLSv${tls.maxProtocolVersion}` as const }),
    ...(tls?.cipherSuites !== undefined && { cipherSuites: tls.cipherSuites }),
  }
}

function setting<K extends string>(name: K, value: number | undefined): { [P in K]?: number } {
  return value === undefined ? {} : ({ [name]: value } as { [P in K]: number })
}
