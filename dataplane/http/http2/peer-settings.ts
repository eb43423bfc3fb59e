import { DEFAULT_WINDOW } from './flow.ts'
import {
  ConnectionError,
  FLOW_CONTROL_ERROR,
  FRAME_SIZE_ERROR,
  MAX_WINDOW,
  PROTOCOL_ERROR,
  SETTINGS_ENABLE_CONNECT_PROTOCOL,
  SETTINGS_ENABLE_PUSH,
  SETTINGS_HEADER_TABLE_SIZE,
  SETTINGS_INITIAL_WINDOW_SIZE,
  SETTINGS_MAX_CONCURRENT_STREAMS,
  SETTINGS_MAX_FRAME_SIZE,
} from './frames.ts'
import { DEFAULT_TABLE_SIZE } from './hpack.ts'

const MIN_MAX_FRAME = 16_384
const MAX_MAX_FRAME = 0xff_ffff

/** What the peer announced in SETTINGS (RFC 9113 §6.5.2). */
export class PeerSettings {
  initialWindow: number = DEFAULT_WINDOW
  maxFrame: number = MIN_MAX_FRAME
  maxStreams: number = Infinity
  /** The peer has a smaller HPACK table than the default, and was not yet told that the table of this side is empty (RFC 7541 §4.2). */
  needsTableUpdate = false

  /** Applies the payload of a SETTINGS frame. Throws ConnectionError. */
  apply(bytes: Buffer, from: number, to: number): void {
    if ((to - from) % 6 !== 0) throw new ConnectionError(FRAME_SIZE_ERROR, 'SETTINGS frame with a partial parameter')
    for (let at = from; at < to; at += 6) this.#set(bytes.readUInt16BE(at), bytes.readUInt32BE(at + 2))
  }

  #set(parameter: number, value: number): void {
    switch (parameter) {
      case SETTINGS_HEADER_TABLE_SIZE:
        if (value < DEFAULT_TABLE_SIZE) this.needsTableUpdate = true
        return
      case SETTINGS_ENABLE_PUSH:
      case SETTINGS_ENABLE_CONNECT_PROTOCOL:
        if (value > 1) throw new ConnectionError(PROTOCOL_ERROR, 'SETTINGS parameter is neither 0 nor 1')
        return
      case SETTINGS_MAX_CONCURRENT_STREAMS:
        this.maxStreams = value
        return
      case SETTINGS_INITIAL_WINDOW_SIZE:
        if (value > MAX_WINDOW) throw new ConnectionError(FLOW_CONTROL_ERROR, 'initial window exceeds 2^31-1')
        this.initialWindow = value
        return
      case SETTINGS_MAX_FRAME_SIZE:
        if (value < MIN_MAX_FRAME || value > MAX_MAX_FRAME) throw new ConnectionError(PROTOCOL_ERROR, 'maximum frame size out of range')
        this.maxFrame = value
        return
      default:
        // Others do not matter here, or are unknown and must be ignored.
        return
    }
  }
}
