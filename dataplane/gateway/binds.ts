import { METRIC_PREFIX } from '#api/names.ts'
import type { Listener } from '#gen/config/types.ts'
import { connectionSettings, proxyProtocolSettings, tlsSettings, type EffectiveFrontend } from './frontend.ts'
import type { ConfigSnapshot } from '../config/store.ts'
import { missingGrpcStatus } from '../request/exchange/compose.ts'
import { isGrpcRequest } from '../request/exchange/error.ts'
import type { Exchange, OnRequest } from '../request/exchange/exchange.ts'
import { releaseBodies } from '../request/exchange/held.ts'
import type { Gateway, RunningBind } from './gateway.ts'
import type { RunningListener } from './listener.ts'
import { compileNetworkAuthorization } from '../policy/authorization/rules.ts'
import { relayToBackend } from './relay.ts'
import { selectListener } from '../route/listeners.ts'
import { createBind, drainBinds, type Bind, type ConnectionRoom } from '../net/server/bind.ts'
import type { BindHooks, BindProgram, DownstreamProtocol } from '../net/server/program.ts'
import { createTlsChoices, type TlsChoice, type TlsListener } from '../net/server/tls.ts'
import { defineMetrics } from '../observe/telemetry/metrics/area.ts'
import type { Telemetry } from '../observe/telemetry/telemetry.ts'

/** Milliseconds between attempts to open a port. */
const RETRY_MS = 1000

const certificateExpiry = defineMetrics((registry) =>
  registry.gauge(
    `${METRIC_PREFIX}certificate_expiry_timestamp_seconds`,
    'When the first certificate of a listener expires, Unix time.',
    ['bind', 'gateway', 'listener'],
    // Every worker exports the same time.
    'max',
  ),
)

interface OpenBind {
  readonly bind: Bind
  /** Port and addresses as one text: a change of them needs a new socket. */
  readonly place: string
  opening: Promise<void>
  isListening: boolean
  failure: Error | undefined
  tls: ReadonlyMap<string, ChosenTls>
  isClosed: boolean
}

/** Ports that several threads listen on. */
export interface SharedPorts {
  /** Resolves when this thread may listen on a port with `reusePort`. Rejects if another program has it. */
  claim(port: number, addresses: readonly string[] | undefined): Promise<void>
  /** This thread no longer listens on the port. */
  release(port: number): void
  /** `pending` or `failures` may have changed. */
  onChange(): void
  /** Whether this thread logs problems that all threads have. */
  readonly isReporter: boolean
}

/** Sends requests to the thread that has to handle them. */
export interface RequestRelay {
  /** Sends a request to another thread and sets its response; undefined: this thread handles it. Never rejects. */
  forward(exchange: Exchange): Promise<void> | undefined
  /** Whether another thread handled the request, and records it. */
  isRelayed(exchange: Exchange): boolean
}

export interface BindsOptions {
  readonly gateway: Gateway
  readonly telemetry: Telemetry
  /** Undefined: only this thread listens. */
  readonly ports?: SharedPorts | undefined
  /** Undefined: this thread handles all requests. */
  readonly relay?: RequestRelay | undefined
  /** Connections that clients of this thread may have open; default: unlimited. */
  readonly maxConnections?: number
}

interface ChosenTls {
  readonly choice: TlsChoice
  /** Listener kind and client validation as one text: when it changes, existing connections are drained. A new certificate does not change it. */
  readonly terms: string
}

/** Opens, updates and closes ports according to the gateway's binds. */
export class Binds {
  readonly #gateway: Gateway
  readonly #telemetry: Telemetry
  readonly #ports: SharedPorts | undefined
  readonly #relay: RequestRelay | undefined
  readonly #room: ConnectionRoom | undefined
  readonly #choices = createTlsChoices()
  #open = new Map<string, OpenBind>()

  constructor({ gateway, telemetry, ports, relay, maxConnections }: BindsOptions) {
    this.#room = maxConnections === undefined ? undefined : { limit: maxConnections, open: 0 }
    this.#gateway = gateway
    this.#telemetry = telemetry
    this.#ports = ports
    this.#relay = relay
  }

  /** Follows the gateway's binds after an update. Ports that stay open keep their connections. */
  update(snapshot: ConfigSnapshot): void {
    const next = new Map<string, OpenBind>()
    const tlsListeners: TlsListener[] = []
    for (const [key, running] of this.#gateway.binds) {
      const frontend = this.#gateway.frontendOf(key)
      const choices = this.#choose(running, frontend, snapshot, tlsListeners)
      const place = `${running.bind.port} ${running.bind.addresses?.join(' ') ?? ''}`
      const open = this.#open.get(key)
      if (open?.place === place) {
        this.#change(open, running, frontend, choices)
        next.set(key, open)
      } else {
        if (open !== undefined) this.#close(open)
        next.set(key, this.#openBind(key, place, running, frontend, choices))
      }
    }
    for (const [key, open] of this.#open) if (!next.has(key)) this.#close(open)
    this.#choices.retain(tlsListeners)
    this.#open = next
    this.#ports?.onChange()
  }

  /** Ports that are not open yet, for readiness. */
  pending(): string[] {
    return [...this.#open.values()].flatMap(({ isListening, failure, bind }) => (isListening ? [] : [failure?.message ?? `port ${bind.port} is being opened`]))
  }

  /** Resolves when every port is open or has failed once. */
  async settled(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ opening }) => opening))
  }

  failures(): readonly Error[] {
    return [...this.#open.values()].flatMap(({ failure }) => failure ?? [])
  }

  /** Updates the byte counters of open connections and the expiry of certificates. */
  report(): void {
    for (const { bind } of this.#open.values()) bind.report()
    const expiring = [...this.#open].flatMap(([bind, { tls }]) => [...tls.values()].map(({ choice }) => ({ bind, ...choice })))
    const expiry = certificateExpiry(this.#telemetry.metrics.registry)
    // Listeners may have been removed or may have lost their certificate.
    expiry.drop('bind', () => true)
    for (const { bind, listener: key, expiresAtMs } of expiring) {
      const { gateway = '', listener = '' } = this.#gateway.labelsOf(key) ?? {}
      if (expiresAtMs !== undefined) expiry.series(bind, gateway, listener).value = expiresAtMs / 1000
    }
  }

  /** As `drainBinds`. */
  drain(settings: { minDrainMs: number; maxDrainMs: number }): Promise<void> {
    for (const open of this.#open.values()) open.isClosed = true
    return drainBinds(
      [...this.#open.values()].map(({ bind }) => bind),
      settings,
    )
  }

  #openBind(key: string, place: string, running: RunningBind, frontend: EffectiveFrontend, choices: ReadonlyMap<string, ChosenTls>): OpenBind {
    const bind = createBind({
      key,
      port: running.bind.port,
      addresses: running.bind.addresses,
      program: this.#programOf(running, frontend, choices),
      onRequest: this.#relayed(this.#relay),
      onFinished: (exchange) => this.finish(exchange),
      hooks: this.#hooksOf(key),
      room: this.#room,
      reusePort: this.#ports !== undefined,
    })
    const open: OpenBind = { bind, place, opening: Promise.resolve(), isListening: false, failure: undefined, tls: choices, isClosed: false }
    open.opening = this.#listen(open, running.bind.addresses)
    return open
  }

  /** Retries until the port is open: the process that holds it may be about to end. */
  async #listen(open: OpenBind, addresses: readonly string[] | undefined): Promise<void> {
    try {
      await this.#ports?.claim(open.bind.port, addresses)
      await open.bind.listen()
      open.isListening = true
      open.failure = undefined
      if (open.isClosed) open.bind.stopAccepting()
    } catch (error) {
      const isNew = open.failure === undefined
      open.failure = error instanceof Error ? error : new Error(String(error))
      if (isNew && this.#ports?.isReporter !== false)
        this.#telemetry.logging
          .logger('bind')
          .error('port cannot be opened; retrying', { code: 'PX4007', port: open.bind.port, cause: open.failure.message, retryMs: RETRY_MS })
      setTimeout(() => {
        if (!open.isClosed) void this.#listen(open, addresses)
      }, RETRY_MS).unref()
    }
    this.#ports?.onChange()
  }

  #change(open: OpenBind, running: RunningBind, frontend: EffectiveFrontend, choices: ReadonlyMap<string, ChosenTls>): void {
    open.bind.update(this.#programOf(running, frontend, choices))
    // Without this, existing connections of a changed listener would continue under its old terms (traffic.md §7).
    open.bind.drainListeners((listener) => open.tls.has(listener) && open.tls.get(listener)?.terms !== choices.get(listener)?.terms)
    open.tls = choices
  }

  #close(open: OpenBind): void {
    open.isClosed = true
    void open.bind.close(false)
    this.#ports?.release(open.bind.port)
  }

  #programOf({ http, tls, tcp }: RunningBind, frontend: EffectiveFrontend, choices: ReadonlyMap<string, ChosenTls>): BindProgram {
    const admits = compileNetworkAuthorization(frontend.networkAuthorization ?? [])
    return {
      settings: connectionSettings(frontend),
      proxyProtocol: proxyProtocolSettings(frontend),
      ...(admits && { admits }),
      plaintext: tcp !== undefined ? 'tcp' : http.values().next().done === true ? 'none' : 'http',
      hasTls: choices.size > 0,
      tcpListener: tcp?.key,
      selectTls: (sni) => choices.get(selectListener(tls, sni ?? '')?.key ?? '')?.choice,
      handleTcp: (connection) => relayToBackend(connection, this.#gateway, this.#telemetry),
    }
  }

  /** TLS settings of each TLS listener of a bind. Logs unusable ones, once per change. */
  #choose({ tls }: RunningBind, frontend: EffectiveFrontend, { secrets }: ConfigSnapshot, used: TlsListener[]): Map<string, ChosenTls> {
    const choices = new Map<string, ChosenTls>()
    for (const running of tls.values()) {
      const listener = { ...toTlsListener(running, secrets), settings: tlsSettings(frontend) }
      used.push(listener)
      const choice = this.#choices.get(listener)
      choices.set(running.key, { choice, terms: JSON.stringify([listener.kind, listener.clientValidation]) })
      const before = this.#open.get(running.listener.bind)?.tls.get(running.key)?.choice.problem
      if (choice.problem !== undefined && choice.problem !== before && this.#ports?.isReporter !== false)
        this.#telemetry.logging.logger('bind').error('TLS handshakes fail', { code: 'PX4008', listener: running.key, cause: choice.problem })
    }
    return choices
  }

  /** Counts connections and bytes; logs at debug level why connections were closed before they carried data. */
  #hooksOf(key: string): BindHooks {
    const { metrics, logging } = this.#telemetry
    const log = logging.logger('bind')
    const series = new Map<string, ReturnType<typeof metrics.downstream>>()
    const seriesOf = (protocol: DownstreamProtocol, listener: string | undefined): ReturnType<typeof metrics.downstream> => {
      const id = `${protocol} ${listener ?? ''}`
      let found = series.get(id)
      if (found === undefined) {
        const { gateway = '', listener: name = '' } = this.#gateway.labelsOf(listener) ?? {}
        series.set(id, (found = metrics.downstream(key, gateway, name, protocol)))
      }
      return found
    }
    const gateway = this.#gateway
    return {
      onConnection(protocol, listener) {
        const { connections, open, receivedBytes, sentBytes } = seriesOf(protocol, listener ?? soleListener(gateway.binds.get(key)))
        connections.value++
        open.value++
        return {
          addBytes(received, sent) {
            receivedBytes.value += received
            sentBytes.value += sent
          },
          close: () => void open.value--,
        }
      },
      onHandshake: (protocol, listener, seconds) => seriesOf(protocol, listener).handshake.observe(seconds),
      onDrop(reason, remoteAddress, cause) {
        metrics.dropped(key, cause).value++
        log.debug('connection dropped', { bind: key, reason, client: remoteAddress })
      },
      onRefuse(error, { remoteAddress }) {
        metrics.refused(key, error.status).value++
        log.debug('request refused', { bind: key, cause: error.message, client: remoteAddress })
      },
    }
  }

  /** Records a finished exchange. */
  finish(exchange: Exchange): void {
    if (exchange.pendingOn !== undefined) exchange.pendingOn.pending--
    if (exchange.grpcStatus === undefined && isGrpcRequest(exchange.request)) exchange.grpcStatus = missingGrpcStatus(exchange)
    if (this.#relay?.isRelayed(exchange) !== true) this.#telemetry.onFinished(exchange)
    exchange.trace?.onFinish?.()
    releaseBodies(exchange)
  }

  #relayed(relay: RequestRelay | undefined): OnRequest {
    const gateway = this.#gateway
    return relay === undefined ? (exchange) => gateway.handle(exchange) : (exchange) => relay.forward(exchange) ?? gateway.handle(exchange)
  }
}

/** The listener of all plaintext HTTP connections of a port; undefined if the Host of each request selects one of several. */
function soleListener(running: RunningBind | undefined): string | undefined {
  const [only, other] = running?.http.values() ?? []
  return other === undefined ? only?.key : undefined
}

function toTlsListener({ key, listener }: RunningListener, secrets: ConfigSnapshot['secrets']): TlsListener {
  const { tls, protocol } = listener
  const validation = tls?.clientValidation
  return {
    key,
    kind: kindOf(protocol, tls),
    certificates: (tls?.certificates ?? []).flatMap((name) => {
      const { certificate, privateKey } = secrets.get(name) ?? {}
      return certificate === undefined || privateKey === undefined ? [] : [{ certificate, privateKey }]
    }),
    ...(validation && {
      clientValidation: { mode: validation.mode, caCertificates: validation.caCertificates.flatMap((name) => secrets.get(name)?.certificate ?? []) },
    }),
  }
}

function kindOf(protocol: Listener['protocol'], tls: Listener['tls']): TlsListener['kind'] {
  if (tls?.mode === 'Passthrough') return 'passthrough'
  return protocol === 'HTTPS' ? 'terminate-http' : 'terminate-tcp'
}
