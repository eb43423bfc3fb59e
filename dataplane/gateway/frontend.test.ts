import { describe, expect, test } from '@jest/globals'
import type { Authorization, Frontend, Policy } from '#gen/config/types.ts'
import { connectionSettings, effectiveFrontend, heldBytesLimit, proxyProtocolSettings, tlsSettings, type EffectiveFrontend } from './frontend.ts'
import { indexPolicies } from '../config/merge.ts'
import { defaultHeldBytes } from '../runtime/memory.ts'

const gateway = { namespace: 'ns', name: 'gw' }
const policy = (name: string, frontend: Frontend, month = 1): Policy => ({
  key: `frontend/ns/${name}:0`,
  policy: { kind: 'ProxyPolicy', namespace: 'ns', name },
  creationTimestamp: `2026-0${month}-01T00:00:00Z`,
  target: { kind: 'Gateway', ...gateway },
  frontend,
})
const merge = (...policies: Policy[]): EffectiveFrontend => effectiveFrontend(indexPolicies(new Map(policies.map((one) => [one.key, one]))), gateway)

describe('frontend policies', () => {
  test('merge by field, and the oldest policy wins', () => {
    const old = policy('a', { http: { http1MaxHeaders: 10 } }, 1)
    const young = policy('b', { http: { http1MaxHeaders: 20 }, tls: { minProtocolVersion: '1.3' } }, 2)
    expect(merge(young, old)).toEqual({ http: { http1MaxHeaders: 10 }, tls: { minProtocolVersion: '1.3' } })
    expect(merge()).toEqual({})
  })

  test.each<[string, EffectiveFrontend, object]>([
    ['a limit of header lines', { http: { http1MaxHeaders: 7 } }, { http1: { limits: { maxHeaders: 7, maxHeadBytes: 16_384 } } }],
    [
      'a limit of many header lines, which raises the limit of bytes',
      { http: { http1MaxHeaders: 4096 } },
      { http1: { limits: { maxHeaders: 4096, maxHeadBytes: 262_144 } } },
    ],
    ['an idle timeout, which is the timeout of heads too', { http: { http1IdleTimeout: '5s' } }, { http1: { timeouts: { idleMs: 5000, headMs: 5000 } } }],
    [
      'windows and frames',
      { http: { http2WindowSize: 1, http2ConnectionWindowSize: 2, http2FrameSize: 16_384 } },
      { http2: { streamWindow: 1, connectionWindow: 2, maxFrame: 16_384 } },
    ],
    ['keepalive pings', { http: { http2KeepaliveInterval: '1m', http2KeepaliveTimeout: '3s' } }, { http2: { keepAliveMs: 60_000, keepAliveTimeoutMs: 3000 } }],
    [
      'names with underscores',
      { http: { headersWithUnderscores: 'Drop' } },
      { http1: { limits: { maxHeaders: 100, maxHeadBytes: 16_384, underscores: 'Drop' } }, http2: { underscores: 'Drop' } },
    ],
    ['age', { http: { maxConnectionDuration: '1h' } }, { maxConnectionMs: 3_600_000 }],
    ['a handshake timeout', { tls: { handshakeTimeout: '100ms' } }, { handshakeMs: 100 }],
    ['TCP keepalive with its defaults', { tcp: { keepalive: { retries: 3 } } }, { keepAlive: { timeMs: 180_000, intervalMs: 180_000, retries: 3 } }],
  ])('%s', (_, frontend, expected) => expect(connectionSettings(frontend)).toMatchObject(expected))

  test('limit buffered bodies by the smallest maxHeldBytes of all Gateways, or by the default', () => {
    const other = { namespace: 'ns', name: 'other' }
    const limit = (...policies: Policy[]): number => heldBytesLimit(indexPolicies(new Map(policies.map((one) => [one.key, one]))), [gateway, other])
    const own = policy('a', { http: { maxHeldBytes: 7 } })
    const others = { ...policy('b', { http: { maxHeldBytes: 5 } }), target: { kind: 'Gateway' as const, ...other } }
    expect([limit(), limit(own), limit(own, others)]).toEqual([defaultHeldBytes(), 7, 5])
  })

  test('set TLS versions, cipher suites and ALPN', () => {
    const tls = { minProtocolVersion: '1.2', maxProtocolVersion: '1.3', cipherSuites: ['TLS13_AES_128_GCM_SHA256'], alpnProtocols: ['h2'] } as const
    expect(tlsSettings({ tls: { ...tls, cipherSuites: [...tls.cipherSuites], alpnProtocols: [...tls.alpnProtocols] } })).toEqual({
      minVersion: 'TLSv1.2',
      maxVersion: 'TLSv1.3',
      cipherSuites: ['TLS13_AES_128_GCM_SHA256'],
      alpn: ['h2'],
    })
    expect(tlsSettings({})).toEqual({})
  })

  test('accumulate network authorization rules, oldest first', () => {
    const deny: Authorization = { action: 'Deny', policy: { matchExpressions: ['x'] } }
    const allow = { policy: { matchExpressions: ['true'] } }
    const rules = merge(policy('b', { networkAuthorization: allow }, 2), policy('a', { networkAuthorization: deny }, 1))
    expect(rules.networkAuthorization).toEqual([deny, allow])
  })

  test('default to PROXY protocol version 2 in strict mode', () => {
    expect(proxyProtocolSettings({})).toBeUndefined()
    expect(proxyProtocolSettings({ proxyProtocol: {} })).toEqual({ version: 'V2', mode: 'Strict' })
    expect(proxyProtocolSettings({ proxyProtocol: { version: 'All', mode: 'Optional' } })).toEqual({ version: 'All', mode: 'Optional' })
  })
})
