import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from '@jest/globals'
import { compose, type Terminal } from '../../request/exchange/compose.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { sendRaw, startHttp1Server, type TestServer } from '../../net/server/http1/testing.ts'
import { letArrive } from '../../testing/turns.ts'
import { createPolicyState } from '../state.ts'
import { until } from '../../../e2e/harness/wait.ts'
import { compileAuthorization } from './index.ts'

let server: TestServer | undefined
afterEach(() => server?.close())

/** A server with a rule that reads bodies of up to 4 bytes, in front of an upstream that returns the number of bytes it received. */
async function serve(expression: string, upstream?: Terminal): Promise<number> {
  const policy = compileAuthorization([{ policy: { matchExpressions: [expression] } }], createPolicyState(), 4)
  if (policy === undefined) throw new Error('no policy')
  server = await startHttp1Server(compose([policy], upstream ?? countBytes))
  return server.port
}

const countBytes: Terminal = async (exchange) => {
  const { bytes } = await readBody(exchange.request.body, Infinity)
  exchange.response = { status: 200, headers: new HeaderList(), body: new BufferBody(`got ${bytes.length}`), upgraded: undefined }
}

const post = (body: string, headers = ''): string => `POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n${headers}\r\n${body}`
const statuses = (text: string): (string | undefined)[] => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)

const get = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'
test.each([
  ['a body within the limit', [post('abc') + get]],
  ['a body above the limit', [post('abcdefghij') + get]],
  ['a body whose rest follows the response', [post('abcdefghij').slice(0, -3), / 403 /, `hij${get}`]],
])('a connection stays usable after a denial: %s', async (_, pieces) => {
  const port = await serve('request.method == "GET" && request.bodyPrefix == b""')
  expect(statuses((await sendRaw(port, pieces, 200)).text)).toEqual(['403', '200'])
})

test('a client that expects 100 is sent one, and its body is checked', async () => {
  const port = await serve('request.body == b"abc"')
  const { text } = await sendRaw(port, ['POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\nconnection: close\r\nexpect: 100-continue\r\n\r\n', / 100 /, 'abc'])
  expect([statuses(text), text.includes('got 3')]).toEqual([['100', '200'], true])
})

test('a chunked body is forwarded unchanged after a part was read', async () => {
  const framings: (number | undefined)[] = []
  const port = await serve('request.bodyPrefix.size() > 0', (exchange) => (framings.push(exchange.request.body?.length), countBytes(exchange)))
  const chunked = (...chunks: string[]): string =>
    `POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${[...chunks, ''].map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}`
  const { text } = await sendRaw(port, [chunked('ab'), chunked('abcd', 'efgh'), post('abcdef')], 200)
  expect([framings, [...text.matchAll(/got \d/g)].join()]).toEqual([[undefined, undefined, 6], 'got 2,got 8,got 6'])
})

test('a request is dropped if the client disconnects while its body is read', async () => {
  let isForwarded = false
  const port = await serve('size(request.body) >= 0', () => void (isForwarded = true))
  const socket = connect(port, '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nab')
  await until(() => [...(server?.connections ?? [])].some((connection) => !connection.isIdle))
  await letArrive()
  socket.destroy()
  await until(() => server?.finished.length === 1)
  expect([isForwarded, server?.finished[0]?.cutBy]).toEqual([false, 'client'])
})

test('an upstream that stops reading pauses the client, and receives everything after it resumes', async () => {
  const total = 20_000_000
  let received = 0
  let resume = (): void => undefined
  const port = await serve('size(request.bodyPrefix) == 4', async (exchange) => {
    const { body } = exchange.request
    await new Promise<void>((resolve) => {
      body?.start({
        onData: (chunk) => {
          if (received === 0) body.pause()
          received += chunk.length
        },
        onEnd: () => resolve(),
        onError: () => resolve(),
      })
      resume = () => body?.resume()
    })
    exchange.response = { status: 200, headers: new HeaderList(), body: new BufferBody(`got ${received}`), upgraded: undefined }
  })
  const answer = sendRaw(port, [post('a'.repeat(total), 'connection: close\r\n')])
  await until(() => received > 0)
  await sleep(100)
  expect(received).toBeLessThan(500_000)
  resume()
  await answer
  expect(received).toBe(total)
})
