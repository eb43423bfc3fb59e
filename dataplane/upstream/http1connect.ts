import { connect as connectTcp, isIP, Socket } from 'node:net'
import { checkServerIdentity, connect as connectTls, createSecureContext, type ConnectionOptions, type PeerCertificate, type TLSSocket } from 'node:tls'
import { UpstreamError, type Transport, type UpstreamFailure, type UpstreamTls } from './types.ts'

/** Opens a connection and calls back once it is ready for HTTP; failures come as the socket's `error`. */
export type Connector = (onReady: () => void) => Socket

/** How to connect to an endpoint. TLS offers `alpn` and takes nothing else, and resumes sessions. */
export function createConnector(transport: Transport, alpn: readonly string[]): Connector {
  const connect = connectorTo(transport, alpn)
  const { onConnected } = transport
  if (onConnected === undefined) return connect
  return (onReady) => {
    const startedAtMs = performance.now()
    return connect(() => {
      onConnected((performance.now() - startedAtMs) / 1000)
      onReady()
    })
  }
}

function connectorTo(transport: Transport, alpn: readonly string[]): Connector {
  const { host, port, tls } = transport
  if (tls === undefined) {
    return (onReady) => connectTcp({ host, port, noDelay: true }, onReady)
  }
  let options: ConnectionOptions
  try {
    options = { ...tlsOptions(tls, host), ALPNProtocols: [...alpn] }
  } catch (error) {
    // Key material that cannot be loaded: every connection fails, none goes out without it.
    return () => new Socket().destroy(error as Error)
  }
  let session: Buffer | undefined
  return (onReady) => {
    const socket: TLSSocket = connectTls({ host, port, ...options, ...(session !== undefined && { session }) }, () => {
      if (socket.alpnProtocol === false || alpn.includes(String(socket.alpnProtocol))) onReady()
      else socket.destroy(new Error(`upstream chose ${String(socket.alpnProtocol)} by ALPN`))
    })
    socket.setNoDelay(true)
    socket.on('session', (ticket) => {
      session = ticket
    })
    return socket
  }
}

/** TLS options of a transport, without ALPN. Throws when its key material cannot be loaded. */
export function tlsOptions(tls: UpstreamTls, host: string): ConnectionOptions {
  const servername = tls.servername ?? (isIP(host) === 0 ? host : '')
  return {
    servername,
    rejectUnauthorized: tls.verify !== 'none',
    checkServerIdentity: tls.verify === 'full' ? (_, certificate) => checkIdentity(tls, host, certificate) : () => undefined,
    secureContext: createSecureContext({
      ...(tls.ca !== undefined && { ca: [...tls.ca] }),
      ...(tls.cert !== undefined && { cert: tls.cert }),
      ...(tls.key !== undefined && { key: tls.key }),
    }),
  }
}

/** The certificate must carry one of the configured names, or the server's own (BackendTLSPolicy `validation`). */
function checkIdentity(tls: UpstreamTls, host: string, certificate: PeerCertificate): Error | undefined {
  const names = tls.subjectAltNames
  if (names === undefined || names.length === 0) return checkServerIdentity(tls.servername ?? host, certificate)
  const uris = alternativeNames(certificate.subjectaltname ?? '', 'URI')
  const isMatch = names.some(({ type, value }) => (type === 'URI' ? uris.includes(value) : checkServerIdentity(value, certificate) === undefined))
  return isMatch ? undefined : new Error('certificate carries none of the configured subjectAltNames')
}

/** Names of one type in Node's text form of subjectAltName, `DNS:a, URI:"b, c"`; those with special characters are JSON strings. */
function alternativeNames(text: string, type: string): string[] {
  const names: string[] = []
  for (const [, kind, quoted, plain] of text.matchAll(/(?:^|, )([A-Za-z ]+):(?:("(?:[^"\\]|\\.)*")|([^,]*))/g)) {
    if (kind === type) names.push(quoted === undefined ? (plain ?? '') : String(JSON.parse(quoted)))
  }
  return names
}

/** Failure of a connection that never got ready. */
export function connectFailure({ host, port }: Transport, error: NodeJS.ErrnoException): UpstreamError {
  const isDns = error.syscall === 'getaddrinfo' || error.code === 'ENOTFOUND' || error.code === 'EAI_AGAIN'
  const failure: UpstreamFailure = isDns ? 'dns' : 'connect'
  return new UpstreamError(failure, `${host}:${port}: connect failed: ${error.code ?? error.message}`, error)
}
