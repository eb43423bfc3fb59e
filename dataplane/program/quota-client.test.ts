import { create } from '@bufbuild/protobuf'
import { ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import type { Backend, Budget } from '#gen/config/types.ts'
import {
  RateLimitQuotaResponseSchema,
  RateLimitQuotaService,
  type RateLimitQuotaResponse,
  type RateLimitQuotaUsageReports,
} from '#gen/proto/envoy/service/rate_limit_quota/v3/rlqs_pb.js'
import { until } from '../../e2e/harness/wait.ts'
import { bidi, startGrpcService, type GrpcService } from '../net/callout/testing.ts'
import { createConfigStore, type ConfigMessage, type ConfigStore } from '../config/store.ts'
import { isAssigned, QUOTA_WORDS } from '../policy/budgets/quota.ts'
import type { QuotaMemory } from '../runtime/quotas.ts'
import { createLogging } from '../observe/telemetry/log.ts'
import { createRegistry, type Registry } from '../observe/telemetry/metrics/registry.ts'
import { makeAuthority, makeCertificate } from '../testing/certificates.ts'
import { replaceMessages } from '../testing/store.ts'
import { createQuotas, type ServiceQuotas } from './quotas.ts'

type Call = ServerDuplexStream<RateLimitQuotaUsageReports, RateLimitQuotaResponse>

interface Server extends GrpcService {
  readonly calls: Call[]
  readonly ended: Call[]
  /** Requests allowed, by report. */
  readonly allowed: number[]
}

const stops: (() => unknown)[] = []
let lines: string
let store: ConfigStore
let registry: Registry
let quotas: ServiceQuotas
beforeEach(() => {
  lines = ''
  store = createConfigStore()
  registry = createRegistry()
  const writer = { write: (text: string) => ((lines += text), true), flush: () => Promise.resolve(), flushSync: () => undefined, dropped: 0 }
  quotas = createQuotas(createLogging({ writer, level: 'info', format: 'text' }), () => registry)
  quotas.follow(store)
})
afterEach(async () => {
  await quotas.close()
  for (const stop of stops.splice(0).toReversed()) await stop()
})

/** Allows all requests of each bucket that is reported. */
async function startServer(port = 0, credentials = ServerCredentials.createInsecure()): Promise<Server> {
  const [calls, ended, allowed]: [Call[], Call[], number[]] = [[], [], []]
  const open = (call: Call): void => {
    calls.push(call)
    call.on('error', () => undefined)
    call.on('end', () => call.end())
    call.on('close', () => ended.push(call))
    call.on('data', ({ bucketQuotaUsages }: RateLimitQuotaUsageReports) => {
      allowed.push(...bucketQuotaUsages.map(({ numRequestsAllowed }) => Number(numRequestsAllowed)))
      const bucketAction = bucketQuotaUsages.map(({ bucketId }) => ({
        ...(bucketId && { bucketId }),
        bucketAction: { case: 'quotaAssignmentAction' as const, value: {} },
      }))
      call.write(create(RateLimitQuotaResponseSchema, { bucketAction }))
    })
  }
  const service = await startGrpcService([bidi(RateLimitQuotaService.method.streamRateLimitQuotas, open as never)], port, credentials)
  stops.push(() => service.close())
  return { ...service, calls, ended, allowed }
}

const serviceOf = (domain: string) => ({ backendRef: { backend: 'ns/quota' }, domain })
const backend = (port: number, policies?: Backend['policies']): ConfigMessage => ({
  kind: 'backend',
  message: { key: 'ns/quota', static: { host: '127.0.0.1', port }, ...(policies && { policies }) },
})
const policy = (...domains: string[]): ConfigMessage => ({
  kind: 'policy',
  message: {
    key: 'traffic/ns/p:0',
    policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'p' },
    creationTimestamp: '2026-01-01T00:00:00Z',
    target: { kind: 'Gateway', namespace: 'ns', name: 'gw' },
    traffic: {
      phase: 'PostRouting',
      budgets: domains.map((name): Budget => ({ name, limits: [{ requests: 1, window: 'Day' }], quotaService: serviceOf(name) })),
    },
  },
})
function ask(domain: string, key = 'ann', memory: QuotaMemory = { words: new BigInt64Array(QUOTA_WORDS) }): Promise<boolean> {
  return quotas.assign({ service: { ...serviceOf(domain), intervalMs: 60_000 }, id: { key }, counter: key }, () => memory)
}
const metrics = (): string => [...registry.expose('text')].join('')

test('each domain has one stream, which ends when no budget uses it', async () => {
  const server = await startServer()
  replaceMessages(store, [backend(server.port), policy('a', 'b')])
  expect(await Promise.all([ask('a'), ask('a', 'bob'), ask('b')])).toEqual([true, true, true])
  expect(server.calls).toHaveLength(2)
  expect(metrics()).toContain('proxy_budget_quota_connected{service="ns/quota",domain="a"} 1')
  replaceMessages(store, [backend(server.port), policy('b')])
  await until(() => server.ended.length === 1)
  replaceMessages(store, [backend(server.port)])
  await until(() => server.ended.length === 2)
  expect(lines).not.toContain('PX4040')
})

test('a stream moves to another address of the backend, and assignments stay', async () => {
  const [first, second] = [await startServer(), await startServer()]
  replaceMessages(store, [backend(first.port), policy('a')])
  const memory: QuotaMemory = { words: new BigInt64Array(QUOTA_WORDS) }
  expect(await ask('a', 'ann', memory)).toBe(true)
  replaceMessages(store, [backend(second.port), policy('a')])
  await until(() => second.calls.length === 1 && second.allowed.length > 0 && first.ended.length === 1)
  expect(isAssigned(memory, Date.now())).toBe(true)
  expect(await ask('a', 'bob')).toBe(true)
  expect(lines).not.toContain('PX4040')
})

test('a stream uses the TLS of the backend, and fails if its certificate is not valid', async () => {
  const authority = makeAuthority()
  const { certificate, privateKey } = makeCertificate({ name: 'quota.test', authority })
  const pair = { cert_chain: Buffer.from(certificate), private_key: Buffer.from(privateKey) }
  const server = await startServer(0, ServerCredentials.createSsl(null, [pair]))
  replaceMessages(store, [backend(server.port, { tls: { sni: 'quota.test' } }), policy('a')])
  expect(await ask('a')).toBe(false)
  await until(() => lines.includes('PX4040'))
  expect(lines).toMatch(/no assignments from a rate limit quota service code=PX4040 service=ns\/quota domain=a cause=.*UNABLE_TO_VERIFY_LEAF_SIGNATURE/)
  const secret: ConfigMessage = { kind: 'secret', message: { key: 'ca', type: 'ca', certificate: authority.certificate } }
  replaceMessages(store, [secret, backend(server.port, { tls: { sni: 'quota.test', caCertificateRefs: [{ secret: 'ca' }] } }), policy('a')])
  await until(() => ask('a'))
  expect(lines).toContain('a rate limit quota service responds')
})

test('a backend that does not exist delays no request for long, and is used once it exists', async () => {
  const server = await startServer()
  replaceMessages(store, [policy('a')])
  expect(await ask('a')).toBe(false)
  await until(() => lines.includes('PX4040'))
  replaceMessages(store, [backend(server.port), policy('a')])
  await until(() => ask('a'))
  expect(server.calls.length).toBeGreaterThan(0)
})

test('the last use is reported when the data plane ends', async () => {
  const server = await startServer()
  replaceMessages(store, [backend(server.port), policy('a')])
  const memory: QuotaMemory = { words: new BigInt64Array(QUOTA_WORDS) }
  await ask('a', 'ann', memory)
  await until(() => server.allowed.length === 2)
  Atomics.add(memory.words, 4, 5n)
  await quotas.close()
  expect(server.allowed.reduce((sum, each) => sum + each, 0)).toBe(5)
})
