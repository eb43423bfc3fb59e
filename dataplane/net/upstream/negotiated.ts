import type { Socket } from 'node:net'
import type { Deadlines } from '../../http/deadlines.ts'
import type { RequestHead, ResponseHead } from '../../http/message.ts'
import { createHttp1Pool } from './http1/pool.ts'
import { createConnector } from './http1/connect.ts'
import { createHttp2Pool } from './http2/pool.ts'
import { connectFirst } from './tcp.ts'
import { UpstreamError, type Transport, type UpstreamCall, type UpstreamPool } from './types.ts'

const protocols = ['h2', 'http/1.1']

/**
 * A pool whose HTTP version the upstream selects by ALPN (traffic.md §13). Calls wait for the first connection, which determines the
 * version and is then used. Plaintext is HTTP/1.1.
 */
export function createNegotiatedPool(transport: Transport, options: { readonly deadlines?: Deadlines } = {}): UpstreamPool {
  return transport.tls === undefined ? createHttp1Pool(transport, options) : new NegotiatedPool(transport, options)
}

class NegotiatedPool implements UpstreamPool {
  readonly #transport: Transport
  readonly #http1: UpstreamPool
  readonly #http2: ReturnType<typeof createHttp2Pool>
  #chosen: UpstreamPool | undefined
  #probe: Promise<UpstreamPool> | undefined
  /** An open HTTP/1.1 connection for the next call. */
  #ready: Socket | undefined

  constructor(transport: Transport, options: { readonly deadlines?: Deadlines }) {
    this.#transport = transport
    const tls = transport.tls && { ...transport.tls, alpn: undefined }
    const connect = createConnector({ ...transport, tls }, ['http/1.1'])
    this.#http2 = createHttp2Pool(transport, options)
    this.#http1 = createHttp1Pool(transport, {
      ...options,
      connector: (onReady) => {
        const ready = this.#ready
        this.#ready = undefined
        if (ready === undefined || ready.destroyed) return connect(onReady)
        process.nextTick(onReady)
        return ready
      },
    })
  }

  get size(): number {
    return this.#http1.size + this.#http2.size
  }

  call(request: RequestHead, timeouts: { connectMs: number }): UpstreamCall {
    if (request.upgrade !== undefined) return this.#http1.call(request, timeouts)
    if (this.#chosen === undefined) return new WaitingCall(this.#choose(timeouts.connectMs), request, timeouts)
    const call = this.#chosen.call(request, timeouts)
    // If the upstream was replaced by one of the other version, connections fail: negotiate again for the next call.
    if (this.#chosen === this.#http2) call.response.catch((error: unknown) => this.#renegotiateAfter(error))
    return call
  }

  close(): void {
    this.#http1.close()
    this.#http2.close()
    this.#ready?.destroy()
  }

  #choose(connectMs: number): Promise<UpstreamPool> {
    return (this.#probe ??= this.#connect(connectMs).finally(() => (this.#probe = undefined)))
  }

  async #connect(connectMs: number): Promise<UpstreamPool> {
    const tls = this.#transport.tls && { ...this.#transport.tls, alpn: this.#transport.tls.alpn ?? protocols }
    const socket = await connectFirst({ ...this.#transport, tls }, connectMs)
    // Half-open is for relays only: Node's HTTP/2 session does not notice the end of such a socket.
    socket.allowHalfOpen = false
    if ((socket as Socket & { alpnProtocol?: string | false }).alpnProtocol === 'h2') {
      this.#http2.adopt(socket, connectMs)
      this.#chosen = this.#http2
    } else {
      this.#ready = socket
      this.#chosen = this.#http1
    }
    return this.#chosen
  }

  #renegotiateAfter(error: unknown): void {
    if (error instanceof UpstreamError && error.failure === 'connect') this.#chosen = undefined
  }
}

/** A call that waits for the negotiation. */
class WaitingCall implements UpstreamCall {
  readonly response: Promise<ResponseHead>
  #call: UpstreamCall | undefined
  #cancel: (error: UpstreamError) => void = () => undefined

  constructor(pool: Promise<UpstreamPool>, request: RequestHead, timeouts: { connectMs: number }) {
    const cancelled = new Promise<never>((_, reject) => (this.#cancel = reject))
    // The caller may have cancelled and no longer await the response.
    cancelled.catch(() => undefined)
    const fail = (error: UpstreamError): never => {
      request.body?.cancel(error)
      throw error
    }
    this.response = Promise.race([pool, cancelled]).then((chosen) => (this.#call = chosen.call(request, timeouts)).response, fail)
  }

  cancel(reason: Error): void {
    if (this.#call === undefined) this.#cancel(new UpstreamError('cancelled', 'call was cancelled', reason))
    else this.#call.cancel(reason)
  }
}
