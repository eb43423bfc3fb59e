import type { Socket } from 'node:net'
import { connectFailure, createConnector } from './http1/connect.ts'
import { UpstreamError, type Transport } from './types.ts'

/** Connections to one endpoint that are being opened at once for the same calls. */
export const MAX_ATTEMPTS = 3
/** How long a connection may take before another one is opened beside it. */
export const SLOW_MS = 500

/** As `connectTcp`, with further attempts in parallel while one is slow: a single connection may stall. The first that is ready is used. */
export function connectFirst(transport: Transport, connectMs: number): Promise<Socket> {
  const startedAtMs = performance.now()
  const attempts: ReturnType<typeof connectTcp>[] = []
  return new Promise((resolve, reject) => {
    let failed = 0
    let isOver = false
    const end = (): void => {
      isOver = true
      clearTimeout(timer)
    }
    const attempt = (): void => {
      const opening = connectTcp(transport, Math.max(1, connectMs - (performance.now() - startedAtMs)))
      attempts.push(opening)
      opening.socket.then(
        (socket) => {
          if (isOver) return void socket.destroy()
          end()
          for (const other of attempts) if (other !== opening) other.cancel()
          resolve(socket)
        },
        (error: Error) => {
          failed++
          if (isOver || failed < attempts.length) return
          end()
          reject(error)
        },
      )
      timer = attempts.length < MAX_ATTEMPTS ? setTimeout(attempt, SLOW_MS) : undefined
    }
    let timer: NodeJS.Timeout | undefined
    attempt()
  })
}

/** Opens a raw connection to an endpoint, with TLS if the transport has it. Rejects with an UpstreamError; `cancel` aborts it. */
export function connectTcp(transport: Transport, connectMs: number): { readonly socket: Promise<Socket>; cancel(): void } {
  const alpn = transport.tls?.alpn ?? []
  let socket: Socket
  let isReady = false
  const opened = new Promise<Socket>((resolve, reject) => {
    const { host, port } = transport
    socket = createConnector(
      transport,
      alpn,
    )(() => {
      isReady = true
      clearTimeout(timer)
      resolve(socket)
    })
    const fail = (error: UpstreamError): void => {
      clearTimeout(timer)
      socket.destroy()
      reject(error)
    }
    const timer = setTimeout(() => fail(new UpstreamError('connect-timeout', `${host}:${port}: no connection within ${connectMs} ms`)), connectMs)
    // Not removed: until the relay adds its own listener nothing else would handle a reset.
    socket.on('error', (error) => {
      if (!isReady) fail(connectFailure(transport, error))
    })
    socket.once('close', () => {
      if (!isReady) fail(new UpstreamError('connect', `${host}:${port}: closed before it was ready`))
    })
    socket.allowHalfOpen = true
  })
  return { socket: opened, cancel: () => socket.destroy() }
}
