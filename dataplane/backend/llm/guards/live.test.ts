import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { evalHost } from '#api/cel/index.ts'
import type { PromptguardResponse } from '#gen/config/types.ts'
import { startGuardService } from '../../../../e2e/harness/llm/guard.ts'
import { compileExpression } from '../../../request/expression/program.ts'
import { ExchangeView } from '../../../request/expression/view.ts'
import { chat, sdkRoutes, startTestBed, type TestResponse, type TestBed, type TestBedOptions } from '../testing/test-bed.ts'

/** Tests every kind of guard, in every client format, buffered and streamed, over sockets. */

const open: TestBed[] = []
let judge: Awaited<ReturnType<typeof startGuardService>>
let rejecting: Server
beforeAll(async () => {
  judge = await startGuardService({ name: 'judge' })
  rejecting = createServer((request, response) => {
    request.resume()
    response.end('{"action":{"body":"not this","status_code":418}}')
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => rejecting.once('listening', resolve))
})
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
})
afterAll(async () => {
  await judge.close()
  rejecting.closeAllConnections()
  await new Promise((resolve) => rejecting.close(resolve))
})

const clients = {
  completions: { path: '/v1/chat/completions', body: (text: string) => chat(text), error: /data: \{"error":\{[^\n]*\}\n\n$/, end: 'data: [DONE]' },
  messages: {
    path: '/v1/messages',
    body: (text: string) => chat(text, { max_tokens: 50 }),
    error: /event: error\ndata: \{"type":"error","error":\{[^\n]*\n\n$/,
    end: 'event: message_stop',
  },
  responses: {
    path: '/v1/responses',
    body: (text: string) => ({ model: 'gpt-4o', input: text }),
    error: /event: error\ndata: \{[^\n]*\n\n$/,
    end: 'event: response.completed',
  },
}
const webhook = (port: number): PromptguardResponse => ({ webhook: { backendRef: { address: `127.0.0.1:${port}` } } })
const secret = 'Smaug has 123-45-6789 here'

async function sendChat(format: keyof typeof clients, guard: PromptguardResponse, stream: boolean, options: TestBedOptions = {}): Promise<TestResponse> {
  const bed = await startTestBed({ ...options, ai: { routes: sdkRoutes, promptGuard: { response: [guard] } } })
  open.push(bed)
  const { path, body } = clients[format]
  return bed.post({ path, body: { ...body(secret), stream }, headers: { 'x-mock': 'chunk=11' } })
}

/** The concatenated texts of a stream or a buffered response. */
const textsOf = ({ text }: TestResponse): string => [...text.matchAll(/"(?:content|text|delta)":"((?:[^"\\]|\\.)*)"/g)].map(([, piece]) => piece).join('')

describe.each(Object.keys(clients) as (keyof typeof clients)[])('a client of %s', (format) => {
  describe.each([false, true])('with stream=%s', (stream) => {
    test('receives text masked by patterns', async () => {
      const response = await sendChat(format, { regex: { builtins: ['Ssn'] } }, stream)
      expect([response.status, textsOf(response)]).toEqual([200, expect.stringContaining('echo: Smaug has <SSN> here')])
      expect(response.text).not.toMatch(/123|6789/)
      if (stream) expect(response.text).toContain(clients[format].end)
    })

    test.each([
      ['patterns', (): PromptguardResponse => ({ regex: { builtins: ['Ssn'] } }), 'echo: Smaug has <SSN> here'],
      ['a service', (): PromptguardResponse => webhook(judge.port), 'echo: [somebody] has 123-45-6789 here'],
    ])('receives the text that expressions of the log read, masked by %s', async (_, guard, masked) => {
      const accessLog = { attributes: { add: [{ name: 'text', expression: 'llm.completion' }] } }
      await sendChat(format, guard(), stream, { onGateway: [{ frontend: { accessLog } }] })
      const [exchange] = open[0]?.gateway.finished ?? []
      expect(exchange && evalHost(compileExpression('llm.completion', 'log'), new ExchangeView(exchange))).toEqual([masked])
    })

    test('receives text masked by a service', async () => {
      const response = await sendChat(format, webhook(judge.port), stream)
      expect([response.status, textsOf(response)]).toEqual([200, expect.stringContaining('echo: [somebody] has 123-45-6789 here')])
      expect(response.text).not.toContain('Smaug')
      if (stream) expect(response.text).toContain(clients[format].end)
    })

    test.each([
      ['a service rejects the response', (): number => (rejecting.address() as AddressInfo).port, 418, 'not this'],
      ['the service is unavailable', (): number => 1, 503, 'prompt guard failed'],
    ] as const)('receives no text of the response if %s', async (_, port, status, text) => {
      const accessLog = { attributes: { add: [{ name: 'text', expression: 'llm.completion' }] } }
      const response = await sendChat(format, webhook(port()), stream, { onGateway: [{ frontend: { accessLog } }] })
      const [exchange] = open[0]?.gateway.finished ?? []
      expect(exchange && evalHost(compileExpression('llm.completion', 'log'), new ExchangeView(exchange))).toEqual([])
      expect(response.text).not.toMatch(/Smaug|6789|echo/)
      expect(response.text).toContain(text)
      if (!stream) expect([response.status, response.text]).toEqual([status, text])
      else {
        expect(response.status).toBe(200)
        expect(response.text).toMatch(clients[format].error)
        expect(response.text).not.toContain(clients[format].end)
      }
    })
  })
})

test.each([
  ['completions', { providerC: {} }],
  ['messages', { providerC: {} }],
  ['responses', { providerD: {} }],
] as const)('a client of %s whose provider speaks another format, or its own, receives the same masked text', async (format, provider) => {
  expect(textsOf(await sendChat(format, { regex: { builtins: ['Ssn'] } }, true, { provider }))).toContain('echo: Smaug has <SSN> here')
})
