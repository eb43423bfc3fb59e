import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { staticTarget } from '../testing/gateway.ts'
import { begin, call, initialize, MCP_HEADERS, send, until, TestBed } from '../testing/test-bed.ts'
import { resolveEndpoint } from './connection.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

describe('the endpoint event (mcp.md §5.3, row 33)', () => {
  const own = ['10.0.0.1:80', 'mcp.example.com:80', 'mcp.example.com:8080']
  test.each<[string, string, string | undefined]>([
    ['a path', '/messages?sessionId=1', '/messages?sessionId=1'],
    ['a path without slash', 'messages', '/messages'],
    ['a query', '?sessionId=1', '/sse?sessionId=1'],
    ['an absolute URL of the target', 'http://mcp.example.com/messages?a=b', '/messages?a=b'],
    ['an absolute URL with its port', 'http://mcp.example.com:8080/m', '/m'],
    ['an absolute URL in capital letters', 'HTTP://MCP.EXAMPLE.COM/m', '/m'],
    ['an absolute URL with the address', 'http://10.0.0.1/m', '/m'],
    ['another host', 'http://evil.example/m', undefined],
    ['another port', 'http://mcp.example.com:9090/m', undefined],
    ['another host without scheme', '//evil.example/m', undefined],
    ['another scheme', 'file:///etc/passwd', undefined],
    ['credentials that look like the target', 'http://mcp.example.com@evil.example/m', undefined],
    ['credentials for the target', 'http://user:pass@mcp.example.com/m', undefined],
    ['a backslash', '/\\evil.example/m', undefined],
    ['a line end', '/m\r\nx: y', undefined],
    ['a space', '/m HTTP/1.1', undefined],
    ['no text', '', undefined],
  ])('with %s (%j) leads to %s', (_, data, expected) => expect(resolveEndpoint('/sse?x=1', own, data)).toBe(expected))
})

describe('a target that speaks SSE', () => {
  const stream = (
    onOpen: (write: (text: string) => void) => void,
    onPost: (body: { id?: unknown; method?: string } | undefined, write: (text: string) => void) => void = () => undefined,
  ) => {
    let write: (text: string) => void = () => undefined
    return bed.scripted((request, response, body) => {
      if (request.method === 'GET') {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        write = (text) => void response.write(text)
        return onOpen(write)
      }
      response.writeHead(202).end()
      onPost(body, write)
    })
  }
  const start = async (port: number) => (await bed.gateway({ mcp: { targets: [staticTarget('a', port, { protocol: 'SSE' })] } })).url
  const endpoint = 'event: endpoint\ndata: /messages\n\n'
  const answer = (
    body: { id?: unknown } | undefined,
    result: object = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } },
  ) => `data: ${JSON.stringify({ jsonrpc: '2.0', id: body?.id, result })}\n\n`

  test('is rejected if its endpoint is on another origin', async () => {
    let isElsewhereCalled = false
    const elsewhere = await bed.scripted((_, response) => {
      isElsewhereCalled = true
      response.writeHead(202).end()
    })
    const { port } = await stream((write) => write(`event: endpoint\ndata: http://127.0.0.1:${elsewhere.port}/messages\n\n`))
    const { status, json } = await send(await start(port), 'POST', MCP_HEADERS, initialize())
    expect([status, json.error?.message, isElsewhereCalled]).toEqual([500, 'failed to send message: protocol error', false])
  })

  test.each([1, 2])('reports progress of a call on the stream of the call, before the result, with %i target(s)', async (count) => {
    const progress = (progressToken: unknown, step: number) =>
      `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: step } })}\n\n`
    const { port } = await stream(
      (write) => write(endpoint),
      (body, write) => {
        const { id, method, params } = body as { id?: number; method?: string; params?: Record<string, { progressToken?: unknown }> }
        const token = params?.['_meta']?.progressToken
        if (method === 'tools/call') write(`${progress(token, 1)}${progress('other', 9)}${progress(token, 2)}${progress(token, 3)}${answer({ id })}`)
        else if (id !== undefined) write(answer({ id }))
      },
    )
    const other = await bed.upstream('other')
    const targets = [staticTarget('a', port, { protocol: 'SSE' }), staticTarget('b', other.port)].slice(0, count)
    const { post } = await begin((await bed.gateway({ mcp: { targets } })).url)
    for (const token of ['t', 0]) {
      const { text } = await post(call('tools/call', { name: count === 1 ? 'x' : 'a_x', _meta: { progressToken: token } }, 5))
      const messages = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data) as { id?: number; params?: object })
      expect(messages.map(({ id, params }) => id ?? params)).toEqual([...[1, 2, 3].map((step) => ({ progressToken: token, progress: step })), 5])
    }
  })

  test('fails pending requests and ends the session when its stream ends', async () => {
    let end = (): void => undefined
    const { port } = await bed.scripted((request, response, body) => {
      if (request.method === 'GET') {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(endpoint)
        end = () => void response.end()
        bed.onClose(async () => void response.end())
        write = (text) => void response.write(text)
        return
      }
      response.writeHead(202).end()
      if (body?.method === 'initialize') write(answer(body))
      isCalled ||= body?.method === 'tools/call'
    })
    let isCalled = false
    let write: (text: string) => void = () => undefined
    const { post } = await begin(await start(port))
    const waiting = post(call('tools/call', { name: 'x' }))
    await until('the call', () => isCalled)
    end()
    expect((await waiting).json.error).toEqual({ code: -32603, message: 'an upstream broke off its response' })
    expect((await post(call('ping'))).status).toBe(404)
  })

  test('rejects the second of two concurrent requests with one id', async () => {
    const { port } = await stream(
      (write) => write(endpoint),
      (body, write) => {
        if (body?.method === 'initialize') write(answer(body))
        if (body?.method === 'slow') finish = () => write(answer(body, { slow: true }))
      },
    )
    let finish: (() => void) | undefined
    const { post } = await begin(await start(port))
    const first = post(call('slow', {}, 7))
    await until('the first request', () => finish !== undefined)
    expect((await post(call('slow', {}, 7))).json.error).toMatchObject({ code: -32600 })
    finish?.()
    expect((await first).json.result).toEqual({ slow: true })
  })

  test('skips events that are no messages and responses without a request', async () => {
    const { port } = await stream(
      (write) => write(endpoint),
      (body, write) => {
        if (body?.id === undefined) return
        write('data: no json\n\n')
        write(answer({ id: 'nobody' }))
        write(`event: endpoint\ndata: http://evil.example/\n\n${answer(body)}`)
      },
    )
    const { post } = await begin(await start(port))
    expect((await post(call('ping'))).json.id).toBe(1)
  })

  test('keeps messages without a listener for the next stream', async () => {
    let push: (text: string) => void = () => undefined
    const { port } = await stream(
      (write) => {
        push = write
        write(endpoint)
      },
      (body, write) => {
        if (body?.id !== undefined) write(answer(body))
      },
    )
    const url = await start(port)
    const { id, post } = await begin(url)
    for (let count = 0; count < 70; count++) push(`data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":${count}}}\n\n`)
    // Its response follows them on the stream.
    await post(call('ping'))
    const controller = new AbortController()
    const response = await fetch(url, { headers: { accept: 'text/event-stream', 'mcp-session-id': id }, signal: controller.signal })
    let text = ''
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    while (!text.includes('"data":69')) text += Buffer.from((await reader.read()).value ?? []).toString()
    controller.abort()
    expect(text.match(/"data":(\d+)/)?.[1]).toBe('6')
  })
})
