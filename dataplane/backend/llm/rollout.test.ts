import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { rolloutsOf } from '#api/rollout/rollout.ts'
import { NO_SAMPLES, type RolloutSample } from '#api/rollout/samples.ts'
import type { AIModelRolloutState, Backend } from '#gen/config/types.ts'
import { startMockServer, type MockServer } from '../../../e2e/harness/llm/server.ts'
import type { ConfigMessage } from '../../config/store.ts'
import { ROLLOUT_FAMILIES, samplesOf } from './accounting/rollout.ts'
import { startLlmGateway, type LlmGateway } from './testing/gateway.ts'
import { chat, send } from './testing/test-bed.ts'

/** What counts for a rollout, and how its step divides requests (llm.md §15.7). */

const usage = { prompt_tokens: 4, completion_tokens: 2, total_tokens: 6 }
const rule: NonNullable<NonNullable<NonNullable<Backend['ai']>['models']>[number]['rules']>[number] = {
  to: [
    { backendRef: { backend: 'ns/openai' }, model: 'old', weight: 3 },
    { backendRef: { backend: 'ns/openai' }, model: 'older', weight: 1 },
    { backendRef: { backend: 'ns/openai' }, model: 'new' },
  ],
  rollout: { steps: [20, 50] },
}
let server: MockServer
let gateway: LlmGateway
/** How the new target responds. */
let broken: { readonly status: number; readonly error: object } | undefined
/** Another step for each test, so that each has its own samples. */
let step = 0

beforeAll(async () => {
  server = await startMockServer({
    answer: (request, response) => {
      const { model } = request.body as { readonly model: string }
      const json = { 'content-type': 'application/json' }
      if (model === 'new' && broken !== undefined) return void response.writeHead(broken.status, json).end(JSON.stringify({ error: broken.error }))
      const choices = [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }]
      response.writeHead(200, json).end(JSON.stringify({ id: 'c', object: 'chat.completion', model, choices, usage }))
    },
  })
  gateway = await startLlmGateway({
    ai: { models: [{ name: 'assistant', to: [{ backendRef: { backend: 'ns/models' } }] }] },
    policies: { ai: { prices: { '*': { input: '1000000', output: '0' } } } },
    more: messages({ sticky: '' }, 20),
  })
})
beforeEach(() => {
  broken = undefined
  step++
})
afterAll(async () => {
  await gateway.close()
  await server.close()
})

function messages({ sticky = '' }: { sticky?: string }, weight: number, phase: AIModelRolloutState['phase'] = 'Progressing'): ConfigMessage[] {
  const ai = { models: [{ name: 'assistant', rules: [rule], ...(sticky !== '' && { sticky }) }] }
  const rollouts = rolloutsOf({ key: 'ns/models', ai }).map(({ model, id }) => ({
    model,
    rule: 0,
    id,
    phase,
    step,
    weight,
    since: '2026-01-01T00:00:00Z',
    message: '',
  }))
  return [
    { kind: 'backend', message: { key: 'ns/models', ai, rollouts } },
    { kind: 'backend', message: { key: 'ns/openai', ai: { provider: { providerA: {}, host: '127.0.0.1', port: server.port } } } },
  ]
}

const sample = (): RolloutSample | undefined => samplesOf([gateway.registry.dump(false, ROLLOUT_FAMILIES)]).find((each) => each.step === step)

async function ask(user?: string): Promise<string> {
  const headers = user === undefined ? {} : { 'x-user': user }
  const { status, headers: received } = await send(gateway.port, { body: chat('hello', { model: 'assistant' }), headers })
  return status === 200 ? (received['x-proxy-model'] ?? '') : String(status)
}

async function count(users: readonly (string | undefined)[]): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>()
  for (const user of users) {
    const model = await ask(user)
    counts.set(model, (counts.get(model) ?? 0) + 1)
  }
  return counts
}

test('a step divides requests by its share, the rest by weight', async () => {
  gateway.update({ more: messages({}, 50) })
  const counts = await count(Array.from({ length: 400 }, () => undefined))
  // 4 sigma.
  expect(Math.abs((counts.get('new') ?? 0) - 200)).toBeLessThan(40)
  expect(Math.abs((counts.get('old') ?? 0) - 150)).toBeLessThan(39)
  expect(Math.abs((counts.get('older') ?? 0) - 50)).toBeLessThan(27)
  expect(sample()?.target.attempts).toBe(counts.get('new'))
  expect(sample()?.baseline.attempts).toBe((counts.get('old') ?? 0) + (counts.get('older') ?? 0))
})

test('sticky values move to the new target, and stay there in later steps', async () => {
  const users = Array.from({ length: 60 }, (_, index) => `user ${index}`)
  const moved: Set<string>[] = []
  for (const weight of [20, 60, 100]) {
    gateway.update({ more: messages({ sticky: 'request.headers["x-user"]' }, weight) })
    const now = new Set<string>()
    for (const user of users) if ((await ask(user)) === 'new') now.add(user)
    moved.push(now)
  }
  const [first = new Set(), second = new Set(), last] = moved
  expect([first.isSubsetOf(second), first.size < second.size, last?.size]).toEqual([true, true, 60])
})

test('a rollout that ended gives all requests, or none', async () => {
  gateway.update({ more: messages({}, 0, 'Aborted') })
  expect((await count(Array.from({ length: 20 }, () => undefined))).get('new')).toBeUndefined()
  gateway.update({ more: messages({}, 100, 'Promoted') })
  expect((await count(Array.from({ length: 20 }, () => undefined))).get('new')).toBe(20)
})

test('times and costs of successful responses are measured', async () => {
  gateway.update({ more: messages({}, 100) })
  await count([undefined, undefined])
  const { target = NO_SAMPLES, baseline } = sample() ?? {}
  expect(target).toMatchObject({ attempts: 2, errors: 0, cost: 8, priced: 2 })
  expect(target.durations.reduce((sum, each) => sum + each, 0)).toBe(2)
  expect(baseline).toEqual(NO_SAMPLES)
})

test.each<[string, number, object, number]>([
  ['an overloaded provider', 503, { message: 'x', type: 'server_error', code: 'server_is_overloaded' }, 1],
  ['a rate limit', 429, { message: 'x', type: 'requests', code: 'rate_limit_exceeded' }, 1],
  ['a model that the provider does not have', 404, { message: 'The model `new` does not exist', code: 'model_not_found' }, 1],
  ['wrong credentials of the gateway', 401, { message: 'Incorrect API key provided', code: 'invalid_api_key' }, 1],
  ['an invalid request', 400, { message: 'bad', type: 'invalid_request_error', code: null }, 0],
  ['a prompt that is too long', 400, { message: 'too long', code: 'context_length_exceeded' }, 0],
  ['content that the provider rejects', 400, { message: 'no', code: 'content_policy_violation' }, 0],
])('%s (%i) counts as the fault of the target, or not', async (_, status, error, errors) => {
  gateway.update({ more: messages({}, 100) })
  broken = { status, error }
  await ask()
  const { attempts, errors: counted } = sample()?.target ?? NO_SAMPLES
  expect([attempts, counted]).toEqual([errors, errors])
})

test('a rejected credential of the client is not the fault of the target', async () => {
  gateway.update({ more: messages({}, 100) })
  broken = { status: 401, error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } }
  await send(gateway.port, { body: chat('hello', { model: 'assistant' }), headers: { authorization: 'Bearer mine' } })
  expect(sample()).toBeUndefined()
})
