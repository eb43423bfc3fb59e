import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { authorityOf, type ResponseHead } from '../../http/message.ts'
import { UpstreamError, type Tunnel, type UpstreamCall } from './types.ts'

/**
 * A connection to an endpoint through a proxy by CONNECT (RFC 9110 §9.3.6). Writes are held until the proxy responds; `onReady` is
 * called then. Any response other than 2xx destroys it.
 */
class TunnelSocket extends Duplex {
  readonly #authority: string
  readonly #call: UpstreamCall | undefined
  #inner: Duplex | undefined
  /** A write or end that was held until the tunnel is open. */
  #waiting: ((inner: Duplex) => void) | undefined

  constructor(tunnel: Tunnel, host: string, port: number, onReady: () => void) {
    super({ allowHalfOpen: true })
    this.#authority = authorityOf(host, port)
    try {
      this.#call = tunnel.connect(this.#authority)
    } catch (error) {
      this.destroy(error as Error)
      return
    }
    this.#call.response.then(
      (response) => this.#answered(response, onReady),
      (error: Error) => this.destroy(error),
    )
  }

  /** Part of Socket. No-op: connections to the proxy already disable Nagle's algorithm. */
  setNoDelay(): this {
    return this
  }

  override _read(): void {
    this.#inner?.resume()
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#withInner((inner) => inner.write(chunk, done))
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#withInner((inner) => inner.end(() => done()))
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#waiting = undefined
    if (this.#inner === undefined) this.#call?.cancel(error ?? new Error('the connection is not needed any more'))
    else this.#inner.destroy()
    done(error)
  }

  #withInner(use: (inner: Duplex) => void): void {
    if (this.#inner === undefined) this.#waiting = use
    else use(this.#inner)
  }

  #answered({ status, body, upgraded }: ResponseHead, onReady: () => void): void {
    if (upgraded === undefined) {
      body?.cancel()
      this.destroy(new UpstreamError('connect', `${this.#authority}: no tunnel: the proxy answered ${status}`))
      return
    }
    const inner = upgraded.socket
    if (this.destroyed) return void inner.destroy()
    this.#inner = inner
    inner.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) inner.pause()
    })
    inner.on('end', () => this.push(null))
    inner.on('error', (error) => this.destroy(error))
    inner.on('close', () => this.destroy())
    if (upgraded.head.length > 0) this.push(upgraded.head)
    else inner.resume()
    onReady()
    this.#waiting?.(inner)
    this.#waiting = undefined
  }
}

/** Opens a tunnel. Typed as Socket for its users, which need only the methods that TunnelSocket has. */
export function openTunnel(tunnel: Tunnel, host: string, port: number, onReady: () => void): Socket {
  return new TunnelSocket(tunnel, host, port, onReady) as unknown as Socket
}
