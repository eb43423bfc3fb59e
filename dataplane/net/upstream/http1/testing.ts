import type { Socket } from 'node:net'
import { Deadlines } from '../../../http/deadlines.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { RequestHead, ResponseHead } from '../../../http/message.ts'
import { serveSockets } from '../../../testing/socket-server.ts'
import { createHttp1Pool } from './pool.ts'
import type { Transport, UpstreamPool } from '../types.ts'

/** An upstream that responds with raw bytes, and a pool to it. */
export interface RawUpstream {
  readonly pool: UpstreamPool
  /** Bytes received, by connection. */
  readonly received: string[]
  close(): Promise<void>
}

/** `answer` is called for each read that ends a request head (or any other bytes); `nth` counts them on their connection, from 0. */
export async function startRawUpstream(answer: (socket: Socket, nth: number, text: string) => void, transport: Partial<Transport> = {}): Promise<RawUpstream> {
  const received: string[] = []
  const { port, close } = await serveSockets((socket) => {
    const id = received.push('') - 1
    let nth = 0
    socket.on('data', (chunk) => {
      const text = chunk.toString('latin1')
      received[id] += text
      answer(socket, nth++, text)
    })
  })
  const pool = createHttp1Pool({ host: '127.0.0.1', port, tls: undefined, keepAlive: { idleMs: 60_000 }, ...transport }, { deadlines: new Deadlines(10) })
  return {
    pool,
    received,
    close: () => {
      pool.close()
      return close()
    },
  }
}

export function testRequest(change: Partial<RequestHead> = {}): RequestHead {
  return {
    method: 'GET',
    target: '/',
    scheme: 'http',
    authority: 'a',
    version: 'HTTP/1.1',
    headers: new HeaderList(),
    body: undefined,
    upgrade: undefined,
    acceptsTrailers: false,
    ...change,
  }
}

/** Reads a response as `status body`, trailers as ` name: value`; `error` if the body failed. */
export async function readResponse(response: ResponseHead): Promise<{ text: string; error: Error | undefined }> {
  const chunks: Buffer[] = []
  const text = (end = ''): string => `${response.status} ${Buffer.concat(chunks).toString('latin1')}${end}`
  const { body } = response
  if (body === undefined) return { text: text(), error: undefined }
  return new Promise((resolve) => {
    body.start({
      onData: (chunk) => chunks.push(chunk),
      onEnd: (trailers) => resolve({ text: text([...(trailers ?? [])].map(([name, value]) => ` ${name}: ${value}`).join('')), error: undefined }),
      onError: (error) => resolve({ text: text(), error }),
    })
  })
}
