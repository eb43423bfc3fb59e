import type { Socket } from 'node:net'
import { connectFailure, createConnector } from './http1/connect.ts'
import { UpstreamError, type Transport } from './types.ts'

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
