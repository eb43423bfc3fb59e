import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { parseJson } from '#api/json/index.ts'
import { fc } from '#api/property-testing.ts'
import { capturedBodies, toolCaptureLimits } from '../../../request/exchange/captured-bodies.ts'
import { staticTarget } from '../testing/gateway.ts'
import { begin, call, TestBed, until, type ScriptedBody } from '../testing/test-bed.ts'
import { printStart } from './capture.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const LIMIT = 200
const content = (text: string): object => ({ content: [{ type: 'text', text }] })

interface Options {
  readonly isStream?: boolean
  readonly isOff?: boolean
  readonly guards?: object
  readonly result?: object
}

/** Calls the tool `x` of a server, and returns what was captured. */
async function callTool(args: object, { isStream = false, isOff = false, guards, result = content('mail bob@example.org') }: Options = {}) {
  const resultOf = ({ method }: ScriptedBody): object => {
    if (method === 'initialize') return { protocolVersion: '2025-06-18', serverInfo: { name: 's', version: '1' }, capabilities: { tools: {} } }
    return method === 'tools/list' ? { tools: [{ name: 'x', inputSchema: { type: 'object' } }] } : result
  }
  const { port } = await bed.scripted((request, response, body) => {
    if (body?.id === undefined) return void response.writeHead(request.method === 'GET' ? 405 : 202).end()
    const answer = resultOf(body)
    const text = JSON.stringify({ jsonrpc: '2.0', id: body.id, ...('error' in answer ? answer : { result: answer }) })
    const session = body.method === 'initialize' ? { 'mcp-session-id': 's1' } : {}
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json', ...session })
    response.end(isStream ? `data: ${text}\n\n` : text)
  })
  const policies = guards === undefined ? {} : { policies: { mcp: { toolGuards: guards } } }
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', port)] }, ...policies })
  if (!isOff) toolCaptureLimits.set(gateway.registry, LIMIT)
  const { post } = await begin(gateway.url)
  await post(call('tools/call', { name: 'x', arguments: args }))
  await until('the end of the requests', () => gateway.server.finished.length >= 3)
  const exchange = gateway.server.finished.at(-1)
  return exchange && capturedBodies.get(exchange)
}

describe('calls of tools for the ledger', () => {
  test.each([false, true])('have arguments and result, also if they pass unread (stream: %s)', async (isStream) => {
    expect(await callTool({ to: 'ada@example.org' }, { isStream })).toEqual({
      request: '{"to":"ada@example.org"}',
      response: '{"content":[{"type":"text","text":"mail bob@example.org"}]}',
    })
  })

  test('have nothing unless the ledger stores them', async () => {
    expect(await callTool({ to: 'x' }, { isOff: true })).toBeUndefined()
  })

  test.each([false, true])('have what guards have masked (stream: %s)', async (isStream) => {
    const mask = [{ regex: { builtins: ['Email'] } }]
    expect(await callTool({ to: 'ada@example.org' }, { isStream, guards: { input: mask, output: mask } })).toEqual({
      request: '{"to":"<EMAIL_ADDRESS>"}',
      response: '{"content":[{"type":"text","text":"mail <EMAIL_ADDRESS>"}]}',
    })
  })

  test('have nothing that guards reject', async () => {
    const reject = [{ regex: { matches: ['example'], action: 'Reject' } }]
    expect(await callTool({ to: 'ada@example.org' }, { guards: { input: reject } })).toBeUndefined()
    expect(JSON.stringify(await callTool({ to: 'ada' }, { guards: { output: reject } }))).not.toContain('example')
  })

  test('have no errors, and are cut', async () => {
    expect(await callTool({ a: 1 }, { result: { error: { code: -32000, message: 'no' } } })).toEqual({ request: '{"a":1}' })
    const { request, response } = (await callTool({ text: 'ä'.repeat(5000) }, { result: content('b'.repeat(100_000)) })) ?? {}
    expect([Buffer.byteLength(request ?? ''), Buffer.byteLength(response ?? '')]).toEqual([LIMIT + 2, LIMIT])
  })
})

describe('the start of JSON', () => {
  test('is that of JSON.stringify', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.integer({ min: 1, max: 60 }), (value, limit) => {
        const whole = Buffer.from(JSON.stringify(value))
        expect(printStart(value, 10_000)).toBe(whole.toString())
        // Not cut in the middle of a character of the text.
        const start = printStart(value, limit)
        expect(whole.toString().startsWith(start.replace(/\ufffd+$/, '').slice(0, Math.max(0, limit - 12)))).toBe(true)
      }),
    )
  })

  test('keeps digits, and reads no more than it needs', () => {
    expect(printStart(parseJson('{"a":12345678901234567890.5}'), 100)).toBe('{"a":12345678901234567890.5}')
    let reads = 0
    const value = Array.from({ length: 100_000 }, () => ({
      get a() {
        reads++
        return 'x'
      },
    }))
    expect(printStart(value, 50)).toHaveLength(50)
    expect(reads).toBeLessThan(20)
  })
})
