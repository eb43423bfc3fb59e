import { afterEach, describe, expect, test } from '@jest/globals'
import { readPriceCatalog, type ModelCapabilities } from '#api/price-catalog.ts'
import type { Target } from './common/types.ts'
import { rulesOf } from './rules/index.ts'
import { table } from './rules/table.ts'
import { chat, sdkRoutes, startTestBed, type TestBed } from './testing/test-bed.ts'

/** Rows of a price catalog that say what a model accepts (llm.md §7.15). */

const open: TestBed[] = []
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
})

const rates = { input: '1', output: '1' }

/** Starts a gateway whose catalog has capabilities of `my-model`. */
async function start(capabilities: ModelCapabilities): Promise<TestBed> {
  const { providers } = readPriceCatalog({ providers: { openai: { models: { 'my-*': { rates, capabilities } } } } })
  const bed = await startTestBed({ ai: { routes: sdkRoutes, priceCatalog: { configMapRef: { providers } } } })
  open.push(bed)
  return bed
}

/** The body that the provider gets. */
async function sent(capabilities: ModelCapabilities, body: object, path = '/v1/chat/completions') {
  const { post, mock } = await start(capabilities)
  const response = await post({ path, body: { ...chat(), model: 'my-model', ...body } })
  return { response, body: mock.requests[0]?.body ?? {} }
}

describe('capabilities of a row of the catalog', () => {
  test('give a model the rules of another one', async () => {
    const { body, response } = await sent({ family: 'gpt-5.5' }, { max_tokens: 9, temperature: 0.5 })
    expect([body['max_completion_tokens'], body['max_tokens'], body['temperature'], response.headers['x-proxy-omitted']]).toEqual([
      9,
      undefined,
      undefined,
      'temperature',
    ])
    expect(body['model']).toBe('my-model')
  })

  test('of other models leave a request as it is', async () => {
    const { body } = await sent({ family: 'gpt-5.5' }, { model: 'other', max_tokens: 9, temperature: 0.5 })
    expect(body).toMatchObject({ max_tokens: 9, temperature: 0.5 })
  })

  test.each([
    [{ tokenLimit: 'max_completion_tokens' }, { max_completion_tokens: 50 }],
    [{ tokenLimit: 'max_tokens' }, { max_tokens: 50 }],
    [{ family: 'gpt-4o' }, { max_completion_tokens: 50 }],
    [{ family: 'gpt-4o', tokenLimit: 'max_tokens' }, { max_tokens: 50 }],
    [{ sampling: 'Fixed' }, { temperature: undefined }],
    [{ family: 'gpt-5', sampling: 'Any' }, { temperature: 0.9 }],
    [{ maxTemperature: 0.3 }, { temperature: 0.3 }],
    [{ reasoning: 'None' }, { reasoning_effort: undefined }],
    [{ reasoning: 'Effort', efforts: ['low', 'medium'] }, { reasoning_effort: 'medium' }],
  ] as const)('%j hold for Messages clients: %j', async (capabilities, expected) => {
    const request = { max_tokens: 50, temperature: 0.9, thinking: { type: 'adaptive' }, output_config: { effort: 'high' } }
    const { body } = await sent(capabilities as ModelCapabilities, request, '/v1/messages')
    for (const [field, value] of Object.entries(expected)) expect([field, body[field]]).toEqual([field, value])
  })

  test.each([
    [{ tools: false }, '/v1/chat/completions', { tools: [{ type: 'function', function: { name: 'f' } }] }, 'tools'],
    [
      { images: false },
      '/v1/chat/completions',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }] }] },
      'messages',
    ],
    [
      { images: false },
      '/v1/messages',
      { max_tokens: 9, messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } }] }] },
      'messages',
    ],
    [{ images: false }, '/v1/responses', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64,AA==' }] }] }, 'input'],
  ] as const)('%j reject requests at %s with the field', async (capabilities, path, body, field) => {
    const { post, mock } = await start(capabilities)
    const { status, text } = await post({ path, body: { ...(path === '/v1/chat/completions' && chat()), model: 'my-model', ...body } })
    expect([status, mock.requests.length]).toEqual([400, 0])
    expect(text).toContain(`${field}: the price catalog says that the model`)
  })

  test('correct the tags by which a model is chosen', () => {
    const tagsOf = (tags: string[], capabilities: ModelCapabilities): readonly string[] | undefined =>
      readPriceCatalog({ providers: { openai: { models: { m: { rates, tags, capabilities } } } } }).providers['openai']?.models['m']?.tags
    expect([tagsOf(['vision'], { tools: true, images: false }), tagsOf([], { tools: false })]).toEqual([['tools'], undefined])
  })
})

describe('rules with capabilities', () => {
  const targets = Object.keys(table) as Target[]

  test.each(targets)('of %s are those of the family without any, and the same object for each request', (target) => {
    const capabilities: ModelCapabilities = { reasoning: 'Budget' }
    expect(rulesOf(target, 'm', {})).toEqual(rulesOf(target, 'm'))
    expect(rulesOf(target, 'm', capabilities)).toBe(rulesOf(target, 'm', capabilities))
    expect(rulesOf(target, 'my-deployment', { family: 'claude-opus-4-8' })).toEqual(rulesOf(target, 'claude-opus-4-8'))
  })

  test.each(['anthropic', 'vertexClaude', 'converse'] as const)('of %s make a Claude of an unknown name think as they say', (target) => {
    const thinking = (capabilities: ModelCapabilities): readonly boolean[] => {
      const { hasBudget, isAdaptive } = rulesOf(target, 'arn:aws:bedrock:us-east-1:1:application-inference-profile/abc', capabilities).reasoning
      return [hasBudget, isAdaptive]
    }
    expect((['None', 'Effort', 'Budget'] as const).map((reasoning) => thinking({ reasoning }))).toEqual([
      [false, false],
      [false, true],
      [true, false],
    ])
    expect(rulesOf(target, 'm', { tokenLimit: 'max_completion_tokens' }).tokenLimit).toBe(table[target].tokenLimit)
  })
})
