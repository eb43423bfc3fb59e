import { connect } from 'node:net'
import { duplexPair, type Duplex } from 'node:stream'
import { afterEach, describe, expect, test } from '@jest/globals'
import { HeaderList } from '../../../http/headers.ts'
import type { Http1Options } from './connection.ts'
import { sendRaw, startHttp1Server, withoutDate, type TestServer } from './testing.ts'
import { until as expectSoon } from '../../../../e2e/harness/wait.ts'

let server: TestServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

describe('HTTP/1.1 tunnels', () => {
  const upgrade = 'GET /chat HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'

  async function startTunnel(options: Partial<Http1Options> = {}): Promise<{ started: TestServer; far: Duplex }> {
    const [far, near] = duplexPair({ allowHalfOpen: true })
    const started = await startHttp1Server((exchange) => {
      const status = exchange.request.method === 'CONNECT' ? 200 : 101
      exchange.response = { status, headers: new HeaderList(['a', 'b']), body: undefined, upgraded: { socket: near, head: Buffer.from('early ') } }
    }, options)
    server = started
    return { started, far }
  }

  test('101 splices the connections, forwards bytes sent early and half-closes', async () => {
    const { started, far } = await startTunnel()
    const client = connect({ port: started.port, host: '127.0.0.1', allowHalfOpen: true })
    let text = ''
    client.on('data', (chunk) => (text += chunk.toString()))
    client.write(`${upgrade}ping`)
    const received = readUntilEnd(far)
    await expectSoon(() => text.endsWith('early '))
    expect(withoutDate(text)).toBe('HTTP/1.1 101 Switching Protocols\r\na: b\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nearly ')
    client.end('!')
    expect(await received).toBe('ping!')
    far.end('pong')
    await expectSoon(() => text.endsWith('early pong') && started.finished.length === 1)
    expect(started.finished[0]).toMatchObject({ requestBytes: 5, responseBytes: 10, cutBy: undefined })
  })

  test('a reset of one side ends the other', async () => {
    const { started, far } = await startTunnel()
    const client = connect(started.port, '127.0.0.1')
    client.resume().write(upgrade)
    far.resume()
    await expectSoon(() => client.bytesRead > 0)
    client.resetAndDestroy()
    await expectSoon(() => far.closed || far.readableEnded)
    far.destroy()
    await expectSoon(() => started.finished.length === 1)
  })

  test('CONNECT opens a tunnel if it is allowed', async () => {
    const { started, far } = await startTunnel({ allowsConnect: true })
    const reply = sendRaw(started.port, ['CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n'], 100)
    far.write('hi')
    expect(withoutDate((await reply).text)).toBe('HTTP/1.1 200 OK\r\na: b\r\n\r\nearly hi')
    far.destroy()
  })

  test('an upgrade that the client did not request is closed and gets 502', async () => {
    const { started, far } = await startTunnel()
    expect((await sendRaw(started.port, ['GET / HTTP/1.1\r\nHost: a\r\n\r\n'], 120)).text).toMatch(/^HTTP\/1\.1 502 /)
    far.destroy()
  })
})

/** Does not iterate the socket, which would destroy it at its end. */
function readUntilEnd(socket: Duplex): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    socket.on('end', () => resolve(text))
  })
}
