import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { NamedLLMProvider } from '#gen/config/types.ts'
import { sdkRoutes, startTestBed, type TestBed } from './testing/test-bed.ts'

const providers: Readonly<Record<string, [Omit<NamedLLMProvider, 'name'>, string]>> = {
  A: [{ providerA: {} }, 'gpt-4o'],
  C: [{ providerC: {} }, 'claude-x'],
  E: [{ providerE: { projectId: 'p', region: 'eu' } }, 'claude-x'],
  F: [{ providerF: {} }, 'anthropic.claude-3'],
}
const paths = ['/v1/chat/completions', '/v1/messages', '/v1/responses', '/v1/embeddings', '/v1/messages/count_tokens']

/** Nearly valid bodies: known fields with values of any kind. */
const names = [
  'messages',
  'system',
  'input',
  'tools',
  'tool_choice',
  'max_tokens',
  'stop',
  'stream',
  'stream_options',
  'thinking',
  'response_format',
  'content',
  'role',
  'type',
  'text',
  'metadata',
]
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.constantFrom(
      'user',
      'assistant',
      'system',
      'tool',
      'text',
      'image_url',
      'tool_use',
      'tool_result',
      'function',
      '',
      '\ud800',
      'data:image/png;base64,AA',
    ),
    fc.constantFrom(null, true, false, 0, -1, 1.5, 1e308),
    fc.array(tie('any'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...names, '__proto__', 'constructor'), tie('any'), { maxKeys: 4 }),
  ),
})).any
const body = fc.record(Object.fromEntries(names.slice(0, 11).map((name) => [name, value])), { requiredKeys: [] })

describe.each(Object.entries(providers))('random bodies for %s', (_, [provider, model]) => {
  let bed: TestBed
  beforeAll(async () => {
    bed = await startTestBed({
      provider,
      ai: { routes: sdkRoutes, prompt: { prepend: [{ role: 'system', content: 'x' }], append: [{ role: 'user', content: 'y' }] } },
      policies: { auth: { key: 'k' } },
    })
  })
  afterAll(() => bed.close())

  test('are served by the provider or rejected with an LLM error, and the gateway keeps working', async () => {
    await fc.assert(
      fc.asyncProperty(body, fc.constantFrom(...paths), async (fields, path) => {
        const response = await bed.post({ path, body: { ...fields, model } })
        const isExpected = response.status < 500 || response.text.startsWith('failed to process LLM response: ')
        if (!isExpected) throw new Error(`${response.status} ${response.text}`)
      }),
      { numRuns: 80 },
    )
    expect((await bed.post({ path: '/v1/messages', body: { model, max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] } })).status).toBe(200)
  })
})
