import { constants } from 'node:crypto'
import { connect } from 'node:tls'
import { releaseBodies } from '../../request/exchange/held.ts'
import type { SharedPorts } from '../../gateway/binds.ts'
import type { ResponseHead } from '../../http/message.ts'
import { deriveKey, type SessionKeys } from '../../runtime/seal.ts'
import type { OnGone, PeerAddress, PeerMessages } from '../../backend/mcp/session/sharing.ts'
import { createBind, drainBinds, type Bind } from '../../net/server/bind.ts'
import { createTerminator } from '../../net/server/tls.ts'
import type { Logger } from '../../observe/telemetry/log.ts'
import { createHttp1Pool } from '../../net/upstream/http1/pool.ts'
import type { WorkerDrain } from './data.ts'
import { messageRequest, receiveMessage } from './message.ts'

/** A replica that has ended may not even refuse the connection. */
const CONNECT_MS = 3000
/** Until the head of the response. The other replica first sends the responses of the client to the target, for at most 30 s. */
const RESPONSE_MS = 35_000
/** Replicas are near, and begin at once. */
const HANDSHAKE_MS = 2000
/** Each carries one retry, until its response ends. As many calls wait at most in a worker. */
const MAX_CONNECTIONS = 1000
/** Connections of one address that have not proved that they have a key. */
const MAX_PENDING = 64
/** Finds out that the machine of the other replica is gone. */
const PROBES = { timeMs: 30_000, intervalMs: 10_000, retries: 3 }
/** Milliseconds between attempts to open the port. */
const RETRY_MS = 1000

/**
 * Both sides prove that they have the key, and its exposure does not decrypt what was recorded (ECDHE). Node has pre-shared keys with TLS 1.2 only.
 * The second cipher is for builds of OpenSSL without the first (FIPS).
 */
const tlsTerms = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305:ECDHE-PSK-AES256-CBC-SHA384',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION | constants.SSL_OP_NO_TICKET,
} as const

interface PeerKey {
  /** Names the key. */
  readonly identity: string
  readonly psk: Buffer
}

export interface PeersOptions {
  /** At least one. The first is that of connections to other replicas, all are accepted. */
  readonly keys: SessionKeys
  readonly address: PeerAddress
  /** Undefined: only this thread listens. */
  readonly ports: SharedPorts | undefined
  readonly log: Pick<Logger, 'error' | 'debug'>
}

/** Messages between replicas, which have the same session keys: retries of calls that wait for input (mcp.md §13.2). */
export class Peers implements PeerMessages {
  readonly #options: PeersOptions
  readonly #keys: readonly PeerKey[]
  readonly #bind: Bind
  #handler: ((text: string, onGone: OnGone) => Promise<ResponseHead>) | undefined
  #isListening = false
  #hasFailed = false
  #isClosed = false

  constructor(options: PeersOptions) {
    const { address, keys, ports } = options
    this.#options = options
    this.#keys = keys.map(peerKeyOf)
    const pskCallback = (_: unknown, identity: string): Buffer | null => this.#keys.find((key) => key.identity === identity)?.psk ?? null
    const terminator = createTerminator({ ...tlsTerms, pskCallback })
    const choice = { listener: 'peers', kind: 'terminate-http', terminator, problem: undefined, expiresAtMs: undefined } as const
    this.#bind = createBind({
      key: 'peers',
      port: address.port,
      addresses: [address.host],
      program: {
        plaintext: 'none',
        hasTls: true,
        selectTls: () => choice,
        handleTcp: ({ socket }) => socket.destroy(),
        settings: { handshakeMs: HANDSHAKE_MS, keepAlive: PROBES },
      },
      onRequest: (exchange) => receiveMessage(exchange, this.#handler),
      onFinished: releaseBodies,
      reusePort: ports !== undefined,
      room: { limit: MAX_CONNECTIONS, open: 0 },
      maxPendingPerAddress: MAX_PENDING,
    })
  }

  get address(): PeerAddress | undefined {
    return this.#isListening ? this.#options.address : undefined
  }

  /** Resolves when the port is open or could not be opened once; then it is tried again. */
  async listen(): Promise<void> {
    const { address, ports, log } = this.#options
    try {
      await ports?.claim(address.port, [address.host])
      await this.#bind.listen()
      this.#isListening = true
      if (this.#isClosed) this.#bind.stopAccepting()
    } catch (error) {
      if (!this.#hasFailed && ports?.isReporter !== false)
        log.error('port for other replicas (PEER_PORT of INSTANCE_IP) cannot be opened; retrying', {
          code: 'PX4007',
          port: address.port,
          cause: (error as Error).message,
          retryMs: RETRY_MS,
        })
      this.#hasFailed = true
      setTimeout(() => {
        if (!this.#isClosed) void this.listen()
      }, RETRY_MS).unref()
    }
  }

  send(to: PeerAddress, text: string, onGone: OnGone): Promise<ResponseHead> | undefined {
    const { address } = this.#options
    return to.host === address.host && to.port === address.port ? undefined : this.#send(to, text, onGone)
  }

  handle(handler: (text: string, onGone: OnGone) => Promise<ResponseHead>): void {
    this.#handler = handler
  }

  /** As `drainBinds`. */
  drain(settings: WorkerDrain): Promise<void> {
    this.#isClosed = true
    return drainBinds([this.#bind], settings)
  }

  async #send({ host, port }: PeerAddress, text: string, onGone: OnGone): Promise<ResponseHead> {
    const connector = (onReady: () => void) => {
      const socket = connect({ ...tlsTerms, host, port, pskCallback: () => this.#keys[0] ?? null, checkServerIdentity: () => undefined }, onReady)
      return socket.setKeepAlive(true, PROBES.timeMs, PROBES.intervalMs, PROBES.retries)
    }
    const call = createHttp1Pool({ host, port, tls: undefined, keepAlive: undefined }, { connector }).call(messageRequest(text), { connectMs: CONNECT_MS })
    onGone((reason) => call.cancel(reason))
    const timer = setTimeout(() => call.cancel(new Error(`no response within ${RESPONSE_MS} ms`)), RESPONSE_MS)
    try {
      return await call.response
    } catch (error) {
      this.#options.log.debug('replica cannot be reached', { cause: (error as Error).message })
      throw error
    } finally {
      clearTimeout(timer)
    }
  }
}

/** The key of connections between replicas with a session key. */
const peerKeyOf = (key: Buffer): PeerKey => ({ identity: deriveKey(key, 'peers identity').toString('hex'), psk: deriveKey(key, 'peers key') })
