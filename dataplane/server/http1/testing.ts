import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { Connection, Exchange, OnRequest } from '../../exchange/exchange.ts'
import { Deadlines } from '../../http/deadlines.ts'
import { serveHttp1, type Http1Options, type Http1Server } from './connection.ts'

/** A codec server on a loopback port, for tests: what it finished and refused is kept. */
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

/** Looks at the socket so often before it counts as quiet. Each look is a turn of the event loop: a machine that stands still makes one late, not all. */
const LOOKS = 20

/**
 * Sends bytes, piece by piece, and gives everything that came back until the server closed or, with `quietMs`, that time passed since the
 * last byte; the first may take longer. A pattern among the pieces waits until what came back fits it.
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
