import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A port of this machine that stays ours while what is behind it comes and goes: a port that is closed for a moment may be another's the next. */
export interface Door {
  readonly port: number
  /** Port that new connections lead to; undefined: each is cut at once. */
  to: number | undefined
  close(): Promise<void>
}

export async function openDoor(to?: number): Promise<Door> {
  const sockets = new Set<Socket>()
  const hold = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
  }
  const server = createServer({ allowHalfOpen: true }, (client) => {
    hold(client)
    if (door.to === undefined) return void client.destroy()
    const inner = hold(connect({ port: door.to, host: '127.0.0.1', allowHalfOpen: true }))
    client.pipe(inner).pipe(client)
    client.on('close', () => inner.destroy())
    inner.on('close', () => client.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const door: Door = {
    port: (server.address() as AddressInfo).port,
    to,
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
  return door
}
