import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { LocalRateLimit, Traffic } from '#gen/config/types.ts'
import { staticTarget, type GatewayConfig } from './testing/gateway.ts'
import { begin, call, sendModern, TestBed, type RawAnswer } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const gatewayTarget = { kind: 'Gateway', namespace: 'ns', name: 'gw' } as const
const perHour = (requests: number, key: string): LocalRateLimit => ({ requests, unit: 'Hours', key })

async function start(rateLimit: NonNullable<Traffic['rateLimit']>, mcp: GatewayConfig['mcp'] = {}, policies?: GatewayConfig['policies']) {
  const servers = [await bed.upstream('one'), await bed.upstream('two')]
  const targets = [staticTarget('a', servers[0]?.port ?? 0), staticTarget('b', servers[1]?.port ?? 0)]
  const attached = [{ target: gatewayTarget, traffic: { rateLimit } }]
  const { url } = await bed.gateway({ mcp: { targets, ...mcp }, attached, ...(policies && { policies }) })
  const { post } = await begin(url)
  const use = (name: string, headers: Record<string, string> = {}): Promise<RawAnswer> => post(call('tools/call', { name }), headers)
  return { url, post, use, status: async (name: string, headers?: Record<string, string>) => (await use(name, headers)).status, servers }
}

describe('a local rate limit with a key that reads mcp', () => {
  test('counts the calls of each tool, and neither handshakes nor lists', async () => {
    const { post, status } = await start({ local: [perHour(1, 'mcp.tool.target + "/" + mcp.tool.name')] })
    for (let count = 0; count < 3; count++) expect((await post(call('tools/list'))).status).toBe(200)
    expect((await post(call('prompts/get', { name: 'a_greet', arguments: { who: 'x' } }))).status).toBe(200)
    expect([await status('a_echo'), await status('a_echo'), await status('b_echo'), await status('a_link')]).toEqual([200, 429, 200, 200])
  })

  test('counts each user by itself, and calls without a user together', async () => {
    const { status, servers } = await start({ local: [perHour(1, 'request.headers["x-user"] + mcp.tool.name')] })
    const as = (user: string) => status('a_echo', { 'x-user': user })
    expect([await as('ann'), await as('ann'), await as('bob')]).toEqual([200, 429, 200])
    expect([await status('a_echo'), await status('b_link')]).toEqual([200, 429])
    expect(servers[0]?.log().filter((method) => method === 'tools/call')).toHaveLength(3)
  })

  test('has x-ratelimit headers of its budget', async () => {
    const { use } = await start({ local: [perHour(2, 'mcp.tool.name')] })
    const headersOf = ({ headers }: RawAnswer): unknown[] => [headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']]
    expect(headersOf(await use('a_echo'))).toEqual(['2', '1'])
    expect(headersOf(await use('a_echo'))).toEqual(['2', '0'])
    expect(headersOf(await use('a_echo'))).toEqual(['2', '0'])
  })

  test('counts methods if it reads no item', async () => {
    const { post } = await start({ local: [perHour(1, 'mcp.methodName')] })
    const statuses = async (...methods: string[]): Promise<number[]> => {
      const answers = []
      for (const method of methods) answers.push((await post(call(method))).status)
      return answers
    }
    expect(await statuses('tools/list', 'tools/list', 'prompts/list')).toEqual([200, 429, 200])
  })

  test('counts prompts and resources', async () => {
    const { post } = await start({ local: [perHour(1, 'mcp.prompt.name'), perHour(1, 'mcp.resource.name')] })
    const get = async (): Promise<number> => (await post(call('prompts/get', { name: 'a_greet', arguments: { who: 'x' } }))).status
    const read = async (): Promise<number> => (await post(call('resources/read', { uri: 'a+memo:x' }))).status
    expect([await get(), await get(), await read(), await read()]).toEqual([200, 429, 200, 429])
  })

  test('leaves out denied calls, and counts other entries for every request', async () => {
    const local = [{ requests: 4, unit: 'Hours' as const }, perHour(1, 'mcp.tool.name')]
    const policies = { mcp: { authorization: { policy: { matchExpressions: ['request.headers["x-in"] == "1"'] } } } }
    const { status, use } = await start({ local }, {}, policies)
    expect((await use('a_echo')).json.error?.message).toBe('Unknown tool: a_echo')
    expect(await status('a_echo', { 'x-in': '1' })).toBe(200)
    // Two requests of the handshake, and two calls.
    expect(await status('a_link', { 'x-in': '1' })).toBe(429)
  })

  test('counts a renamed tool, and one that is called through the search, by its name on the server', async () => {
    const tools = { overrides: [{ name: 'echo', rename: 'say' }] }
    const { port } = await bed.upstream('one')
    const targets = [{ ...staticTarget('a', port), tools }]
    const { post } = await start({ local: [perHour(1, 'mcp.tool.name == "echo" ? "echo" : "other"')] }, { targets, toolSearch: 'Enabled' })
    const use = async (name: string, args: object): Promise<number> => (await post(call('tools/call', { name, arguments: args }))).status
    expect([await use('call_tool', { name: 'say' }), await use('say', {}), await use('search_tools', { query: 'x' })]).toEqual([200, 429, 200])
  })

  test('counts calls of clients without sessions', async () => {
    const { url } = await start({ local: [perHour(1, 'mcp.tool.name')] })
    const use = async (): Promise<number> => (await sendModern(url, 'tools/call', { name: 'a_echo' })).status
    expect([await use(), await use()]).toEqual([200, 429])
  })
})
