import { connect as connectTcp, isIP, Socket, type LookupFunction, type OnReadOpts } from 'node:net'
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { dialing } from '../dial.ts'
import { tlsOptions } from '../tls.ts'
import { openTunnel } from '../tunnel.ts'
import { UpstreamError, type ConnectGuard, type Transport, type UpstreamFailure } from '../types.ts'

/**
 * Opens a connection and calls `onReady` once it is ready for HTTP. Failures are emitted as the socket's `error`. A plain TCP connection with
 * `reads` passes its data to it and emits no `data` events; others ignore it.
 */
export type Connector = (onReady: () => void, reads?: OnReadOpts) => Socket

/** Creates a connector to an endpoint. TLS offers `alpn`, accepts no other protocol, and resumes sessions. */
export function createConnector(transport: Transport, alpn: readonly string[]): Connector {
  const connect = withinShare(withProbes(connectorTo(transport, alpn), transport), transport)
  const { onConnected } = transport
  if (onConnected === undefined) return connect
  return (onReady, reads) => {
    const startedAtMs = performance.now()
    return connect(() => {
      onConnected((performance.now() - startedAtMs) / 1000)
      onReady()
    }, reads)
  }
}

function withinShare(connect: Connector, { connections }: Transport): Connector {
  if (connections === undefined) return connect
  return (onReady, reads) => {
    const refusal = connections.take()
    if (refusal !== undefined) return new Socket().destroy(refusal)
    return connect(onReady, reads).once('close', () => connections.give())
  }
}

function withProbes(connect: Connector, { probes, tunnel }: Transport): Connector {
  // Through a tunnel the connection is one to the proxy, whose own policies set the probes.
  if (probes === undefined || tunnel !== undefined) return connect
  return (onReady, reads) => connect(onReady, reads).setKeepAlive(true, probes.timeMs, probes.intervalMs, probes.retries)
}

function connectorTo(transport: Transport, alpn: readonly string[]): Connector {
  const { host, port, tls, tunnel, guard } = transport
  const lookup = judgedLookup(guard, port)
  // Socket looks up names only. Through a tunnel it is the proxy that resolves names, but this one always in the same way (RFC 6761).
  const literal = isIP(host) !== 0 ? host : tunnel !== undefined && /(?:^|\.)localhost\.?$/i.test(host) ? '127.0.0.1' : undefined
  // Judged for each connection: an address may become one of this machine later.
  const judged =
    (open: Connector): Connector =>
    (onReady, reads) => {
      const refused = literal === undefined ? undefined : judge(guard, host, literal, port)
      if (refused !== undefined) return new Socket().destroy(refused)
      return open(onReady, reads)
    }
  if (tls === undefined) {
    if (tunnel !== undefined) return judged((onReady) => openTunnel(tunnel, host, port, onReady))
    return judged((onReady, reads) => connectTcp({ host, port, noDelay: true, lookup, ...(reads && { onread: reads }) }, onReady))
  }
  let options: ConnectionOptions
  try {
    options = { ...tlsOptions(tls, host), ALPNProtocols: [...alpn] }
  } catch (error) {
    // The key material cannot be loaded: every connection fails.
    return () => new Socket().destroy(error as Error)
  }
  let session: Buffer | undefined
  return judged((onReady) => {
    const way = tunnel === undefined ? { host, port, lookup } : { socket: openTunnel(tunnel, host, port, () => {}) }
    const socket: TLSSocket = connectTls({ ...way, ...options, ...(session !== undefined && { session }) }, () => {
      if (socket.alpnProtocol === false || alpn.includes(String(socket.alpnProtocol))) onReady()
      else socket.destroy(new Error(`upstream chose ${String(socket.alpnProtocol)} by ALPN`))
    })
    socket.setNoDelay(true)
    socket.on('session', (ticket) => {
      session = ticket
    })
    return socket
  })
}

/** Why a connection to an address of a host is not opened. */
function judge(guard: ConnectGuard | undefined, host: string, address: string, port: number): UpstreamError | undefined {
  const reason = guard?.reject(host, address, port)
  if (reason !== undefined) return new UpstreamError('forbidden', reason)
  const refusal = dialing.refuse(host, address, port)
  return refusal === undefined ? undefined : new UpstreamError(guard === undefined ? 'denied' : 'forbidden', refusal)
}

/** Resolves a name and leaves out the addresses that are not admitted. The connection uses the addresses that were judged: a second lookup could return others. */
function judgedLookup(guard: ConnectGuard | undefined, port: number): LookupFunction {
  return (host, options, done) => {
    dialing.lookup(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return done(error, '')
      const errors = addresses.map(({ address }) => judge(guard, host, address, port))
      const admitted = addresses.filter((_, index) => errors[index] === undefined)
      const [first] = admitted
      if (first === undefined) return done(errors[0] ?? new UpstreamError('dns', `${host}: no address`), '')
      if (options.all === true) done(null, admitted)
      else done(null, first.address, first.family)
    })
  }
}

/** Converts the error of a connection that never became ready. */
export function connectFailure({ host, port }: Transport, error: NodeJS.ErrnoException): UpstreamError {
  // An error of the tunnel.
  if (error instanceof UpstreamError) return error
  const isDns = error.syscall === 'getaddrinfo' || error.code === 'ENOTFOUND' || error.code === 'EAI_AGAIN'
  const failure: UpstreamFailure = isDns ? 'dns' : 'connect'
  return new UpstreamError(failure, `${host}:${port}: connect failed: ${error.code ?? error.message}`, error)
}
