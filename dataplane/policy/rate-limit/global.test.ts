import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { GlobalRateLimit, LocalRateLimit } from '#gen/config/types.ts'
import {
  RateLimitResponse_Code as Code,
  RateLimitResponseSchema,
  RateLimitService,
  type RateLimitRequest,
} from '#gen/proto/envoy/service/ratelimit/v3/rls_pb.js'
import { destinationTo, startGrpcService, unary } from '../../net/callout/testing.ts'
import { chargeMcpLimits, type McpStage } from '../../request/exchange/mcp-limits.ts'
import { variables } from '../../request/exchange/variables.ts'
import { compose } from '../../request/exchange/compose.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { readBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { testExchange } from '../../testing/exchange.ts'
import { compilePolicies } from '../index.ts'
import { createPolicyState } from '../state.ts'
import { until } from '../../../e2e/harness/wait.ts'

const open: (() => unknown)[] = []
afterEach(() => {
  for (const close of open.splice(0).toReversed()) close()
})

type Answer = MessageInitShape<typeof RateLimitResponseSchema>
const ok: Answer = { overallCode: Code.OK }
const over: Answer = { overallCode: Code.OVER_LIMIT }
const status = (limit: number, remaining: number, seconds: number, code = Code.OK) => ({
  code,
  currentLimit: { requestsPerUnit: limit },
  limitRemaining: remaining,
  durationUntilReset: { seconds: BigInt(seconds) },
})
const perPath = { entries: [{ name: 'path', expression: 'request.path' }] }
const perTenant = {
  entries: [
    { name: 'tenant', expression: 'request.headers["x-tenant"]' },
    { name: 'fixed', expression: '1' },
  ],
}
const tokens = { unit: 'Tokens' as const, entries: [{ name: 'model', expression: '"m"' }] }

interface Options {
  readonly policy?: Partial<GlobalRateLimit>
  readonly local?: LocalRateLimit[]
  readonly headers?: Record<string, string>
  readonly upstreamHeaders?: Record<string, string>
  readonly port?: number
  readonly prepare?: (exchange: Exchange) => void
  /** Estimate and usage of an LLM request. */
  /** Stages of an MCP request, with the tool that it calls. */
  readonly mcp?: readonly (readonly [stage: McpStage, tool?: string])[]
  readonly llm?: { readonly estimate: number; readonly tokens: number }
}

/** Sends a request. Returns the calls of the service, the forwarded request and the response. */
async function send(answer: Answer | ((request: RateLimitRequest) => Answer), options: Options = {}) {
  const received: RateLimitRequest[] = []
  const service = await startGrpcService([
    unary(RateLimitService.method.shouldRateLimit, (request) => {
      received.push(request)
      return create(RateLimitResponseSchema, typeof answer === 'function' ? answer(request) : answer)
    }),
  ])
  const destination = destinationTo(options.port ?? service.port)
  open.push(
    () => service.close(),
    () => destination.close(),
  )
  const exchange = testExchange({ target: '/p?q' }, options.headers)
  options.prepare?.(exchange)
  let isForwarded = false
  const upstream = async (): Promise<void> => {
    if (options.llm !== undefined) await exchange.tokenBudgets?.check(options.llm.estimate)
    for (const [stage, tool] of options.mcp ?? []) {
      variables.mcp.set(exchange, { methodName: 'tools/call', ...(tool !== undefined && { tool: { name: tool } }) })
      await chargeMcpLimits(exchange, stage)
    }
    isForwarded = true
    exchange.response = { status: 200, headers: HeaderList.from(Object.entries(options.upstreamHeaders ?? {})), body: undefined, upgraded: undefined }
    if (options.llm !== undefined) exchange.tokenBudgets?.settle(options.llm.tokens)
  }
  const global: GlobalRateLimit = { backendRef: { address: 'a:1' }, domain: 'shop', descriptors: [perPath], ...options.policy }
  const state = createPolicyState({ destinations: { forPolicy: () => destination }, monotonicMs: () => 0 })
  const rateLimit = { ...(options.local === undefined ? {} : { local: options.local }), global }
  await compose(compilePolicies({ traffic: { rateLimit }, state }), upstream)(exchange)
  const { response } = exchange
  const text = (await readBody(response?.body, Infinity)).bytes.toString()
  const numbers = ['limit', 'remaining', 'reset'].map((name) => response?.headers.get(`x-ratelimit-${name}`))
  return { exchange, isForwarded, received, answer: `${response?.status} ${text}`, numbers, headers: response?.headers }
}

const descriptorsOf = (request: RateLimitRequest | undefined) =>
  request?.descriptors.map(({ entries, hitsAddend }) => [entries.map(({ key, value }) => `${key}=${value}`).join(), hitsAddend])

describe('the request to the service', () => {
  test('has the domain and the descriptors, without a cost', async () => {
    const { received } = await send(ok, { policy: { descriptors: [perPath, perTenant] }, headers: { 'x-tenant': 'blue' } })
    expect(received[0]).toMatchObject({ domain: 'shop', hitsAddend: 0 })
    expect(descriptorsOf(received[0])).toEqual([
      ['path=/p', undefined],
      ['tenant=blue,fixed=1', undefined],
    ])
  })

  test('has no descriptor with a failed entry', async () => {
    const { received } = await send(ok, { policy: { descriptors: [perTenant, perPath] } })
    expect(descriptorsOf(received[0])).toEqual([['path=/p', undefined]])
  })

  test('is not sent without a descriptor', async () => {
    const { received, answer } = await send(over, { policy: { descriptors: [perTenant] } })
    expect([received.length, answer]).toEqual([0, '200 '])
  })
})

describe('descriptors that read mcp', () => {
  const perTool = { entries: [{ name: 'tool', expression: 'mcp.tool.name' }] }
  const perMethod = { entries: [{ name: 'method', expression: 'mcp.methodName' }] }

  test('are sent by an MCP backend when their item is known', async () => {
    const { received, numbers } = await send(
      { ...ok, statuses: [status(10, 3, 60)] },
      { policy: { descriptors: [perPath, perTool, perMethod] }, mcp: [['message'], ['tool', 'echo'], ['prompt']] },
    )
    expect(received.map(descriptorsOf)).toEqual([[['path=/p', undefined]], [['method=tools/call', undefined]], [['tool=echo', undefined]]])
    expect(numbers).toEqual(['10', '3', '60'])
  })

  test('reject the request over the limit, with the headers of the service', async () => {
    const answer = { ...over, responseHeadersToAdd: [{ key: 'retry-after', value: '7' }] }
    const { answer: response, headers, isForwarded } = await send(answer, { policy: { descriptors: [perTool] }, mcp: [['tool', 'echo']] })
    expect([response.slice(0, 3), headers?.get('retry-after'), isForwarded]).toEqual(['429', '7', false])
  })

  test('are not sent by other backends, or for requests without a tool', async () => {
    expect((await send(over, { policy: { descriptors: [perTool] } })).received).toEqual([])
    expect((await send(over, { policy: { descriptors: [perTool] }, mcp: [['message'], ['resource']] })).received).toEqual([])
  })
})

describe('a response with status OK', () => {
  test('adds the headers of the service to request and response', async () => {
    const { exchange, headers } = await send({
      ...ok,
      requestHeadersToAdd: [{ key: 'X-Up', value: '1' }],
      responseHeadersToAdd: [{ key: 'X-Down', value: '2' }],
    })
    expect([exchange.request.headers.get('x-up'), headers?.get('x-down')]).toEqual(['1', '2'])
  })

  test('sets the x-ratelimit headers of the counter with the least left', async () => {
    expect((await send({ ...ok, statuses: [status(10, 5, 60), { code: Code.OK }, status(100, 2, 3600), status(7, 6, 1)] })).numbers).toEqual([
      '100',
      '2',
      '3600',
    ])
  })

  test('is overridden by a local limit with less left in the x-ratelimit headers', async () => {
    const local: LocalRateLimit[] = [{ requests: 2, unit: 'Minutes' }]
    expect((await send({ ...ok, statuses: [status(10, 5, 1)] }, { local })).numbers).toEqual(['10', '5', '1'])
    expect((await send({ ...ok, statuses: [] }, { local })).numbers).toEqual(['2', '1', '60'])
  })

  test.each<[string, Answer, Record<string, string>, (string | undefined)[]]>([
    [
      'the service',
      { ...ok, statuses: [status(10, 5, 60)], responseHeadersToAdd: [{ key: 'x-ratelimit-limit', value: '10, 10;w=60' }] },
      {},
      ['10, 10;w=60', undefined, undefined],
    ],
    ['the upstream', { ...ok, statuses: [status(10, 5, 60)] }, { 'x-ratelimit-remaining': '3' }, [undefined, '3', undefined]],
  ])('keeps the x-ratelimit headers of %s', async (_, answer, upstreamHeaders, expected) => {
    expect((await send(answer, { upstreamHeaders })).numbers).toEqual(expected)
  })
})

describe('a request over the limit', () => {
  test('gets an empty 429 with x-ratelimit headers', async () => {
    const { answer, numbers, isForwarded, exchange } = await send({ ...over, statuses: [status(10, 0, 60, Code.OVER_LIMIT)] })
    expect([answer, numbers, isForwarded, exchange.error?.row.reason]).toEqual(['429 ', ['10', '0', '60'], false, 'RateLimit'])
  })

  test('gets the headers and body of the service, for gRPC calls too', async () => {
    const answer = { ...over, rawBody: Buffer.from('slow down'), responseHeadersToAdd: [{ key: 'retry-after', value: '7' }] }
    for (const headers of [{}, { 'content-type': 'application/grpc' }] as Record<string, string>[]) {
      const result = await send(answer, { headers })
      expect([result.answer, result.headers?.get('retry-after')]).toEqual(['429 slow down', '7'])
    }
  })

  test('has the format of the client if the service sends no body', async () => {
    const prepare = (exchange: Exchange): void => {
      exchange.errorFormat = (_, message) => ({ contentType: 'application/json', body: JSON.stringify({ message }) })
    }
    const full = { ...over, statuses: [status(10, 0, 60, Code.OVER_LIMIT)] }
    const { answer, numbers, exchange } = await send(full, { prepare })
    expect([answer, numbers, exchange.error?.row.reason]).toEqual(['429 {"message":"rate limit exceeded"}', ['10', '0', '60'], 'RateLimit'])
    expect((await send({ ...full, rawBody: Buffer.from('slow down') }, { prepare })).answer).toBe('429 slow down')
  })

  test('is not reported to the service if a local limit rejects it', async () => {
    const local: LocalRateLimit[] = [{ requests: 1, unit: 'Minutes' }]
    expect((await send(ok, { local })).received).toHaveLength(1)
    const service = await send(ok, { local: [{ tokens: 1, unit: 'Minutes' }, ...local] })
    expect(service.received).toHaveLength(1)
  })
})

describe('counters of tokens', () => {
  const policy = { descriptors: [tokens] }

  test('do not apply to traffic without an LLM', async () => {
    expect((await send(over, { policy })).received).toHaveLength(0)
  })

  test('are charged the estimate before the call and the rest afterwards', async () => {
    const { received, answer } = await send(ok, { policy: { descriptors: [perPath, tokens] }, llm: { estimate: 20, tokens: 50 } })
    await until(() => received.length === 3)
    expect([answer, received.map(descriptorsOf)]).toEqual(['200 ', [[['path=/p', undefined]], [['model=m', 20n]], [['model=m', 30n]]]])
  })

  test('are only read before the call if there is no estimate', async () => {
    const { received } = await send(ok, { policy, llm: { estimate: 0, tokens: 50 } })
    await until(() => received.length === 2)
    expect(received.map(descriptorsOf)).toEqual([[['model=m', 0n]], [['model=m', 50n]]])
  })

  test('are not refunded if the usage is less than the estimate', async () => {
    const { received } = await send(ok, { policy, llm: { estimate: 20, tokens: 10 } })
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(received).toHaveLength(1)
  })

  test('that are exhausted lead to 429', async () => {
    const result = await send({ ...over, statuses: [status(100, 0, 60, Code.OVER_LIMIT)] }, { policy, llm: { estimate: 0, tokens: 50 } })
    expect([result.answer, result.numbers, result.isForwarded]).toEqual(['429 rate limit exceeded', ['100', '0', '60'], false])
  })
})

describe('an unreachable service', () => {
  const broken = (): Answer => {
    throw Object.assign(new Error('broken'), { code: 14 })
  }
  test.each<[GlobalRateLimit['failureMode'], string]>([
    [undefined, '500 rate limit failed'],
    ['FailClosed', '500 rate limit failed'],
    ['FailOpen', '200 '],
  ])('is handled as %s says', async (failureMode, expected) => {
    const policy = failureMode === undefined ? {} : { failureMode }
    expect((await send(broken, { policy })).answer).toBe(expected)
    expect((await send(ok, { policy, port: 1 })).answer).toBe(expected)
    expect((await send({}, { policy })).answer).toBe(expected)
    expect((await send(broken, { policy: { ...policy, descriptors: [tokens] }, llm: { estimate: 0, tokens: 1 } })).answer).toBe(expected)
  })

  test('does not delay the request timeout', async () => {
    const prepare = (exchange: Exchange): void => void (exchange.deadlineAtMs = performance.now() - 1)
    expect((await send(ok, { policy: { failureMode: 'FailOpen' }, prepare })).answer).toBe('504 request timeout')
  })
})
