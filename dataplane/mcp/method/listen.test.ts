import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { ServerResponse } from 'node:http'
import { staticTarget, type McpGateway } from '../testing/gateway.ts'
import { begin, until, TestBed } from '../testing/test-bed.ts'

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
