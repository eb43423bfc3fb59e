import { describe, expect, test } from '@jest/globals'
import { ProxyError, toErrorResponse, toProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { agentHooks } from '../a2a/hooks.ts'
import { forward } from './forward.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import type { RequestHead, ResponseHead } from '../../http/message.ts'
import { attemptsOf } from '../../observe/telemetry/attempts.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { testExchange } from '../../testing/exchange.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { defaultSettings, Destination, type DestinationConfig } from '../../net/upstream/destination.ts'
import type { RetryPlan } from './call-plan.ts'
import type { ForwardPlan } from './plan.ts'
import { UpstreamError, type UpstreamCall, type UpstreamPool } from '../../net/upstream/types.ts'

type Answer = number | UpstreamError | 'never'

/** An upstream with a list of responses that records its requests. */
class ScriptedUpstream {
  readonly requests: { retryAttempt: string | undefined; authority: string; body: string; headers: HeaderList }[] = []
  readonly #answers: Answer[]
  cancelled = 0

  constructor(...answers: Answer[]) {
    this.#answers = answers
  }

  pool(): UpstreamPool {
    return { size: 0, close: () => {}, call: (request) => this.#call(request) }
  }

  #call(request: RequestHead): UpstreamCall {
    let cancel: (error: Error) => void = () => {}
    const cancelled = new Promise<never>((_, reject) => (cancel = reject))
    cancelled.catch(() => this.cancelled++)
    return { response: Promise.race([this.#answer(request), cancelled]), cancel: (reason) => cancel(reason) }
  }

  async #answer(request: RequestHead): Promise<ResponseHead> {
    const retryAttempt = request.headers.get('x-retry-attempt')
    const { authority } = request
    const body = request.body === undefined ? '' : (await readBody(request.body, 1_000_000)).bytes.toString()
    this.requests.push({ retryAttempt, authority, body, headers: request.headers })
    const answer = this.#answers.length > 1 ? this.#answers.shift() : this.#answers[0]
    if (answer instanceof UpstreamError) throw answer
    if (typeof answer !== 'number') return new Promise(() => {})
    return { status: answer, headers: new HeaderList(), body: undefined, upgraded: undefined }
  }
}

const baseConfig: DestinationConfig = {
  endpoints: [{ address: '10.0.0.1', port: 80 }],
  appProtocol: undefined,
  settings: defaultSettings,
  hostname: undefined,
  isHostRewritten: false,
  isDynamic: false,
  error: undefined,
}

function planFor(upstream: ScriptedUpstream, config: Partial<DestinationConfig> = {}, plan: Partial<ForwardPlan> = {}): ForwardPlan {
  const destination = new Destination('default/svc:80', { ...baseConfig, ...config }, () => upstream.pool())
  const backend = { destination, weight: 1, requestHeaders: [], responseHeaders: [], redirect: undefined, mirrors: [] }
  return { backends: [backend], pick: () => backend, mirrors: [], backendRequestMs: undefined, retry: undefined, random: () => 0, ...plan }
}

/** As a rule does: picks the backend, then runs the end of its chain. */
function sendPicked(exchange: Exchange, plan: ForwardPlan): Promise<void> {
  exchange.picked = plan.pick(exchange)
  return forward(exchange, plan)
}

const retry = (attempts: number, codes: number[] = [503], backoffMs = 0): RetryPlan => ({ codes: new Set(codes), attempts, backoffMs })
const refused = new UpstreamError('connect', 'connect ECONNREFUSED 10.0.0.1:80')

async function codeOf(exchange: Exchange, plan: ForwardPlan): Promise<string | number | undefined> {
  try {
    await sendPicked(exchange, plan)
    return exchange.response?.status
  } catch (error) {
    return (error as ProxyError).code
  }
}

describe('forward', () => {
  test.each<[string, Answer[], RetryPlan | undefined, string | number, number]>([
    ['returns the response', [200], undefined, 200, 1],
    ['returns an unlisted status without a retry', [500, 200], retry(2), 500, 1],
    ['retries a listed status', [503, 503, 200], retry(2), 200, 3],
    ['returns the last response unchanged', [503, 503, 503], retry(2), 503, 3],
    ['retries a refused connection', [refused, 200], retry(1), 200, 2],
    ['retries a reset', [new UpstreamError('reset', 'closed'), 200], retry(1), 200, 2],
    ['retries DNS failures', [new UpstreamError('dns', 'ENOTFOUND'), 200], retry(1), 200, 2],
    ['retries connect timeouts', [new UpstreamError('connect-timeout', 'late'), 200], retry(1), 200, 2],
    ['does not retry an upstream that breaks HTTP', [new UpstreamError('protocol', 'two lengths'), 200], retry(1), 'UPSTREAM_FAILED', 1],
    ['does not retry without a policy', [refused, 200], undefined, 'UPSTREAM_FAILED', 1],
    ['reports a connect timeout as UPSTREAM_TIMEOUT', [new UpstreamError('connect-timeout', 'late')], undefined, 'UPSTREAM_TIMEOUT', 1],
    ['reports a DNS failure as DNS_FAILED', [new UpstreamError('dns', 'ENOTFOUND')], undefined, 'DNS_FAILED', 1],
  ])('%s', async (_, answers, retryPlan, expected, calls) => {
    const upstream = new ScriptedUpstream(...answers)
    expect(await codeOf(testExchange(), planFor(upstream, {}, { retry: retryPlan }))).toBe(expected)
    expect(upstream.requests.length).toBe(calls)
  })

  test('signs a request to an agent, whose method is read', async () => {
    const upstream = new ScriptedUpstream(200)
    const auth = { kind: 'aws', credentials: { accessKeyId: 'id', secretAccessKey: 'secret' } } as const
    const exchange = testExchange({ method: 'POST', authority: 'a.lambda-url.eu-west-1.on.aws', body: new BufferBody('{"method":"GetTask"}') })
    await codeOf(exchange, planFor(upstream, { appProtocol: 'A2A', hooks: agentHooks(createRegistry()), settings: { ...defaultSettings, auth } }))
    expect(upstream.requests).toMatchObject([{ body: '{"method":"GetTask"}' }])
    expect(upstream.requests[0]?.headers.get('authorization')).toContain('SignedHeaders=')
    expect(logFieldsOf(exchange)).toMatchObject({ 'a2a.method': 'GetTask' })
  })

  test('numbers retries in x-retry-attempt and sends the body again', async () => {
    const upstream = new ScriptedUpstream(503, 503, 200)
    const exchange = testExchange({ method: 'POST', body: new BufferBody('hello') })
    expect(await codeOf(exchange, planFor(upstream, {}, { retry: retry(2) }))).toBe(200)
    expect(upstream.requests.map(({ retryAttempt, body }) => [retryAttempt, body])).toEqual([
      [undefined, 'hello'],
      ['1', 'hello'],
      ['2', 'hello'],
    ])
  })

  test('records several attempts for logs and traces, but not a single one', async () => {
    const [one, several] = [testExchange(), testExchange()]
    await codeOf(one, planFor(new ScriptedUpstream(200), {}, { retry: retry(2) }))
    await codeOf(several, planFor(new ScriptedUpstream(503, refused, 200), {}, { retry: retry(2) }))
    expect(attemptsOf(one)).toEqual([])
    expect(attemptsOf(several).map(({ status, error }) => status ?? error?.name)).toEqual([503, 'ProxyError', 200])
  })

  test('counts mirrored calls', async () => {
    const registry = createRegistry()
    const plan = planFor(new ScriptedUpstream(200))
    const mirror = { destination: new Destination('default/mirror:80', baseConfig, () => new ScriptedUpstream(200).pool()), numerator: 1, denominator: 1 }
    await codeOf(testExchange(), { ...plan, mirrors: [mirror], registry })
    await new Promise((resolve) => setImmediate(resolve))
    expect([...registry.expose('text')].join('')).toContain('proxy_upstream_call_duration_seconds_count{kind="Mirror",subtype="Http"} 1')
  })

  test('does not retry a body of known length above 64 KiB', async () => {
    const upstream = new ScriptedUpstream(503, 200)
    const exchange = testExchange({ method: 'POST', body: new BufferBody('x'.repeat(65_537)) })
    expect(await codeOf(exchange, planFor(upstream, {}, { retry: retry(2) }))).toBe(503)
    expect(upstream.requests.length).toBe(1)
  })

  test('retries an attempt that exceeds its timeout and reports 504 for the last one', async () => {
    const upstream = new ScriptedUpstream('never', 200)
    expect(await codeOf(testExchange(), planFor(upstream, {}, { backendRequestMs: 20, retry: retry(1) }))).toBe(200)
    expect(upstream.cancelled).toBe(1)
    expect(await codeOf(testExchange(), planFor(new ScriptedUpstream('never'), {}, { backendRequestMs: 20 }))).toBe('UPSTREAM_TIMEOUT')
  })

  test('ends at the request timeout, which covers all attempts and the backoff', async () => {
    const exchange = testExchange()
    const upstream = new ScriptedUpstream(503, 200)
    const startedAt = performance.now()
    exchange.deadlineAtMs = startedAt + 100
    expect(await codeOf(exchange, planFor(upstream, {}, { retry: retry(5, [503], 100_000) }))).toBe('REQUEST_TIMEOUT')
    expect(performance.now() - startedAt).toBeLessThan(60_000)
    expect(upstream.requests.length).toBe(1)
    const late = testExchange()
    late.deadlineAtMs = performance.now() + 20
    expect(await codeOf(late, planFor(new ScriptedUpstream('never')))).toBe('REQUEST_TIMEOUT')
  })

  test.each<[string, Partial<DestinationConfig>, string]>([
    ['a reference that does not resolve', { error: 'BACKEND_NOT_FOUND' }, 'BACKEND_NOT_FOUND'],
    ['no endpoint', { endpoints: [] }, 'NO_HEALTHY_BACKENDS'],
    ['missing TLS material', { settings: { ...defaultSettings, broken: 'no CA' } }, 'UPSTREAM_FAILED'],
  ])('makes no call for %s', async (_, config, code) => {
    const upstream = new ScriptedUpstream(200)
    expect(await codeOf(testExchange(), planFor(upstream, config))).toBe(code)
    expect(upstream.requests.length).toBe(0)
  })

  test.each<[string, Partial<DestinationConfig>, string]>([
    ['a destination without endpoints', { endpoints: [] }, 'default/svc:80 has no endpoints'],
    ['an authority that cannot be dialed', { isDynamic: true }, 'the authority "client.example:0" names no host and port to connect to'],
  ])('NO_HEALTHY_BACKENDS for %s names the cause in the log and not to the client', async (_, config, detail) => {
    const exchange = testExchange({ authority: 'client.example:0' })
    const error = await sendPicked(exchange, planFor(new ScriptedUpstream(200), config)).then(() => undefined, toProxyError)
    expect(error).toMatchObject({ code: 'NO_HEALTHY_BACKENDS', detail, message: `no healthy backends: ${detail}` })
    const response = toErrorResponse(error ?? new ProxyError('INTERNAL'), exchange.request)
    expect([response.status, (await readBody(response.body, 1000)).bytes.toString()]).toEqual([503, 'no healthy backends'])
  })

  test('reports NO_VALID_BACKENDS if there is no backend to pick', async () => {
    const plan = { ...planFor(new ScriptedUpstream(200)), backends: [], pick: () => undefined }
    expect(await codeOf(testExchange(), plan)).toBe('NO_VALID_BACKENDS')
  })

  test.each<[string, Partial<DestinationConfig>, (exchange: Exchange) => void, string]>([
    ['the Host of the client for a Service', { hostname: 'svc.default.svc.cluster.local' }, () => {}, 'client.example'],
    ['the host of a ProxyBackend', { hostname: 'api.example', isHostRewritten: true }, () => {}, 'api.example'],
    [
      'the name of the Service for hostRewrite Auto',
      { hostname: 'svc.default.svc.cluster.local' },
      (e) => (e.isHostRewritten = true),
      'svc.default.svc.cluster.local',
    ],
    ['a fixed authority', { hostname: 'api.example', isHostRewritten: true }, (e) => (e.isAuthorityFixed = true), 'client.example'],
    ['the Host without a default port', {}, (e) => (e.request.authority = 'client.example:80'), 'client.example'],
    ['the Host with another port', {}, (e) => (e.request.authority = 'client.example:8080'), 'client.example:8080'],
  ])('sends %s', async (_, config, prepare, authority) => {
    const upstream = new ScriptedUpstream(200)
    const exchange = testExchange({ authority: 'client.example' })
    prepare(exchange)
    await sendPicked(exchange, planFor(upstream, config))
    expect(upstream.requests[0]?.authority).toBe(authority)
  })

  test('cancels the call if the client disconnects', async () => {
    const upstream = new ScriptedUpstream('never')
    const exchange = testExchange()
    const result = codeOf(exchange, planFor(upstream, {}, { retry: retry(3) }))
    await new Promise((resolve) => setImmediate(resolve))
    exchange.abort(new UpstreamError('cancelled', 'client is gone'))
    expect(await result).toBe('UPSTREAM_FAILED')
    expect([upstream.cancelled, upstream.requests.length]).toEqual([1, 1])
  })

  test('sends the head without a body to mirrors, by their share', async () => {
    const upstream = new ScriptedUpstream(200)
    const mirror = new ScriptedUpstream(200)
    const destination = new Destination('mirror', baseConfig, () => mirror.pool())
    const exchange = testExchange({ method: 'POST', body: new BufferBody('secret') })
    exchange.request.headers.set('content-length', '6')
    const draws = [0.1, 0.6]
    const plan = { ...planFor(upstream), mirrors: [1, 2].map(() => ({ destination, numerator: 1, denominator: 2 })), random: () => draws.shift() ?? 0 }
    await sendPicked(exchange, plan)
    expect(mirror.requests.map(({ body }) => body)).toEqual([''])
    expect(upstream.requests.map(({ body }) => body)).toEqual(['secret'])
  })
})
