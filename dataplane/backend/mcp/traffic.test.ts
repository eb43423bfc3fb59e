import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { staticTarget } from './testing/gateway.ts'
import { begin, call, initialize, MCP_HEADERS, send, until, TestBed } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const gatewayTarget = { kind: 'Gateway', namespace: 'ns', name: 'gw' } as const

test('a rate limit of five requests admits a handshake of three and two calls; the next is 429 (row 45)', async () => {
  const one = await bed.upstream('one')
  const { url } = await bed.gateway({
    mcp: { targets: [staticTarget('a', one.port)] },
    attached: [{ target: gatewayTarget, traffic: { rateLimit: { local: [{ requests: 5, unit: 'Hours' }] } } }],
  })
  const { id, post } = await begin(url)
  const controller = new AbortController()
  const statuses = [(await fetch(url, { headers: { accept: 'text/event-stream', 'mcp-session-id': id }, signal: controller.signal })).status]
  for (let count = 0; count < 3; count++) statuses.push((await post(call('ping'))).status)
  controller.abort()
  expect(statuses).toEqual([200, 200, 200, 429])
})

test('an authorization rule of the route rejects the HTTP request, as for other backends', async () => {
  const one = await bed.upstream('one')
  const { url } = await bed.gateway({
    mcp: { targets: [staticTarget('a', one.port)] },
    attached: [{ target: gatewayTarget, traffic: { authorization: { policy: { matchExpressions: ['request.headers["x-in"] == "1"'] } } } }],
  })
  expect([
    (await send(url, 'POST', MCP_HEADERS, initialize())).status,
    (await send(url, 'POST', { ...MCP_HEADERS, 'x-in': '1' }, initialize())).status,
  ]).toEqual([403, 200])
})

test('a client that stops reading its stream pauses the server, and reads everything after it resumes', async () => {
  const line = `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { data: 'x'.repeat(60_000) } })}\n\n`
  const total = 600
  let written = 0
  let isWaiting = false
  const { port } = await bed.scripted((request, response, body) => {
    if (request.method !== 'GET') {
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
      return void response
        .writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json', 'mcp-session-id': 's' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: body?.id, result }))
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const more = (): void => {
      while (written < total) {
        written++
        if (response.write(line)) continue
        isWaiting = true
        return void response.once('drain', () => ((isWaiting = false), more()))
      }
      response.end()
    }
    more()
  })
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', port)] } })
  const { id } = await begin(gateway.url)
  const socket = connect(Number(gateway.url.port), '127.0.0.1')
  socket.write(`GET /mcp HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\nmcp-session-id: ${id}\r\nconnection: close\r\n\r\n`)
  socket.pause()
  await until('the server has to wait', () => isWaiting)
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(written).toBeLessThan(total)
  let size = 0
  socket.on('data', (chunk: Buffer) => (size += chunk.length))
  socket.resume()
  await once(socket, 'close')
  expect([written, size > total * 60_000]).toEqual([total, true])
})
