import { constants, createHash, X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { createSecureContext, createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls'

/** TLS settings of a port (traffic.md §10). */
export interface TlsSettings {
  readonly alpn: readonly string[]
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  readonly maxVersion: 'TLSv1.2' | 'TLSv1.3'
  /** Names as the API has them, such as TLS13_AES_128_GCM_SHA256. */
  readonly cipherSuites: readonly string[]
}

const defaultTlsSettings: TlsSettings = {
  alpn: ['h2', 'http/1.1'],
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.3',
  cipherSuites: [
    'TLS13_AES_256_GCM_SHA384',
    'TLS13_AES_128_GCM_SHA256',
    'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384',
    'TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384',
    'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
    'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
  ],
}

/** A listener's TLS as its config says it, key material resolved. */
export interface TlsListener {
  /** Key of the listener. */
  readonly key: string
  readonly kind: TlsChoice['kind']
  /** PEM; of several, the client's abilities choose (RSA, ECDSA). Empty: handshakes fail. */
  readonly certificates: readonly { readonly certificate: string; readonly privateKey: string }[]
  readonly clientValidation?: ClientValidation | undefined
  readonly settings?: Partial<TlsSettings> | undefined
}

interface ClientValidation {
  readonly mode: 'AllowValidOnly' | 'AllowInsecureFallback'
  /** PEM trust anchors. Empty: handshakes fail. */
  readonly caCertificates: readonly string[]
}

/** What becomes of a TLS connection, once its SNI is known. */
export interface TlsChoice {
  /** Key of the listener. */
  readonly listener: string
  readonly kind: 'terminate-http' | 'terminate-tcp' | 'passthrough'
  /** Undefined for passthrough, and where the key material cannot be used: such handshakes fail. */
  readonly terminator: TlsTerminator | undefined
  /** Why there is no terminator; for the log. */
  readonly problem: string | undefined
}

interface HandshakeCallbacks {
  onSecure(socket: TLSSocket): void
  onFailure(error: Error): void
}

/** Ends TLS on accepted sockets with one set of key material and settings. */
interface TlsTerminator {
  /**
   * Takes a socket over; bytes already read must be back in it (`unshift`). One of the callbacks follows, unless the socket closes
   * first. Handshakes have no time limit of their own here.
   */
  accept(socket: Socket, callbacks: HandshakeCallbacks): void
}

export interface TlsChoices {
  /** The choice for a listener; terminators of equal content are shared, so an unchanged certificate costs nothing. Never throws. */
  get(listener: TlsListener): TlsChoice
  /** Drops what none of these listeners uses; live connections are not touched. */
  retain(listeners: Iterable<TlsListener>): void
}

type Terminated = { readonly terminator: TlsTerminator } | { readonly problem: string }

export function createTlsChoices(): TlsChoices {
  const known = new Map<string, Terminated>()
  return {
    get(listener) {
      const { key, kind } = listener
      if (kind === 'passthrough') return { listener: key, kind, terminator: undefined, problem: undefined }
      const digest = digestOf(listener)
      let terminated = known.get(digest)
      if (terminated === undefined) known.set(digest, (terminated = terminate(listener)))
      return { listener: key, kind, terminator: undefined, problem: undefined, ...terminated }
    },
    retain(listeners) {
      const used = new Set<string>()
      for (const listener of listeners) used.add(digestOf(listener))
      for (const digest of known.keys()) if (!used.has(digest)) known.delete(digest)
    },
  }
}

/** Identity of the key material and settings. One listener's sessions are never resumed on another one: their keys belong to the context. */
function digestOf({ key, kind, certificates, clientValidation, settings }: TlsListener): string {
  return createHash('sha256')
    .update(JSON.stringify([key, kind, certificates, clientValidation, settings]))
    .digest('base64')
}

function terminate(listener: TlsListener): Terminated {
  const { certificates, clientValidation } = listener
  if (certificates.length === 0) return { problem: 'no certificate resolves' }
  if (clientValidation?.caCertificates.length === 0) return { problem: 'no CA certificate for client validation resolves' }
  try {
    return { terminator: new Terminator(listener) }
  } catch (error) {
    return { problem: `key material cannot be used: ${(error as Error).message}` }
  }
}

class Terminator implements TlsTerminator {
  readonly #server: Server
  readonly #pending = new Map<string, HandshakeCallbacks>()

  constructor(listener: TlsListener) {
    const { clientValidation, kind } = listener
    const settings = { ...defaultTlsSettings, ...listener.settings }
    // This server never listens: it is Node's documented way to end TLS on a socket that was accepted elsewhere.
    this.#server = createServer({
      ...contextOptions(listener, settings),
      // TLS for plain TCP negotiates no protocol (traffic.md §10).
      ...(kind === 'terminate-http' && { ALPNProtocols: [...settings.alpn] }),
      requestCert: clientValidation !== undefined,
      rejectUnauthorized: clientValidation?.mode === 'AllowValidOnly',
      // Whoever accepted the socket limits the time; this is only a net below that.
      handshakeTimeout: 120_000,
      allowHalfOpen: kind === 'terminate-tcp',
    })
    this.#server.on('secureConnection', (socket) => {
      // A signature that did not verify leaves an error in OpenSSL's queue, which the next read would take for its own and fail. Reading the
      // certificate clears the queue; it matters where the connection goes on, unverified: a CA that has the name of ours, but another key.
      if (clientValidation !== undefined) socket.getPeerX509Certificate()
      // Node refuses these itself; nothing of ours may depend on that alone.
      if (clientValidation?.mode === 'AllowValidOnly' && !(socket.authorized && socket.getPeerX509Certificate() !== undefined)) socket.destroy()
      else this.#take(socket)?.onSecure(socket)
    })
    this.#server.on('tlsClientError', (error, socket) => {
      this.#take(socket)?.onFailure(error)
      socket.destroy()
    })
  }

  accept(socket: Socket, callbacks: HandshakeCallbacks): void {
    const id = idOf(socket)
    this.#pending.set(id, callbacks)
    socket.once('close', () => {
      if (this.#pending.get(id) === callbacks) this.#pending.delete(id)
    })
    this.#server.emit('connection', socket)
  }

  #take(socket: Socket): HandshakeCallbacks | undefined {
    const id = idOf(socket)
    const callbacks = this.#pending.get(id)
    this.#pending.delete(id)
    return callbacks
  }
}

/** No two open connections have these four in common. */
function idOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}

/** Throws on settings that contradict each other; `createServer` throws on key material that does not fit together. */
function contextOptions({ certificates, clientValidation }: TlsListener, settings: TlsSettings): SecureContextOptions {
  if (settings.minVersion > settings.maxVersion) throw new Error(`minVersion ${settings.minVersion} is above maxVersion ${settings.maxVersion}`)
  // OpenSSL takes text without a certificate for an empty list.
  for (const ca of clientValidation?.caCertificates ?? []) void new X509Certificate(ca)
  return {
    cert: certificates.map(({ certificate }) => certificate),
    key: certificates.map(({ privateKey }) => privateKey),
    minVersion: settings.minVersion,
    maxVersion: settings.maxVersion,
    ciphers: settings.cipherSuites.map(toOpenSslCipher).join(':'),
    honorCipherOrder: true,
    ecdhCurve: keyExchangeGroups,
    // A resumed session would carry the verdict on a certificate from one connection to the next: with client validation each is judged anew.
    ...(clientValidation !== undefined && { ca: [...clientValidation.caCertificates], secureOptions: constants.SSL_OP_NO_TICKET }),
  }
}

/** What traffic.md §10 lists; the hybrid one needs OpenSSL 3.5, which the oldest Node that we run on does not have. */
const keyExchangeGroups = ['X25519:P-256:P-384:X25519MLKEM768', 'X25519:P-256:P-384'].find((groups) => {
  try {
    return createSecureContext({ ecdhCurve: groups }) !== undefined
  } catch {
    return false
  }
})

/** OpenSSL's name of a suite. */
function toOpenSslCipher(name: string): string {
  if (name.startsWith('TLS13_')) return name.replace('TLS13_', 'TLS_')
  const match = /^TLS_(ECDHE)_(ECDSA|RSA)_WITH_(?:(AES)_(128|256)_(GCM)_(SHA256|SHA384)|(CHACHA20)_(POLY1305)_SHA256)$/.exec(name)
  if (match === null) throw new Error(`unknown cipher suite ${name}`)
  const [, exchange, signature, aes, bits, mode, hash, chacha, poly] = match
  return aes === undefined ? `${exchange}-${signature}-${chacha}-${poly}` : `${exchange}-${signature}-${aes}${bits}-${mode}-${hash}`
}
