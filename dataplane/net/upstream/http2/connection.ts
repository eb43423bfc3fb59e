import type { Socket } from 'node:net'
import { Http2Connection } from '../../../http/http2/connection.ts'
import {
  ConnectionError,
  MAX_STREAM_ID,
  NO_ERROR,
  PREFACE,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
  settingBytes,
  SETTINGS_ENABLE_PUSH,
  SETTINGS_INITIAL_WINDOW_SIZE,
  SETTINGS_MAX_HEADER_LIST_SIZE,
} from '../../../http/http2/frames.ts'
import { Http2ClientStream, type StreamCall } from './stream.ts'

const STREAM_WINDOW = 262_144
const CONNECTION_WINDOW = 1_048_576
const MAX_HEADER_LIST = 65_536
const LIVENESS = 'liveness'

/** The session of a connection. */
export interface ConnectionOwner {
  /** SETTINGS of the upstream were received. */
  onSettings(maxStreams: number): void
  /** GOAWAY was received: streams above `lastId` were not processed. */
  onGoaway(lastId: number): void
  /** The PING of `probe` was acknowledged. */
  onProbed(): void
  /** The stream of a call has ended. */
  onCallClosed(call: StreamCall): void
  /** The connection is closed, or the upstream violated the protocol; its streams were lost before. */
  onConnectionClosed(): void
}

/**
 * The client side of an HTTP/2 connection. The window of the connection is credited on receipt, unlike that of the server side: the calls of many clients
 * share the connection, and one that does not read must not stop the others. Its own window limits what it holds.
 */
export class Http2ClientConnection extends Http2Connection<Http2ClientStream> {
  readonly #owner: ConnectionOwner
  #nextId = 1

  constructor(socket: Socket, owner: ConnectionOwner, nowMs: () => number) {
    const limits = {
      streamWindow: STREAM_WINDOW,
      connectionWindow: CONNECTION_WINDOW,
      maxFrame: 16_384,
      maxHeaderList: MAX_HEADER_LIST,
      underscores: undefined,
      creditsOnReceipt: true,
    }
    super(socket, limits, false, nowMs)
    this.#owner = owner
    socket.write(PREFACE, 'latin1')
    this.open(
      settingBytes(SETTINGS_ENABLE_PUSH, 0) +
        settingBytes(SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW) +
        settingBytes(SETTINGS_MAX_HEADER_LIST_SIZE, MAX_HEADER_LIST),
      undefined,
    )
  }

  /** Whether stream identifiers are left. */
  get hasIds(): boolean {
    return this.#nextId < MAX_STREAM_ID
  }

  /** Opens a stream. Its request must be sent before another stream is opened. */
  openStream(call: StreamCall, method: string): Http2ClientStream {
    const stream = new Http2ClientStream(this, this.#nextId, call, method)
    // HEADERS are sent in the order in which streams are scheduled, which is that of the identifiers (RFC 9113 §5.1.1).
    this.#nextId += 2
    this.streams.set(stream)
    return stream
  }

  /** Sends a PING that `onProbed` reports. */
  probe(): void {
    this.ping(LIVENESS)
  }

  /** Closes the connection after its last call. */
  close(): void {
    this.shutdown(NO_ERROR, 'connection is closed')
  }

  protected override acceptHeaders(id: number): void {
    if (this.isIdleId(id)) throw new ConnectionError(PROTOCOL_ERROR, 'HEADERS on an idle stream')
  }

  protected override isIdleId(id: number): boolean {
    return id >= this.#nextId || (id & 1) === 0
  }

  /** Many calls may be cancelled at once, and the upstream is trusted more than a client. */
  protected override wasReset(): boolean {
    return true
  }

  protected override onPeerReset(): void {
    // Upstreams may reset streams.
  }

  protected override onGoaway(lastId: number): void {
    this.#owner.onGoaway(lastId)
    for (const stream of this.streams.values()) {
      if (stream.id <= lastId) continue
      this.remove(stream)
      stream.onLost(new Error('upstream is closing the connection'), REFUSED_STREAM)
    }
  }

  protected override onSettings(): void {
    this.#owner.onSettings(this.peer.maxStreams)
  }

  protected override onPingAck(payload: string): void {
    if (payload === LIVENESS) this.#owner.onProbed()
  }

  protected override onStreamClosed(stream: Http2ClientStream): void {
    this.#owner.onCallClosed(stream.call)
  }

  protected override onClosed(): void {
    this.#owner.onConnectionClosed()
  }

  protected override onShutdown(): void {
    this.#owner.onConnectionClosed()
  }
}
