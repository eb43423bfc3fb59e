import { createServer as createHttp2Server, type createSecureServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { afterEach } from '@jest/globals'
import { Deadlines } from '../../../http/deadlines.ts'
import { createHttp2Pool } from './pool.ts'
import { readResponse, testRequest } from '../http1/testing.ts'
import { UpstreamError, type Transport, type UpstreamPool } from '../types.ts'

/** What a test has opened, closed after it. */
export const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

interface TestUpstream {
  readonly pool: UpstreamPool
  readonly sessions: ServerHttp2Session[]
  readonly port: number
}

export type Answer = (stream: ServerHttp2Stream, headers: Record<string, string>, nth: number) => void

export async function start(answer: Answer, options: { settings?: object; transport?: Partial<Transport> } = {}): Promise<TestUpstream> {
  const server = createHttp2Server({ settings: options.settings ?? {} })
  return { ...(await serve(server, answer)), ...poolTo(server, options.transport) }
}

export async function serve(
  server: Http2Server | ReturnType<typeof createSecureServer>,
  answer: Answer,
): Promise<{ sessions: ServerHttp2Session[]; port: number }> {
  const sessions: ServerHttp2Session[] = []
  let nth = 0
  server.on('session', (session: ServerHttp2Session) => {
    sessions.push(session)
    session.on('error', () => undefined)
  })
  server.on('stream', (stream: ServerHttp2Stream, headers: object) => {
    stream.on('error', () => undefined)
    answer(stream, headers as Record<string, string>, nth++)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(() => {
    for (const session of sessions) session.destroy()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return { sessions, port: (server.address() as AddressInfo).port }
}

function poolTo(server: Server | { address(): unknown }, transport: Partial<Transport> = {}): { pool: UpstreamPool } {
  const { port } = server.address() as AddressInfo
  const pool = createHttp2Pool({ host: '127.0.0.1', port, tls: undefined, keepAlive: { idleMs: 60_000 }, ...transport }, { deadlines: new Deadlines(10) })
  open.push(() => pool.close())
  return { pool }
}

export const timeouts = { connectMs: 20_000 }
export const call = async (pool: UpstreamPool, change: Parameters<typeof testRequest>[0] = {}): Promise<string> =>
  (await readResponse(await pool.call(testRequest(change), timeouts).response)).text
export const failureOf = async (pool: UpstreamPool, change: Parameters<typeof testRequest>[0] = {}): Promise<string> => {
  try {
    await pool.call(testRequest(change), timeouts).response
    return 'none'
  } catch (error) {
    return error instanceof UpstreamError ? error.failure : String(error)
  }
}
