import { once } from 'node:events'
import { get as httpGet } from 'node:http'
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import { WebSocket, WebSocketServer } from 'ws'
import { createHttp1Pool } from '../upstream/http1/pool.ts'
import { createBind } from './bind.ts'
import type { BindProgram, ConnectionMeter } from './program.ts'
import { relayTcp, type RelayResult } from '../../gateway/splice.ts'
import { describeRequest, forwardTo, httpProgram, openHttp2, request2, respondWith, startBind, talk, type TestBind } from './testing.ts'
import { until } from '../../../e2e/harness/wait.ts'

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const thing of open.splice(0).toReversed()) await thing.close()
})
const start = async (...options: Parameters<typeof startBind>): Promise<TestBind> => {
  const server = await startBind(...options)
  open.push(server)
  return server
}
async function listen(onConnection: (socket: Socket) => void): Promise<number> {
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined)
    onConnection(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push({ close: () => void server.close() })
  return (server.address() as AddressInfo).port
}

describe('listening on a port', () => {
  const plain = (port: number, addresses?: string[]): ReturnType<typeof createBind> =>
    createBind({ key: 'k', port, addresses, program: httpProgram, onRequest: describeRequest, onFinished: () => undefined })

  test('a port in use is an error of one line with advice, and nothing stays open', async () => {
    const { port } = await start(describeRequest)
    const bind = plain(port, ['127.0.0.2', '127.0.0.1'])
    await expect(bind.listen()).rejects.toThrow(`port ${port} of 127.0.0.1 is in use: end the program that listens on it, or give the listener another port`)
    const other = plain(port, ['127.0.0.2'])
    await other.listen()
    await other.close(true)
  })

  test('an address of another machine is an error with advice', async () => {
    await expect(plain(0, ['192.0.2.1']).listen()).rejects.toThrow("port 0 of 192.0.2.1: this machine has no such address: correct the listener's address")
  })

  /** One GET on a new connection from 127.0.0.1; waits until the connection closed. */
  const getOnce = async (port: number, host: string): Promise<void> => {
    const request = httpGet({ host, port, localAddress: '127.0.0.1', agent: false })
    request.on('response', (response) => response.resume())
    await once(request, 'close')
  }

  test('several addresses share one port, and connections have their local address', async () => {
    const seen: string[] = []
    const bind = createBind({
      key: 'k',
      port: 0,
      addresses: ['127.0.0.1', '127.0.0.2'],
      program: httpProgram,
      onRequest: (exchange) => {
        const { bind: key, localAddress, localPort, remoteAddress } = exchange.connection
        seen.push(`${key} ${localAddress} ${localPort === bind.port} ${remoteAddress}`)
        respondWith(exchange, '')
      },
      onFinished: () => undefined,
    })
    await bind.listen()
    open.push({ close: () => bind.close(true) })
    for (const host of ['127.0.0.1', '127.0.0.2']) await getOnce(bind.port, host)
    expect(seen).toEqual(['k 127.0.0.1 true 127.0.0.1', 'k 127.0.0.2 true 127.0.0.1'])
  })

  test('IPv4 clients of a dual-stack socket have IPv4 addresses', async () => {
    const { port, finished } = await start(describeRequest, {}, { addresses: undefined })
    await getOnce(port, '127.0.0.1')
    expect(finished[0]?.connection).toMatchObject({ localAddress: '127.0.0.1', remoteAddress: '127.0.0.1' })
  })
})

describe('drain and close', () => {
  test('drain finishes requests in flight and serves new connections until the port closes', async () => {
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    let begun = 0
    const { port, bind } = await start(async (exchange) => {
      begun++
      if (exchange.request.target === '/slow') await held
      respondWith(exchange, 'ok')
    })
    const slow = talk(port, 'GET /slow HTTP/1.1\r\nhost: a\r\n\r\n')
    const idle = talk(port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    await until(() => begun === 2)
    bind.drain()
    expect(await idle).toMatch(/ok$/)
    const fresh = await talk(port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    expect(fresh).toMatch(/^HTTP\/1.1 200 [\s\S]*ok$/)
    bind.stopAccepting()
    expect(await talk(port, '')).toMatch(/ECONNREFUSED/)
    const closed = bind.close(false)
    release()
    expect(await slow).toMatch(/connection: close[\s\S]*ok$/)
    await closed
    expect(bind.size).toBe(0)
  })

  test('close with force aborts the remaining requests', async () => {
    let begun = 0
    const { port, bind, finished } = await start((exchange) => (begun++, new Promise((resolve) => exchange.onAbort(() => resolve()))))
    const http1 = talk(port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    const client = openHttp2(port)
    const http2 = request2(client, {})
    await until(() => begun === 2)
    await bind.close(true)
    expect(await http1).not.toContain('200')
    expect((await http2).status).toBe(0)
    await until(() => finished.length === 2)
    expect(finished.map(({ cutBy }) => cutBy)).toEqual(['shutdown', 'shutdown'])
  })

  test('a connection is drained at its maximum age', async () => {
    const { port, bind } = await start(describeRequest, { settings: { maxConnectionMs: 800 } })
    const client = openHttp2(port)
    expect((await request2(client, {})).status).toBe(200)
    await until(() => client.destroyed)
    expect(await talk(port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n')).toContain('200')
    await until(() => bind.size === 0)
  })
})

describe('connection meters', () => {
  test('count connections and bytes by protocol', async () => {
    const events: string[] = []
    const meter = (protocol: string): ConnectionMeter => {
      let received = 0
      let sent = 0
      return { addBytes: (r, s) => ((received += r), (sent += s)), close: () => events.push(`${protocol} ${received} ${sent}`) }
    }
    const request = 'GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n'
    const hooks = { onConnection: (protocol: string, listener?: string) => meter(`${protocol} ${listener}`) }
    const { port, bind } = await start(describeRequest, {}, { hooks })
    const answer = await talk(port, request)
    await until(() => bind.size === 0)
    expect(events).toEqual([`http undefined ${request.length} ${answer.length}`])
  })

  test('include the bytes of open connections after report', async () => {
    let total = 0
    const { port, bind } = await start(describeRequest, {}, { hooks: { onConnection: () => ({ addBytes: (r) => (total += r), close: () => undefined }) } })
    const client = openHttp2(port)
    open.push({ close: () => client.destroy() })
    await request2(client, {}, Buffer.alloc(100_000))
    expect(total).toBe(0)
    bind.report()
    expect(total).toBeGreaterThan(100_000)
    const before = total
    bind.report()
    expect(total).toBe(before)
  })
})

describe('a TCP relay', () => {
  const relay = (port: number, results: RelayResult[] = []): Partial<BindProgram> => ({
    plaintext: 'tcp',
    tcpListener: 'tcp',
    handleTcp: (tcp) =>
      void relayTcp(tcp, { host: '127.0.0.1', port, tls: undefined, keepAlive: undefined }, { connectMs: 20_000, idleMs: 0 }).then((result) =>
        results.push(result),
      ),
  })

  test('forwards a server that sends first, and half-closes in both directions', async () => {
    const results: RelayResult[] = []
    const port = await listen((socket) => {
      socket.write('220 hello\n')
      socket.on('data', (chunk) => socket.write(chunk))
      socket.on('end', () => setTimeout(() => socket.end('bye\n'), 30))
    })
    const { port: bound, bind } = await start(describeRequest, relay(port, results))
    const text = await new Promise<string>((resolve) => {
      let all = ''
      const socket = connect({ port: bound, host: '127.0.0.1', allowHalfOpen: true })
      socket.on('data', (chunk) => {
        all += String(chunk)
        if (all === '220 hello\n') socket.end('data\n')
      })
      socket.on('close', () => resolve(all))
    })
    expect(text).toBe('220 hello\ndata\nbye\n')
    await until(() => bind.size === 0 && results.length === 1)
    expect(results).toEqual([{ receivedBytes: 5, sentBytes: 19, error: undefined }])
  })

  test('forwards a reset in both directions', async () => {
    const seen: string[] = []
    let received = ''
    const port = await listen((socket) => {
      socket.on('data', (chunk: Buffer) => {
        received = String(chunk)
        if (received === 'reset me') socket.resetAndDestroy()
      })
      socket.on('error', (error) => seen.push((error as NodeJS.ErrnoException).code ?? ''))
    })
    const { port: bound } = await start(describeRequest, relay(port))
    expect(await talk(bound, 'reset me')).toBe('reset')
    const socket = connect(bound, '127.0.0.1', () => socket.write('x'))
    await until(() => received === 'x')
    socket.resetAndDestroy()
    await until(() => seen.length === 1)
    expect(seen).toEqual(['ECONNRESET'])
  })

  test('resets the client if the upstream is unreachable, and reports why', async () => {
    const results: RelayResult[] = []
    const { port } = await start(describeRequest, relay(1, results))
    expect(await talk(port, 'hello')).toBe('reset')
    expect(results[0]?.error?.message).toBe('127.0.0.1:1: connect failed: ECONNREFUSED')
  })

  test('cancels the upstream connection if the client resets meanwhile', async () => {
    const results: RelayResult[] = []
    // A TLS handshake without a response.
    let reached = 0
    const silent = await listen(() => void reached++)
    const tls = { servername: 'a', ca: undefined, cert: undefined, key: undefined, subjectAltNames: undefined, verify: 'none', alpn: undefined } as const
    const { port, bind } = await start(describeRequest, {
      plaintext: 'tcp',
      tcpListener: 'tcp',
      handleTcp: (tcp) =>
        void relayTcp(tcp, { host: '127.0.0.1', port: silent, tls, keepAlive: undefined }, { connectMs: 60_000 }).then((result) => results.push(result)),
    })
    const socket = connect(port, '127.0.0.1')
    await until(() => reached === 1)
    socket.resetAndDestroy()
    await until(() => results.length === 1 && bind.size === 0)
    expect(results[0]).toMatchObject({ receivedBytes: 0, error: { failure: 'connect' } })
  })

  test('closes a connection without traffic after the idle timeout', async () => {
    const port = await listen(() => undefined)
    const results: RelayResult[] = []
    const { port: bound, bind } = await start(describeRequest, {
      plaintext: 'tcp',
      tcpListener: 'tcp',
      handleTcp: (tcp) =>
        void relayTcp(tcp, { host: '127.0.0.1', port, tls: undefined, keepAlive: undefined }, { connectMs: 20_000, idleMs: 50 }).then((result) =>
          results.push(result),
        ),
    })
    expect(await talk(bound, 'x')).toBe('')
    await until(() => bind.size === 0 && results.length === 1)
    expect(results[0]?.error?.message).toBe('nothing was sent for 50 ms')
  })

  test('applies back-pressure on 64 MiB to a client that reads slowly', async () => {
    const size = 64 * 1024 * 1024
    let written = 0
    const port = await listen((socket) => {
      const chunk = Buffer.alloc(65_536)
      const more = (): void => {
        while (written < size && !socket.destroyed) {
          written += chunk.length
          if (!socket.write(chunk)) return
        }
        if (written >= size) socket.end()
      }
      socket.on('drain', more)
      more()
    })
    const { port: bound } = await start(describeRequest, relay(port))
    const socket = connect(bound, '127.0.0.1')
    let received = 0
    await new Promise((resolve) => setTimeout(resolve, 300))
    // Buffers between the two: kernel buffers on both hops and one write each.
    expect(written).toBeLessThan(40 * 1024 * 1024)
    socket.on('data', (chunk) => (received += chunk.length))
    await new Promise((resolve) => socket.on('close', resolve))
    expect(received).toBe(size)
  })

  test('closes a connection without a route', async () => {
    const { port } = await start(describeRequest, { plaintext: 'tcp', tcpListener: 'tcp', handleTcp: ({ socket }) => void socket.destroy() })
    expect(await talk(port, 'x')).toMatch(/^(reset)?$/)
  })
})

test('a WebSocket works through an HTTP/1.1 upgrade', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await new Promise((resolve) => server.on('listening', resolve))
  server.on('connection', (socket) => socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })))
  const pool = createHttp1Pool({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, tls: undefined, keepAlive: { idleMs: 1000 } })
  open.push({ close: () => (pool.close(), server.close()) })
  const { port, finished } = await start(forwardTo(pool))
  const socket = new WebSocket(`ws://127.0.0.1:${port}/chat`)
  await new Promise((resolve) => socket.on('open', resolve))
  const echoed: string[] = []
  socket.on('message', (data) => echoed.push((data as Buffer).toString()))
  socket.send('one')
  socket.send('x'.repeat(200_000))
  await until(() => echoed.length === 2)
  expect(echoed.map((text) => text.length)).toEqual([3, 200_000])
  expect(finished).toHaveLength(0)
  socket.close()
  await until(() => finished.length === 1)
  expect(finished[0]?.response?.status).toBe(101)
})
