import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Connection, OnFinish, OnRequest, TlsSession } from '../../request/exchange/exchange.ts'
import { sharedDeadlines, type Deadlines, type Waiter } from '../../http/deadlines.ts'
import type { MessageError } from '../../http/syntax.ts'
import { parseClientHello, type ClientHello } from './client-hello.ts'
import { serveHttp1 } from './http1/connection.ts'
import { serveHttp2 } from './http2/session.ts'
import { describeTlsSession } from './identity.ts'
import type { BindHooks, BindProgram, ConnectionMeter, DownstreamProtocol, DropCause } from './program.ts'
import { parseProxyHeader, PROXY_HEADER_MS, type ProxyHeader } from './proxy-protocol.ts'
import type { TlsChoice } from './tls.ts'

/** The bind of an accepted connection. */
export interface AcceptedOwner {
  readonly key: string
  readonly onRequest: OnRequest
  readonly onFinish: OnFinish
  readonly hooks: BindHooks
  readonly deadlines: Deadlines | undefined
  readonly isDraining: boolean
  /** Program of connections that have not finished their handshake. */
  readonly program: BindProgram
  /** The protocol is known and a handshake is finished. */
  begins(accepted: Accepted): void
  forget(accepted: Accepted): void
}

interface Serving {
  /** `keepNew`: a connection without a request yet stays open for one. */
  drain(keepNew?: boolean): void
  close(force: boolean): void
}

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const TLS_HANDSHAKE_BYTE = 22
const DEFAULT_HANDSHAKE_MS = 15_000
/** How long a connection that is to close may still need until its protocol is known. */
const CLOSING_MS = 1000
/** How long a connection may need for its handshake when there are too many connections. */
const SLOW_MS = 250

let lastId = 0

/** Numbers the connections of this thread from `first` on, so that those of several threads differ. */
export function numberConnections(first: number): void {
  lastId = first - 1
}

/** An accepted connection: detects the protocol and passes the socket to its implementation. */
export class Accepted implements Waiter {
  deadlineMs = Infinity
  readonly #owner: AcceptedOwner
  readonly #program: BindProgram
  readonly #raw: Socket
  #base: Omit<Connection, 'tls' | 'listener'>
  readonly #deadlines: Deadlines
  readonly #acceptedAtMs = performance.now()
  #peeked: Buffer | undefined
  #isInHeader = false
  #isAdmitted = false
  #isClosing = false
  /** Its listener changed during the handshake. */
  #isOutdated = false
  #serving: Serving | undefined
  #meter: ConnectionMeter | undefined
  #listener: string | undefined
  #countedReceived = 0
  #countedSent = 0

  constructor(raw: Socket, owner: AcceptedOwner) {
    this.#raw = raw
    this.#owner = owner
    this.#program = owner.program
    this.#deadlines = owner.deadlines ?? sharedDeadlines
    this.#base = {
      id: ++lastId,
      bind: owner.key,
      localAddress: plainAddress(raw.localAddress),
      localPort: raw.localPort ?? 0,
      remoteAddress: plainAddress(raw.remoteAddress),
      remotePort: raw.remotePort ?? 0,
    }
  }

  /** Key of the listener selected for TLS or TCP; undefined before that and for plaintext HTTP. */
  get listener(): string | undefined {
    return this.#listener
  }

  /** Address of the socket's peer. */
  get peerAddress(): string | undefined {
    return this.#raw.remoteAddress
  }

  /** Without a protocol or a finished handshake for so long that it gives way to others. */
  get isSlow(): boolean {
    return this.#serving === undefined && performance.now() - this.#acceptedAtMs > SLOW_MS
  }

  /** Closes the connection for another one. */
  giveWay(): true {
    this.#drop('limit', 'too many connections')
    return true
  }

  /** The connection is closed, or will be without another request. */
  get isOver(): boolean {
    return this.#raw.destroyed || this.#raw.writableEnded
  }

  begin(): void {
    const raw = this.#raw
    raw.on('error', ignoreError)
    raw.once('close', this.#onClose)
    const { settings, proxyProtocol } = this.#program
    const { timeMs, intervalMs, retries } = settings?.keepAlive ?? {}
    if (timeMs !== undefined) raw.setKeepAlive(true, timeMs, intervalMs, retries)
    if (proxyProtocol === undefined) return this.#detect()
    this.#isInHeader = true
    this.#deadlines.add(this)
    this.#setDeadline(proxyProtocol.waitMs ?? PROXY_HEADER_MS)
    raw.on('data', this.#onHeaderData)
    raw.once('end', this.#onEarlyEnd)
  }

  readonly #onHeaderData = (chunk: Buffer): void => {
    const bytes = (this.#peeked = this.#peeked === undefined ? chunk : Buffer.concat([this.#peeked, chunk]))
    const header = parseProxyHeader(bytes, this.#program.proxyProtocol?.version)
    if (header === 'more') return
    if (header === 'bad' || (header === 'none' && this.#program.proxyProtocol?.mode !== 'Optional'))
      return this.#drop('proxy_protocol', 'no PROXY protocol header')
    this.#endHeader(header === 'none' ? undefined : header)
  }

  /** Called after the PROXY protocol header, or without one if it is optional. */
  #endHeader(header: ProxyHeader | undefined): void {
    this.#isInHeader = false
    this.#raw.removeListener('data', this.#onHeaderData)
    this.#raw.removeListener('end', this.#onEarlyEnd)
    if (header?.source !== undefined) {
      const { remoteAddress, remotePort } = this.#base
      this.#base = { ...this.#base, remoteAddress: header.source.address, remotePort: header.source.port, rawAddress: remoteAddress, rawPort: remotePort }
    }
    const rest = this.#peeked?.subarray(header?.length ?? 0)
    this.#peeked = rest === undefined || rest.length === 0 ? undefined : rest
    this.#detect()
  }

  /** Detects the protocol from the bytes read so far and those to come. */
  #detect(): void {
    const raw = this.#raw
    const { plaintext, hasTls, settings } = this.#program
    // Without TLS nothing more will be known about the client: reject it before reading.
    if (!hasTls && !this.#admit(undefined, undefined)) return
    if (plaintext === 'tcp' && !hasTls) return this.#relay(raw, 'tcp', this.#program.tcpListener, undefined, this.#consumePeeked())
    this.#deadlines.add(this)
    const handshakeMs = settings?.handshakeMs ?? DEFAULT_HANDSHAKE_MS
    this.#setDeadline(handshakeMs > 0 ? handshakeMs : Infinity)
    raw.on('data', this.#onData)
    raw.once('end', this.#onEarlyEnd)
    const early = this.#consumePeeked()
    if (early !== undefined) this.#onData(early)
  }

  #setDeadline(ms: number): void {
    this.deadlineMs = this.#deadlines.nowMs + (this.#isClosing ? Math.min(ms, CLOSING_MS) : ms)
  }

  /** Whether network authorization admits the connection; closes it if not. */
  #admit(tls: TlsSession | undefined, listener: string | undefined): boolean {
    this.#isAdmitted ||= this.#program.admits?.({ ...this.#base, tls, listener }) ?? true
    if (!this.#isAdmitted) this.#drop('authorization', 'denied by networkAuthorization')
    return this.#isAdmitted
  }

  /** `keepNew`: a connection without a request yet stays open for one. */
  drain(keepNew: boolean): void {
    if (this.#serving !== undefined) this.#serving.drain(keepNew)
    else if (!keepNew) this.#isOutdated = true
  }

  close(force: boolean): void {
    if (force) {
      this.#serving?.close(true)
      this.#raw.destroy()
    } else if (this.#serving === undefined) {
      // The client does not know of the shutdown yet, and its request may be in transit.
      this.#isClosing = true
      this.#setDeadline(this.deadlineMs - this.#deadlines.nowMs)
    } else this.#serving.close(false)
  }

  expire(): void {
    this.deadlineMs = Infinity
    if (this.#isInHeader && this.#program.proxyProtocol?.mode === 'Optional') this.#endHeader(undefined)
    else if (this.#serving === undefined) this.#drop('timeout', 'no protocol or handshake in time')
    else this.#serving.drain()
  }

  /** Reports the bytes since the last call to the meter. */
  report(): void {
    const { bytesRead, bytesWritten } = this.#raw
    this.#meter?.addBytes(bytesRead - this.#countedReceived, bytesWritten - this.#countedSent)
    this.#countedReceived = bytesRead
    this.#countedSent = bytesWritten
  }

  readonly #onClose = (): void => {
    this.#deadlines.remove(this)
    if (this.#meter !== undefined) {
      this.report()
      this.#meter.close()
    }
    this.#owner.forget(this)
  }

  readonly #onEarlyEnd = (): void => this.#drop('closed', 'closed before a protocol showed')

  readonly #onData = (chunk: Buffer): void => {
    const bytes = (this.#peeked = this.#peeked === undefined ? chunk : Buffer.concat([this.#peeked, chunk]))
    if (bytes[0] === TLS_HANDSHAKE_BYTE && this.#program.hasTls) return this.#sniffTls(bytes)
    switch (this.#program.plaintext) {
      case 'none':
        return this.#drop('protocol', 'plaintext on a port of TLS listeners')
      case 'tcp':
        return this.#relay(this.#raw, 'tcp', this.#program.tcpListener, undefined, this.#consumePeeked())
      case 'http':
        return this.#sniffHttp(bytes)
    }
  }

  #sniffHttp(bytes: Buffer): void {
    const length = Math.min(bytes.length, preface.length)
    const isPreface = bytes.compare(preface, 0, length, 0, length) === 0
    if (isPreface && length < preface.length) return
    this.#stopPeeking()
    this.#serveHttp(this.#raw, undefined, isPreface)
  }

  #sniffTls(bytes: Buffer): void {
    const hello = parseClientHello(bytes)
    if (hello === 'incomplete') return
    if (hello === 'invalid') return this.#drop('protocol', 'not a TLS ClientHello')
    const choice = this.#program.selectTls(hello.sni)
    if (choice === undefined) return this.#drop('listener', `no listener for SNI ${hello.sni ?? '(none)'}`)
    this.#listener = choice.listener
    if (choice.kind === 'passthrough') return this.#relay(this.#raw, 'tls', choice.listener, hello.sni, this.#consumePeeked())
    if (choice.terminator === undefined) return this.#drop('handshake', `listener ${choice.listener}: ${choice.problem ?? 'no certificate'}`)
    this.#terminate(choice, choice.terminator, hello)
  }

  #terminate(choice: TlsChoice, terminator: NonNullable<TlsChoice['terminator']>, { sni }: ClientHello): void {
    this.#stopPeeking()
    const raw = this.#raw
    const initial = this.#consumePeeked()
    raw.pause()
    if (initial !== undefined) raw.unshift(initial)
    const startedAtMs = performance.now()
    const protocol: DownstreamProtocol = choice.kind === 'terminate-http' ? 'https' : 'tls'
    terminator.accept(raw, {
      onSecure: (socket) => {
        this.#owner.hooks.onHandshake?.(protocol, choice.listener, (performance.now() - startedAtMs) / 1000)
        if (choice.kind === 'terminate-tcp') return this.#relay(socket, 'tls', choice.listener, sni, undefined)
        this.#serveHttp(socket, describeTlsSession(socket, sni), socket.alpnProtocol === 'h2')
      },
      onFailure: (error) => this.#drop('handshake', `TLS handshake: ${error.message}`),
    })
  }

  #serveHttp(socket: Socket | TLSSocket, tls: TlsSession | undefined, isHttp2: boolean): void {
    const { hooks, onRequest, onFinish, deadlines } = this.#owner
    const { http1, http2, maxConnectionMs } = this.#program.settings ?? {}
    if (!this.#admit(tls, this.#listener)) return
    const connection: Connection = { ...this.#base, tls, listener: this.#listener }
    this.#owner.begins(this)
    this.#meter = hooks.onConnection?.(tls === undefined ? 'http' : 'https', this.#listener)
    const initial = this.#consumePeeked()
    this.deadlineMs = maxConnectionMs === undefined ? Infinity : this.#deadlines.nowMs + maxConnectionMs
    if (maxConnectionMs === undefined) this.#deadlines.remove(this)
    const options = {
      connection,
      onRequest,
      onFinish,
      onRefuse: (error: MessageError) => hooks.onRefuse?.(error, connection),
      ...(deadlines !== undefined && { deadlines }),
    }
    if (isHttp2) this.#serving = serveHttp2(socket, { ...options, ...(http2 !== undefined && { settings: http2 }) }, initial)
    else this.#serving = serveHttp1(socket, { ...options, initial, ...http1 })
    if (this.#isOutdated) this.#serving.drain()
    else if (this.#isClosing) this.#serving.close(false)
    else if (this.#owner.isDraining) this.#serving.drain(true)
  }

  #relay(socket: Socket | TLSSocket, protocol: 'tcp' | 'tls', listener: string | undefined, sni: string | undefined, initial: Buffer | undefined): void {
    if (listener === undefined) return this.#drop('listener', 'no TCP listener')
    const tls = socket === this.#raw ? undefined : describeTlsSession(socket as TLSSocket, sni)
    if (!this.#admit(tls, listener)) return
    this.#stopPeeking()
    this.#deadlines.remove(this)
    this.#listener = listener
    this.#owner.begins(this)
    this.#meter = this.#owner.hooks.onConnection?.(protocol, listener)
    // Relayed connections cannot be drained: only force ends them.
    this.#serving = { drain: () => undefined, close: (force) => force && socket.destroy() }
    socket.pause()
    socket.allowHalfOpen = true
    socket.setNoDelay(true)
    // Ignore errors until the upstream is connected and the relay adds its listener.
    if (socket !== this.#raw) socket.on('error', ignoreError)
    const connection: Connection = { ...this.#base, tls, listener }
    this.#program.handleTcp({ connection, listener, sni, socket, initial })
  }

  #consumePeeked(): Buffer | undefined {
    const bytes = this.#peeked
    this.#peeked = undefined
    return bytes
  }

  #stopPeeking(): void {
    this.#raw.removeListener('data', this.#onData)
    this.#raw.removeListener('end', this.#onEarlyEnd)
  }

  #drop(cause: DropCause, reason: string): void {
    if (this.#raw.destroyed) return
    this.#owner.hooks.onDrop?.(reason, this.#base.remoteAddress, cause)
    this.#raw.destroy()
  }
}

function ignoreError(): void {
  // 'close' follows.
}

/** Removes the IPv6 prefix of IPv4 clients on a dual-stack socket. */
function plainAddress(address: string | undefined): string {
  if (address === undefined) return ''
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
