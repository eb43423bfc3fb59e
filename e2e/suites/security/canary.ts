import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** Servers that record each connection and what is sent on it. */
export interface Canary {
  readonly name: string
  /** One entry for each connection: the text that was received. */
  readonly hits: readonly { text: string }[]
  close(): void
}

/** Listens at `address:port` of each place. Responds to anything as an HTTP server, with its name, and closes. */
export async function startCanary(name: string, places: readonly (readonly [address: string, port: number])[]): Promise<Canary> {
  const hits: { text: string }[] = []
  const sockets = new Set<Socket>()
  const accept = (socket: Socket): void => {
    const hit = { text: '' }
    hits.push(hit)
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (chunk) => {
      hit.text += chunk.toString('latin1')
      socket.end(`HTTP/1.1 200 OK\r\nconnection: close\r\nx-server: ${name}\r\ncontent-length: ${name.length}\r\n\r\n${name}`)
    })
  }
  const servers = await Promise.all(
    places.map(async ([address, port]): Promise<Server> => {
      const server = createServer(accept).listen(port, address)
      await once(server, 'listening')
      if ((server.address() as AddressInfo).port !== port) throw new Error(`${name} does not listen at ${address}:${port}`)
      return server
    }),
  )
  return {
    name,
    hits,
    close() {
      for (const server of servers) server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
