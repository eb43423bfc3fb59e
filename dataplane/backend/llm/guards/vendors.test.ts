import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import type { AIPromptGuard } from '#gen/config/types.ts'
import { startMockProvider, type MockProvider } from '../../../../e2e/harness/llm/provider.ts'
import { chat, sdkRoutes, startTestBed, type TestResponse, type TestBed, type TestBedOptions } from '../testing/test-bed.ts'

/** Tests moderation, Bedrock Guardrails and Model Armor over sockets, with every format, buffered and streamed. */

const auth = { key: 'key-of-the-screener' }
const guards = {
  moderationApi: { moderationApi: { policies: { auth } } },
  cloudGuardrails: { cloudGuardrails: { identifier: 'g', version: '1', region: 'eu-west-1', policies: { auth } } },
  modelArmor: { modelArmor: { templateId: 't', projectId: 'p', policies: { auth } } },
} as const
type GuardName = keyof typeof guards
const responseGuards = ['cloudGuardrails', 'modelArmor'] as const

const formats = {
  completions: {
    path: '/v1/chat/completions',
    body: (text: string) => chat(text),
    error: (type: string, message: string) => `data: ${JSON.stringify({ error: { message, type, param: null, code: type } })}\n\n`,
  },
  messages: {
    path: '/v1/messages',
    body: (text: string) => chat(text, { max_tokens: 50 }),
    error: (type: string, message: string) => `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type, message } })}\n\n`,
  },
  responses: {
    path: '/v1/responses',
    body: (text: string) => ({ model: 'gpt-4o', input: text }),
    error: (code: string, message: string) => `event: error\ndata: ${JSON.stringify({ type: 'error', code, message, param: null })}\n\n`,
  },
}
type Format = keyof typeof formats
const formatNames = Object.keys(formats) as Format[]

let screener: MockProvider
const open: TestBed[] = []
const variables = ['OPENAI_BASE_URL', 'AWS_ENDPOINT_URL_BEDROCK_RUNTIME', 'CLOUDSDK_API_ENDPOINT_OVERRIDES_MODELARMOR'] as const
beforeAll(async () => {
  screener = await startMockProvider()
  for (const variable of variables) process.env[variable] = screener.url
})
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
  screener.requests.length = 0
})
afterAll(async () => {
  for (const variable of variables) delete process.env[variable]
  await screener.close()
})

interface GuardedResponse extends TestResponse {
  /** The texts of the requests that the provider received. */
  readonly forwarded: readonly string[]
}

async function sendChat(format: Format, promptGuard: AIPromptGuard, text: string, stream: boolean, options: TestBedOptions = {}): Promise<GuardedResponse> {
  const bed = await startTestBed({ ...options, ai: { routes: sdkRoutes, promptGuard } })
  open.push(bed)
  const { path, body } = formats[format]
  const response = await bed.post({ path, body: { ...body(text), stream } })
  return { ...response, forwarded: bed.mock.requests.map(({ raw }) => raw.toString()) }
}

const requestText = 'The request was rejected due to inappropriate content'
const responseText = 'The response was rejected due to inappropriate content'
const failures = ['please fail', 'talk nonsense']

describe.each(formatNames)('a client of %s,', (format) => {
  describe.each([false, true])('with stream=%s,', (stream) => {
    describe.each(Object.keys(guards) as GuardName[])('has prompts that %s', (name) => {
      test('allows, rejects, or blocks because it fails', async () => {
        const guard: AIPromptGuard = { request: [guards[name]] }
        const passed = await sendChat(format, guard, 'hello there', stream)
        expect([passed.status, passed.forwarded.length]).toEqual([200, 1])
        const rejected = await sendChat(format, guard, 'of the dragon', stream)
        expect([rejected.status, rejected.headers['content-type'], rejected.text, rejected.forwarded]).toEqual([403, 'text/plain', requestText, []])
        for (const text of failures) {
          const failed = await sendChat(format, guard, text, stream)
          expect([failed.status, failed.text, failed.forwarded]).toEqual([503, 'prompt guard failed', []])
        }
        expect(screener.requests.map(({ headers }) => headers['authorization'])).toEqual(Array(4).fill('Bearer key-of-the-screener'))
      })
    })

    test('has prompts anonymized by cloudGuardrails', async () => {
      const { status, forwarded } = await sendChat(format, { request: [guards.cloudGuardrails] }, 'Smaug sleeps', stream)
      expect([status, forwarded.length]).toEqual([200, 1])
      expect(forwarded[0]).toContain('{NAME} sleeps')
    })

    describe.each(responseGuards)('has responses that %s', (name) => {
      const guard: AIPromptGuard = { response: [guards[name]] }
      test('allows, so that they arrive unchanged', async () => {
        const passed = await sendChat(format, guard, 'hello there', stream)
        expect(passed.status).toBe(200)
        expect(passed.text).toMatch(/hello/)
      })

      test('rejects, so that no text arrives', async () => {
        const rejected = await sendChat(
          format,
          { response: [{ ...guards[name], response: { statusCode: 451, message: 'no such tales' } }] },
          'of the dragon',
          stream,
        )
        expect(rejected.text).not.toMatch(/dragon|echo/)
        if (stream) expect([rejected.status, rejected.text]).toEqual([200, formats[format].error('content_filter', 'no such tales')])
        else expect([rejected.status, rejected.text]).toEqual([451, 'no such tales'])
        const plain = await sendChat(format, guard, 'of the dragon', stream)
        if (stream) expect(plain.text).toBe(formats[format].error('content_filter', responseText))
        else expect([plain.status, plain.text]).toEqual([403, responseText])
      })

      test.each(failures)('blocks because it fails with %s', async (text) => {
        const failed = await sendChat(format, guard, text, stream)
        if (stream) expect([failed.status, failed.text]).toEqual([200, formats[format].error('guard_failed', 'prompt guard failed')])
        else expect([failed.status, failed.text]).toEqual([503, 'prompt guard failed'])
      })
    })

    test('has responses anonymized by cloudGuardrails', async () => {
      const { text } = await sendChat(format, { response: [guards.cloudGuardrails] }, 'Smaug sleeps', stream)
      expect(text).toContain('{NAME} sleeps')
      expect(text).not.toContain('Smaug')
    })
  })
})

describe('a guard service that does not respond', () => {
  const within = (requestMs: number) => ({ route: { timeouts: { requestMs } } })
  test.each(Object.keys(guards) as GuardName[])('delays a prompt no longer than the request timeout: %s', async (name) => {
    const { status, forwarded } = await sendChat('completions', { request: [guards[name]] }, 'stall', false, within(500))
    expect([status, forwarded]).toEqual([504, []])
  })

  test.each(formatNames)('delays a streamed response no longer than the request timeout: %s', async (format) => {
    const { status, text } = await sendChat(format, { response: [guards.modelArmor] }, 'stall', true, within(3000))
    expect([status, text]).toEqual([200, formats[format].error('timeout_error', 'request timeout')])
  })
})
