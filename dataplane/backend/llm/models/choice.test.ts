import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { BackendFull } from '#gen/config/types.ts'
import { HeaderList } from '../../../http/headers.ts'
import { Exchange } from '../../../request/exchange/exchange.ts'
import { variables } from '../../../request/exchange/variables.ts'
import { compileExpression } from '../../../request/expression/program.ts'
import { newProviderState } from '../choice/candidates.ts'
import type { LlmTarget } from '../choice/target.ts'
import { createNameTable } from '../common/patterns.ts'
import { createProvider } from '../providers/index.ts'
import { compileSettings } from '../settings/settings.ts'
import { ModelChoice } from './choice.ts'
import { ModelFacts } from './facts.ts'
import type { FailureCause } from '../causes/types.ts'
import type { ModelEntry, ModelTable, ModelTarget } from './table.ts'

/** Numbers in [0, 1) that are the same in each run (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

interface TargetOptions {
  readonly weight?: number
  readonly tags?: string[]
  readonly window?: number
  readonly isEvicted?: boolean
  readonly price?: string
  readonly latency?: number
  readonly pending?: number
}

/** A target with one provider, whose catalog has the model. */
function target(model: string, { weight = 1, tags, window, isEvicted = false, price, latency = 0, pending = 0 }: TargetOptions = {}): ModelTarget {
  const provider = createProvider({ providerA: {} })
  if (provider === undefined) throw new Error('no provider')
  const isKnown = tags !== undefined || window !== undefined || price !== undefined
  const described = { rates: { input: price ?? '1', output: price ?? '1' }, ...(tags && { tags }), ...(window !== undefined && { contextWindow: window }) }
  const ai: BackendFull['ai'] = {
    priceCatalog: { builtIn: 'Disabled', ...(isKnown && { configMapRef: { providers: { openai: { models: { [model]: described } } } } }) },
  }
  const state = { ...newProviderState(), latencySeconds: latency, hasLatency: latency > 0, pending }
  if (isEvicted) state.evicted = { untilMs: Infinity, health: 1, status: 0 }
  // Selection reads no more of a target.
  const one = { name: model, provider, settings: compileSettings(ai), state, destination: { error: undefined } } as unknown as LlmTarget
  return { id: `ns/${model} ${model}`, weight, model, groups: [[one]], table: undefined }
}

interface EntryOptions extends Partial<Omit<ModelEntry, 'fallback' | 'sticky'>> {
  readonly sticky?: ModelEntry['sticky'] | string
  readonly fallback?: readonly (readonly [on: readonly FailureCause[], to: readonly ModelTarget[]])[]
}

function entry(name: string, to: readonly ModelTarget[], { sticky, fallback = [], ...more }: EntryOptions = {}): ModelEntry {
  return {
    name,
    isPublic: true,
    rules: [{ when: undefined, to }],
    by: 'Weight',
    sticky: typeof sticky === 'string' ? compileExpression(sticky, 'llm') : sticky,
    fallback: fallback.map(([on, targets]) => ({ on: new Set(on), to: targets })),
    ...more,
  }
}

function tableOf(...entries: ModelEntry[]): ModelTable {
  return {
    entries,
    find: createNameTable(Object.fromEntries(entries.map((one) => [one.name, one]))),
    routeOf: () => ({ type: 'Completions', isDefault: false }),
  }
}

function newExchange(user?: string): Exchange {
  const request = {
    method: 'POST',
    target: '/v1/chat/completions',
    headers: new HeaderList(),
    authority: 'a',
    scheme: 'http',
    version: 'HTTP/1.1',
    body: undefined,
  }
  const exchange = new Exchange({ id: 1, bind: 'b' } as unknown as ConstructorParameters<typeof Exchange>[0], request as unknown as Exchange['request'], 0)
  if (user !== undefined) variables.apiKey.set(exchange, { user })
  return exchange
}

const body = (more: object = {}, text = 'hello') => ({ model: 'm', messages: [{ role: 'user', content: text }], ...more })

function start(
  table: ModelTable,
  { request = body(), random = seeded(1), user, name = 'm' }: { request?: object; random?: () => number; user?: string; name?: string } = {},
) {
  const facts = new ModelFacts(request as Record<string, unknown>, 'completions', JSON.stringify(request).length)
  return ModelChoice.start(table, name, { exchange: newExchange(user), facts, random, nowMs: () => 0 })
}

const chosen = (...args: Parameters<typeof start>): string | undefined => start(...args)?.current?.model

describe('the choice of a target', () => {
  test('follows the weights: the shares of 100,000 requests are within 4 standard deviations', () => {
    const weights = [95, 4, 1, 0]
    const table = tableOf(
      entry(
        'm',
        weights.map((weight, index) => target(`t${index}`, { weight })),
      ),
    )
    const random = seeded(20_261_128)
    const counts = new Map<string, number>()
    const N = 100_000
    for (let i = 0; i < N; i++) {
      const model = chosen(table, { random }) ?? ''
      counts.set(model, (counts.get(model) ?? 0) + 1)
    }
    for (const [index, weight] of weights.entries()) {
      const share = weight / 100
      expect(Math.abs((counts.get(`t${index}`) ?? 0) - N * share)).toBeLessThanOrEqual(4 * Math.sqrt(N * share * (1 - share)))
    }
  })

  test('by a sticky value is the same in 3 replicas with 2 workers each, follows the weights, and keeps values if another target leaves', () => {
    const targets = () => [target('a', { weight: 3 }), target('b'), target('c')]
    const replicas = Array.from({ length: 6 }, () => tableOf(entry('m', targets(), { sticky: 'apiKey.user' })))
    const withoutC = tableOf(entry('m', targets().slice(0, 2), { sticky: 'apiKey.user' }))
    const counts: Record<string, number> = {}
    const N = 5000
    for (let i = 0; i < N; i++) {
      const user = `user-${i}`
      const [first, ...others] = replicas.map((table, index) => chosen(table, { user, random: seeded(index) }))
      expect(others).toEqual([first, first, first, first, first])
      counts[first ?? ''] = (counts[first ?? ''] ?? 0) + 1
      if (first !== 'c') expect(chosen(withoutC, { user })).toBe(first)
    }
    for (const [model, share] of Object.entries({ a: 0.6, b: 0.2, c: 0.2 }))
      expect(Math.abs((counts[model] ?? 0) - N * share)).toBeLessThanOrEqual(4 * Math.sqrt(N * share * (1 - share)))
  })

  test.each([
    ['null', 'apiKey.nothing'],
    ['an error', 'fail("x")'],
    ['empty', '""'],
  ])('by a sticky value that is %s is by weight', (_, sticky) => {
    const table = tableOf(entry('m', [target('a'), target('b')], { sticky }))
    const random = seeded(3)
    expect(new Set(Array.from({ length: 50 }, () => chosen(table, { random, user: 'u' })))).toEqual(new Set(['a', 'b']))
  })

  test('never is a target that cannot serve the request if another one can', () => {
    const options = fc.record({
      weight: fc.integer({ min: 0, max: 3 }),
      tags: fc.option(fc.subarray(['tools', 'vision', 'audio', 'structuredOutput']), { nil: undefined }),
      window: fc.option(fc.constantFrom(10, 100, 100_000), { nil: undefined }),
      isEvicted: fc.boolean(),
    })
    const request = fc.record({
      hasTools: fc.boolean(),
      hasImage: fc.boolean(),
      isStructured: fc.boolean(),
      text: fc.constantFrom('hi', 'x'.repeat(300), 'x'.repeat(3000)),
      user: fc.option(fc.string(), { nil: undefined }),
    })
    const by = fc.constantFrom<ModelEntry['by']>('Weight', 'LeastLatency', 'LeastCost', 'LeastBusy')
    fc.assert(
      fc.property(
        fc.array(options, { minLength: 1, maxLength: 5 }),
        request,
        by,
        fc.integer(),
        (list, { hasTools, hasImage, isStructured, text, user }, rule, seed) => {
          const targets = list.map((one, index) => target(`t${index}`, one as TargetOptions))
          const sent = {
            model: 'm',
            messages: [{ role: 'user', content: [{ type: 'text', text }, ...(hasImage ? [{ type: 'image_url', image_url: { url: 'https://a/b' } }] : [])] }],
            ...(hasTools && { tools: [{ type: 'function', function: { name: 'f' } }] }),
            ...(isStructured && { response_format: { type: 'json_schema', json_schema: {} } }),
          }
          const facts = new ModelFacts(sent, 'completions', JSON.stringify(sent).length)
          const needs = [...(hasTools ? ['tools'] : []), ...(hasImage ? ['vision'] : []), ...(isStructured ? ['structuredOutput'] : [])]
          const serves = ({ weight, tags = [], window, isEvicted }: (typeof list)[number]): boolean =>
            weight > 0 && !isEvicted && needs.every((tag) => tags.includes(tag)) && (window === undefined || facts.promptTokens <= window)
          const can = list.map((one) => serves(one))
          const model = chosen(tableOf(entry('m', targets, { by: rule, sticky: 'apiKey.user' })), {
            request: sent,
            random: seeded(seed),
            ...(user !== undefined && { user }),
          })
          if (can.includes(true)) expect(can[Number(model?.slice(1))]).toBe(true)
          else if (list.some(({ weight }) => weight > 0)) expect(list[Number(model?.slice(1))]?.weight).toBeGreaterThan(0)
          else expect(model).toBeUndefined()
        },
      ),
      { numRuns: 500 },
    )
  })

  test.each<[ModelEntry['by'], TargetOptions, TargetOptions]>([
    ['LeastLatency', { latency: 2 }, { latency: 0.1 }],
    ['LeastCost', { price: '3' }, { price: '0.5' }],
    ['LeastBusy', { pending: 4 }, { pending: 7, weight: 2 }],
  ])('by %s is the better one', (by, worse, better) => {
    // The random number 0.5 measures no other target.
    expect(chosen(tableOf(entry('m', [target('worse', worse), target('better', better)], { by })), { random: () => 0.5 })).toBe('better')
  })

  test('by least latency measures another target with one of 20 requests', () => {
    const table = tableOf(entry('m', [target('slow', { latency: 9 }), target('fast', { latency: 0.1 })], { by: 'LeastLatency' }))
    const random = seeded(5)
    const slow = Array.from({ length: 4000 }, () => chosen(table, { random })).filter((model) => model === 'slow').length
    expect(slow / 4000).toBeGreaterThan(0.01)
    expect(slow / 4000).toBeLessThan(0.04)
  })
})

describe('rules', () => {
  const rule = (when: string | undefined, model: string) => ({ when: when === undefined ? undefined : compileExpression(when, 'llm'), to: [target(model)] })

  test.each([
    [body({ tools: [{}] }), 'tools'],
    [body({}, 'x'.repeat(400)), 'long'],
    [body({ messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }), 'image'],
    [body(), 'rest'],
  ])('the first that matches has the targets (%#)', (request, expected) => {
    const rules = [
      rule('fail("never")', 'never'),
      rule('size(llmRequest.tools) > 0', 'tools'),
      rule('"image" in llm.modalities', 'image'),
      rule('llm.promptTokens > 50', 'long'),
      rule(undefined, 'rest'),
    ]
    const table = tableOf(entry('m', [], { rules }))
    const facts = new ModelFacts(request, 'completions', JSON.stringify(request).length)
    const exchange = newExchange()
    variables.llm.set(exchange, { promptTokens: facts.promptTokens, modalities: [...facts.modalities] })
    expect(ModelChoice.start(table, 'm', { exchange, facts, random: seeded(1), nowMs: () => 0 })?.current?.model).toBe(expected)
  })

  test('a model of which none matches does not exist, nor does an internal one', () => {
    const table = tableOf(entry('m', [], { rules: [rule('false', 'a')] }), entry('hidden', [target('a')], { isPublic: false }))
    expect([start(table), start(table, { name: 'hidden' }), start(table, { name: 'nothing' })]).toEqual([undefined, undefined, undefined])
  })
})

describe('the next target', () => {
  const fallback = [
    [['RateLimit', 'Timeout'], [target('second')]],
    [['ContextLength'], [target('small', { window: 10 }), target('large', { window: 1_000_000 })]],
    [['RateLimit'], [target('third')]],
  ] as const satisfies EntryOptions['fallback']

  test('is that of the first fallback for the cause with a target that was not used', () => {
    const choice = start(tableOf(entry('m', [target('first')], { fallback })))
    const models = [choice?.current?.model, choice?.next('RateLimit')?.model, choice?.next('RateLimit')?.model, choice?.next('RateLimit')?.model]
    expect(models).toEqual(['first', 'second', 'third', undefined])
    expect(choice?.skipped.map(({ target: id, reason }) => `${id.split(' ')[1]} ${reason}`)).toEqual(['first RateLimit', 'second RateLimit', 'third RateLimit'])
  })

  test('has a larger context window after the context was too long', () => {
    const request = body({}, 'x'.repeat(400))
    const choice = start(tableOf(entry('m', [target('first')], { fallback })), { request })
    expect([choice?.next('ContextLength')?.model, choice?.next('Auth')]).toEqual(['large', undefined])
  })

  test('is used at once if no target of the model can serve the request, or all are evicted', () => {
    const request = body({}, 'x'.repeat(400))
    expect(chosen(tableOf(entry('m', [target('first', { window: 10 })], { fallback })), { request })).toBe('large')
    expect(chosen(tableOf(entry('m', [target('first', { isEvicted: true })], { fallback })))).toBe('second')
    expect(chosen(tableOf(entry('m', [target('first', { isEvicted: true })])))).toBe('first')
  })
})

describe('a model of another backend', () => {
  const nested = (table: ModelTable, model?: string): ModelTarget => ({ id: `ns/team ${model ?? ''}`, weight: 1, model, groups: [], table })

  test('chooses by its own rules, and its fallback is used before that of the outer model', () => {
    const inner = tableOf(entry('assistant', [target('own')], { isPublic: false, fallback: [[['Timeout'], [target('spare')]]] }))
    const choice = start(tableOf(entry('m', [nested(inner, 'assistant')], { fallback: [[['Timeout'], [target('outer')]]] })))
    expect([choice?.current?.model, choice?.next('Timeout')?.model, choice?.next('Timeout')?.model]).toEqual(['own', 'spare', 'outer'])
  })

  test('that is internal is not reached by a name that the client chose', () => {
    const team = tableOf(entry('secret', [target('hidden')], { isPublic: false }), entry('open', [target('shown')]))
    const table = tableOf(entry('*', [nested(team)]), entry('secret-alias', [nested(team, 'secret')]))
    expect(start(table, { name: 'secret' })?.current).toBeUndefined()
    expect([chosen(table, { name: 'open' }), chosen(table, { name: 'secret-alias' })]).toEqual(['shown', 'hidden'])
  })

  test('that leads back, or has no such model, is not used', () => {
    const circle: { table: ModelTable | undefined } = { table: undefined }
    const back: ModelTarget = { id: 'back', weight: 1, model: undefined, groups: [], get table() { return circle.table } } // prettier-ignore
    circle.table = tableOf(entry('m', [back, nested(tableOf(), 'nothing'), target('works')]))
    expect(chosen(circle.table)).toBe('works')
    circle.table = tableOf(entry('m', [back]))
    expect(start(circle.table)?.current).toBeUndefined()
  })

  test('is graded in time that does not grow with the ways to it', () => {
    let table = tableOf(entry('m', [target('end')]))
    for (let depth = 0; depth < 7; depth++) {
      const to = Array.from({ length: 16 }, (_, index) => ({ ...nested(table), id: `t${index}` }))
      table = tableOf(entry('m', to, { rules: Array.from({ length: 16 }, () => ({ when: undefined, to })) }))
    }
    const startedAt = performance.now()
    expect(chosen(table)).toBe('end')
    expect(performance.now() - startedAt).toBeLessThan(1000)
  })
})
