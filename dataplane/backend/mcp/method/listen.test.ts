import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { ServerResponse } from 'node:http'
import { staticTarget, type McpGateway } from '../testing/gateway.ts'
import { begin, send, until, TestBed } from '../testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

interface Streams {
  readonly port: number
  /** Last-Event-ID of each GET. */
  readonly asked: unknown[]
  /** The open stream. */
  last(): ServerResponse | undefined
  /** Status of the responses to GET from now on. */
  status: number
}

/** A target whose streams are ended by the test. */
async function streams(): Promise<Streams> {
  const asked: unknown[] = []
  let open: ServerResponse | undefined
  const { port } = await bed.scripted((request, response, body) => {
    if (request.method === 'GET') {
      asked.push(request.headers['last-event-id'])
      if (target.status !== 200) return void response.writeHead(target.status).end()
      open = response
      return void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('retry: 10\n\n')
    }
    const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
    response.writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json', 'mcp-session-id': 's' })
    response.end(body?.id === undefined ? '' : JSON.stringify({ jsonrpc: '2.0', id: body.id, result }))
  })
  const target: Streams = { port, asked, last: () => open, status: 200 }
  return target
}

const event = (id: string, data: string): string =>
  `id: ${id}\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"${data}"}}\n\n`

/** Opens the client's stream. Returns the text received so far and whether it ended. */
async function listen({ url }: McpGateway): Promise<{ text: () => string; isOver: () => boolean; leave: () => void }> {
  const { id } = await begin(url)
  const controller = new AbortController()
  const response = await fetch(url, { headers: { accept: 'text/event-stream', 'mcp-session-id': id }, signal: controller.signal })
  expect(response.status).toBe(200)
  let text = ''
  let isOver = false
  const read = async (): Promise<void> => {
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString()
    isOver = true
  }
  void read().catch(() => undefined)
  bed.onClose(async () => controller.abort())
  return { text: () => text, isOver: () => isOver, leave: () => controller.abort() }
}

describe('when a target closes its stream', () => {
  async function both() {
    const [one, two] = [await streams(), await streams()]
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', two.port)] } })
    const client = await listen(gateway)
    await until('their streams', () => one.last() !== undefined && two.last() !== undefined)
    return { one, two, gateway, client }
  }

  test('and another is open, the gateway resumes it without the client noticing', async () => {
    const { one, two, client } = await both()
    one.last()?.end(event('e1', 'first'))
    await until('the next stream', () => one.asked.length === 2)
    await until('its head', () => one.last()?.writableEnded === false)
    one.last()?.write(event('e2', 'second'))
    await until('what it says', () => client.text().includes('second'))
    expect([one.asked, two.asked, client.isOver(), client.text()]).toEqual([[undefined, 'e1'], [undefined], false, expect.not.stringContaining('id: ')])
  })

  test('and rejects new ones, the stream of the other target continues', async () => {
    const { one, two, client } = await both()
    one.status = 405
    one.last()?.end()
    await until('the try', () => one.asked.length === 2)
    two.last()?.write(event('e', 'still'))
    await until('what the other says', () => client.text().includes('still'))
    expect(client.isOver()).toBe(false)
  })

  test('and lost the session, the client’s stream ends, so that the client starts a new session', async () => {
    const { one, client } = await both()
    one.status = 404
    one.last()?.end()
    await until('the end', () => client.isOver())
    expect(one.asked).toHaveLength(2)
  })

  test('and no other is open, the client’s stream ends too', async () => {
    const { one, two, client } = await both()
    one.status = 503
    one.last()?.end()
    await until('some tries', () => one.asked.length > 2)
    expect(client.isOver()).toBe(false)
    two.last()?.end()
    await until('the end', () => client.isOver())
  })
})

test('the stream of a single target is reopened for a client of HTTP+SSE, which cannot reconnect', async () => {
  const one = await streams()
  const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
  const controller = new AbortController()
  bed.onClose(async () => controller.abort())
  const reader = (await fetch(new URL('/sse', url), { signal: controller.signal })).body?.getReader()
  let text = ''
  const read = async (): Promise<void> => {
    for (;;) {
      const part = await reader?.read()
      if (part?.done !== false) return
      text += new TextDecoder().decode(part.value)
    }
  }
  void read().catch(() => undefined)
  await until('the endpoint', () => text.includes('sessionId'))
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {} } })
  await fetch(new URL(/^data: (.*)$/m.exec(text)?.[1] ?? '', url), { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  await until('the stream of the target', () => one.asked.length === 1)
  one.last()?.end(event('e1', 'first'))
  await until('the next one', () => one.asked.length === 2)
  one.last()?.write(event('e2', 'second'))
  await until('what it says', () => text.includes('second'))
  expect(one.asked).toEqual([undefined, 'e1'])
})

describe('a response on the stream of server messages of a single target (mcp.md §5.2)', () => {
  const allowSafe = { mcp: { authorization: { policy: { matchExpressions: ['mcp.tool.name == "safe" || mcp.resource.name == "file:///safe"'] } } } }
  const over = (id: number, result: object): string => JSON.stringify({ jsonrpc: '2.0', id, result })
  const tool = (name: string, description = ''): object => ({ name, description, inputSchema: { type: 'object' } })
  const NOTICE = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'

  /** The messages that a client receives when the server sends `texts` on a stream that the client resumes. */
  async function resumed(options: Parameters<TestBed['gateway']>[0], ...texts: readonly string[]): Promise<string[]> {
    const { port } = await bed.scripted((request, response, body) => {
      if (request.method !== 'GET') {
        const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
        response.writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json', 'mcp-session-id': 's' })
        return void response.end(body?.id === undefined ? '' : JSON.stringify({ jsonrpc: '2.0', id: body.id, result }))
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(texts.map((data, index) => `id: ${index}\ndata: ${data}\n\n`).join(''))
    })
    const gateway = await bed.gateway({ ...options, mcp: { ...options.mcp, targets: [staticTarget('a', port)] } })
    const { id } = await begin(gateway.url)
    const { text } = await send(gateway.url, 'GET', { accept: 'text/event-stream', 'mcp-session-id': id, 'last-event-id': '5' })
    return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => data)
  }

  test('has only the items that authorization rules allow', async () => {
    const tools = over(1, { tools: [tool('safe'), tool('rm')], nextCursor: 'n' })
    const resources = over(2, { resources: [{ uri: 'file:///etc' }, { uri: 'file:///safe' }] })
    expect(await resumed({ policies: allowSafe }, tools, resources, NOTICE)).toEqual([
      over(1, { tools: [tool('safe')], nextCursor: 'n' }),
      over(2, { resources: [{ uri: 'file:///safe' }] }),
      NOTICE,
    ])
  })

  test('has only the items that rules allow, however large the response is', async () => {
    const [received = ''] = await resumed({ policies: allowSafe }, over(1, { tools: [tool('rm', 'x'.repeat(1_000_000)), tool('safe')] }))
    expect(received).toBe(over(1, { tools: [tool('safe')] }))
  })

  test.each([
    ['a batch', `[${over(1, { tools: [tool('rm')] })}]`],
    ['a list with an item without a name', over(1, { tools: [{ title: 'rm' }] })],
    ['a list that is an object', over(1, { tools: { rm: tool('rm') } })],
    ['text that is not JSON', '{"rm"'],
  ])('is dropped if it is %s and rules apply', async (_, text) => {
    expect(await resumed({ policies: allowSafe }, text, NOTICE)).toEqual([NOTICE])
  })

  test('has the names for clients if names have prefixes', async () => {
    expect(await resumed({ mcp: { targets: [], prefixMode: 'Always' } }, over(1, { tools: [tool('t')] }))).toEqual([over(1, { tools: [tool('a_t')] })])
  })

  test('passes unread without rules', async () => {
    const texts = [over(1, { tools: [tool('t')] }), '[]', NOTICE]
    expect(await resumed({}, ...texts)).toEqual(texts)
  })
})
