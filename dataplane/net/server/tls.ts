import { constants, createHash, X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { createSecureContext, createServer, type SecureContextOptions, type Server, type TlsOptions, type TLSSocket } from 'node:tls'

/** TLS settings of a port (traffic.md §10). */
export interface TlsSettings {
  readonly alpn: readonly string[]
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  readonly maxVersion: 'TLSv1.2' | 'TLSv1.3'
  /** Names of the API, such as TLS13_AES_128_GCM_SHA256. */
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

/** TLS config of a listener with resolved key material. */
export interface TlsListener {
  /** Key of the listener. */
  readonly key: string
  readonly kind: TlsChoice['kind']
  /** PEM. Of several, the handshake selects one that the client supports (RSA, ECDSA). Empty: handshakes fail. */
  readonly certificates: readonly { readonly certificate: string; readonly privateKey: string }[]
  readonly clientValidation?: ClientValidation | undefined
  readonly settings?: Partial<TlsSettings> | undefined
}

interface ClientValidation {
  readonly mode: 'AllowValidOnly' | 'AllowInsecureFallback'
  /** PEM trust anchors. Empty: handshakes fail. */
  readonly caCertificates: readonly string[]
}

/** TLS settings selected by SNI. */
export interface TlsChoice {
  /** Key of the listener. */
  readonly listener: string
  readonly kind: 'terminate-http' | 'terminate-tcp' | 'passthrough'
  /** Undefined for passthrough, and if the key material is unusable: such handshakes fail. */
  readonly terminator: TlsTerminator | undefined
  /** Why the key material is unusable, for the log. */
  readonly problem: string | undefined
  /** When the first of the certificates expires, Unix time in milliseconds. Undefined without a terminator. */
  readonly expiresAtMs: number | undefined
}

interface HandshakeCallbacks {
  onSecure(socket: TLSSocket): void
  onFailure(error: Error): void
}

/** Terminates TLS on accepted sockets with one set of key material and settings. */
interface TlsTerminator {
  /**
   * Performs the handshake on a socket; the caller must put bytes that it has read back (`unshift`). Calls one of the callbacks, unless
   * the socket closes first. The caller limits the time.
   */
  accept(socket: Socket, callbacks: HandshakeCallbacks): void
}

/** Cache of TLS settings by content. */
export interface TlsChoices {
  /** Settings of a listener. Terminators of equal content are shared, so that an unchanged certificate is not loaded again. Never throws. */
  get(listener: TlsListener): TlsChoice
  /** Removes entries that none of these listeners uses. Does not affect open connections. */
  retain(listeners: Iterable<TlsListener>): void
}

type Terminated = { readonly terminator: TlsTerminator; readonly expiresAtMs: number } | { readonly problem: string }

/** Creates an empty cache. */
export function createTlsChoices(): TlsChoices {
  const known = new Map<string, Terminated>()
  return {
    get(listener) {
      const { key, kind } = listener
      const none = { listener: key, kind, terminator: undefined, problem: undefined, expiresAtMs: undefined }
      if (kind === 'passthrough') return none
      const digest = digestOf(listener)
      let terminated = known.get(digest)
      if (terminated === undefined) known.set(digest, (terminated = terminate(listener)))
      return { ...none, ...terminated }
    },
    retain(listeners) {
      const used = new Set<string>()
      for (const listener of listeners) used.add(digestOf(listener))
      for (const digest of known.keys()) if (!used.has(digest)) known.delete(digest)
    },
  }
}

/** Digest of the key material and settings. It includes the listener, so that sessions are never resumed on another listener. */
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
    const expiresAtMs = Math.min(...certificates.map(({ certificate }) => new X509Certificate(certificate).validToDate.getTime()))
    return { terminator: terminatorOf(listener), expiresAtMs }
  } catch (error) {
    return { problem: `key material cannot be used: ${(error as Error).message}` }
  }
}

function terminatorOf(listener: TlsListener): TlsTerminator {
  const { clientValidation, kind } = listener
  const settings = { ...defaultTlsSettings, ...listener.settings }
  const options: TlsOptions = {
    ...contextOptions(listener, settings),
    // TLS for plain TCP negotiates no protocol (traffic.md §10).
    ...(kind === 'terminate-http' && { ALPNProtocols: [...settings.alpn] }),
    requestCert: clientValidation !== undefined,
    rejectUnauthorized: clientValidation?.mode === 'AllowValidOnly',
    allowHalfOpen: kind === 'terminate-tcp',
  }
  return createTerminator(options, (socket) => {
    // A signature that failed verification leaves an error in OpenSSL's queue, which makes the next read fail. Reading the certificate clears
    // the queue. This matters if the unverified connection continues: a CA with the same name as ours, but another key.
    if (clientValidation !== undefined) socket.getPeerX509Certificate()
    // Node rejects these itself; do not depend on that alone.
    return clientValidation?.mode !== 'AllowValidOnly' || (socket.authorized && socket.getPeerX509Certificate() !== undefined)
  })
}

/** Creates a terminator with options of Node. `admits` judges a connection after its handshake. Throws if the options cannot be used. */
export function createTerminator(options: TlsOptions, admits: (socket: TLSSocket) => boolean = () => true): TlsTerminator {
  return new Terminator(options, admits)
}

class Terminator implements TlsTerminator {
  readonly #server: Server
  readonly #pending = new Map<string, HandshakeCallbacks>()

  constructor(options: TlsOptions, admits: (socket: TLSSocket) => boolean) {
    // This server never listens: it is Node's documented way to terminate TLS on a socket that was accepted elsewhere.
    // The caller limits the time; the timeout is a fallback.
    this.#server = createServer({ ...options, handshakeTimeout: 120_000 })
    this.#server.on('secureConnection', (socket) => {
      if (admits(socket)) this.#claim(socket)?.onSecure(socket)
      else socket.destroy()
    })
    this.#server.on('tlsClientError', (error, socket) => {
      this.#claim(socket)?.onFailure(error)
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

  #claim(socket: Socket): HandshakeCallbacks | undefined {
    const id = idOf(socket)
    const callbacks = this.#pending.get(id)
    this.#pending.delete(id)
    return callbacks
  }
}

/** The address pair identifies an open connection. */
function idOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}

/** Throws if settings contradict each other; `createServer` throws if the key material does not match. */
function contextOptions({ certificates, clientValidation }: TlsListener, settings: TlsSettings): SecureContextOptions {
  if (settings.minVersion > settings.maxVersion) throw new Error(`minVersion ${settings.minVersion} is above maxVersion ${settings.maxVersion}`)
  // OpenSSL treats text without a certificate as an empty list.
  for (const ca of clientValidation?.caCertificates ?? []) void new X509Certificate(ca)
  return {
    cert: certificates.map(({ certificate }) => certificate),
    key: certificates.map(({ privateKey }) => privateKey),
    minVersion: settings.minVersion,
    maxVersion: settings.maxVersion,
    ciphers: settings.cipherSuites.map(toOpenSslCipher).join(':'),
    honorCipherOrder: true,
    ecdhCurve: keyExchangeGroups,
    // Renegotiation costs the server a handshake that no limit counts, and outlives checks of the first one. TLS 1.3 has none.
    // With client validation each connection is validated: a resumed session would reuse an old result.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION | (clientValidation === undefined ? 0 : constants.SSL_OP_NO_TICKET),
    ...(clientValidation !== undefined && { ca: [...clientValidation.caCertificates] }),
  }
}

/** The groups of traffic.md §10. The hybrid one needs OpenSSL 3.5, which the oldest supported Node does not have. */
const keyExchangeGroups = ['X25519:P-256:P-384:X25519MLKEM768', 'X25519:P-256:P-384'].find((groups) => {
  try {
    return createSecureContext({ ecdhCurve: groups }) !== undefined
  } catch {
    return false
  }
})

/** Converts a cipher suite name to OpenSSL's. */
function toOpenSslCipher(name: string): string {
  if (name.startsWith('TLS13_')) return name.replace('TLS13_', 'TLS_')
  const match = /^TLS_(ECDHE)_(ECDSA|RSA)_WITH_(?:(AES)_(128|256)_(GCM)_(SHA256|SHA384)|(CHACHA20)_(POLY1305)_SHA256)$/.exec(name)
  if (match === null) throw new Error(`unknown cipher suite ${name}`)
  const [, exchange, signature, aes, bits, mode, hash, chacha, poly] = match
  return aes === undefined ? `${exchange}-${signature}-${chacha}-${poly}` : `${exchange}-${signature}-${aes}${bits}-${mode}-${hash}`
}
