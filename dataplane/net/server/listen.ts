import { createServer, type Server } from 'node:net'

/** Listening on a port failed. The message is one line with advice. */
class BindError extends Error {
  readonly code: string
  constructor(message: string, code: string, cause: unknown) {
    super(message, { cause })
    this.name = 'BindError'
    this.code = code
  }
}

/**
 * Checks that a port can be listened on: listens and closes at once. Sockets with `reusePort` would share the port with another program
 * without an error. Rejects with a BindError.
 */
export async function probePort(port: number, addresses: readonly string[] | undefined): Promise<void> {
  for (const address of addresses === undefined || addresses.length === 0 ? [undefined] : addresses) {
    const server = createServer((socket) => socket.destroy())
    await listenOn(server, port, address, false)
    await new Promise<void>((resolve) => server.close(() => resolve()))
  }
}

/** Rejects with a BindError. */
export function listenOn(server: Server, port: number, host: string | undefined, reusePort: boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException): void => reject(describeListenError(error, port, host))
    server.once('error', onError)
    server.listen({ port, ...(host !== undefined && { host }), reusePort, backlog: 1024 }, () => {
      server.removeListener('error', onError)
      resolve()
    })
  })
}

function describeListenError(error: NodeJS.ErrnoException, port: number, host: string | undefined): BindError {
  const at = host === undefined ? '' : ` of ${host}`
  const code = error.code ?? 'UNKNOWN'
  switch (code) {
    case 'EADDRINUSE':
      return new BindError(`port ${port}${at} is in use: end the program that listens on it, or give the listener another port`, code, error)
    case 'EACCES':
      return new BindError(`port ${port}${at} needs a privilege: use a port from 1024 up, or allow this one (CAP_NET_BIND_SERVICE)`, code, error)
    case 'EADDRNOTAVAIL':
      return new BindError(`port ${port}${at}: this machine has no such address: correct the listener's address`, code, error)
    default:
      return new BindError(`port ${port}${at} cannot be listened on: ${error.message}`, code, error)
  }
}
