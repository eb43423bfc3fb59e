import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/**
 * A local port that forwards connections to a server that may stop and restart. The port stays open, because another process could
 * bind a port that is closed for a moment.
 */
export interface PortForwarder {
  readonly port: number
  /** Target port of new connections; undefined: they are closed at once. */
  to: number | undefined
  close(): Promise<void>
}

export async function startPortForwarder(to?: number): Promise<PortForwarder> {
  const sockets = new Set<Socket>()
  const hold = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
  }
  const server = createServer({ allowHalfOpen: true }, (client) => {
    hold(client)
    if (forwarder.to === undefined) return void client.destroy()
    const inner = hold(connect({ port: forwarder.to, host: '127.0.0.1', allowHalfOpen: true }))
    client.pipe(inner).pipe(client)
    client.on('close', () => inner.destroy())
    inner.on('close', () => client.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const forwarder: PortForwarder = {
    port: (server.address() as AddressInfo).port,
    to,
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
  return forwarder
}
