import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** Forwards TCP connections of other network namespaces to a port of loopback. */
export interface Relay {
  readonly port: number
  /** Port of loopback; undefined: connections are closed. */
  target: number | undefined
  close(): Promise<void>
}

export async function startRelay(host: string): Promise<Relay> {
  const sockets = new Set<Socket>()
  let target: number | undefined
  const server = createServer((socket) => {
    if (target === undefined) return void socket.destroy()
    const other = connect(target, '127.0.0.1')
    for (const [from, to] of [
      [socket, other],
      [other, socket],
    ] as const) {
      sockets.add(from)
      from.setNoDelay(true)
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  })
  server.listen(0, host)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    get target() {
      return target
    },
    set target(port) {
      target = port
    },
    async close() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}
