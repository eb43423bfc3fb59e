import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { Connection, Exchange, OnRequest } from '../../../request/exchange/exchange.ts'
import { Deadlines } from '../../../http/deadlines.ts'
import { serveHttp1, type Http1Options, type Http1Server } from './connection.ts'

/** An HTTP/1 server on a loopback port for tests. Records the finished and the rejected requests. */
export interface TestServer {
  readonly port: number
  readonly finished: Exchange[]
  readonly refused: number[]
  readonly connections: Set<Http1Server>
  close(): Promise<void>
}

export async function startHttp1Server(onRequest: OnRequest, options: Partial<Http1Options> = {}): Promise<TestServer> {
  const finished: Exchange[] = []
  const refused: number[] = []
  const connections = new Set<Http1Server>()
  const deadlines = new Deadlines(10)
  const server = createServer((socket) => {
    const connection = connectionOf(socket)
    const served = serveHttp1(socket, {
      connection,
      onRequest,
      onFinish: (exchange) => finished.push(exchange),
      onRefuse: (error) => refused.push(error.status),
      onClose: () => connections.delete(served),
      deadlines,
      ...options,
    })
    connections.add(served)
  })
  const port = await listen(server)
  return {
    port,
    finished,
    refused,
    connections,
    close: () => {
      for (const connection of connections) connection.close(true)
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

function connectionOf(socket: Socket): Connection {
  return {
    id: 1,
    bind: 'test',
    localAddress: '127.0.0.1',
    localPort: socket.localPort ?? 0,
    remoteAddress: socket.remoteAddress ?? '',
    remotePort: socket.remotePort ?? 0,
    tls: undefined,
    listener: undefined,
  }
}

export async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

/** Number of checks before the socket counts as quiet. Each check is a turn of the event loop, so that a stalled machine delays one, not all. */
const LOOKS = 20

/**
 * Sends bytes piece by piece. Returns everything received until the server closed the connection or was quiet for `quietMs`; the first byte
 * may take longer. A pattern among the pieces waits until the received text matches it.
 */
export function sendRaw(port: number, pieces: readonly (string | Buffer | RegExp)[], quietMs = 60_000): Promise<{ text: string; isClosed: boolean }> {
  return new Promise((resolve) => {
    let text = ''
    let looks = 0
    const socket = connect(port, '127.0.0.1')
    const done = (isClosed: boolean): void => {
      clearInterval(timer)
      socket.destroy()
      resolve({ text, isClosed })
    }
    const timer = setInterval(() => {
      const isQuiet = ++looks > (text === '' ? Math.max(LOOKS, LOOKS * (60_000 / quietMs)) : LOOKS)
      if (isQuiet) done(false)
    }, quietMs / LOOKS)
    socket.setNoDelay(true)
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      looks = 0
    })
    socket.on('close', () => done(true))
    socket.on('error', () => undefined)
    const sendNext = (index: number): void => {
      const piece = pieces[index]
      if (piece === undefined || socket.destroyed) return
      const isWaiting = piece instanceof RegExp && !piece.test(text)
      if (!(piece instanceof RegExp)) socket.write(typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)
      setTimeout(() => sendNext(isWaiting ? index : index + 1), 5)
    }
    sendNext(0)
  })
}

/** The text of a response without its date. */
export const withoutDate = (text: string): string => text.replaceAll(/date: [^\r]*\r\n/g, '')
