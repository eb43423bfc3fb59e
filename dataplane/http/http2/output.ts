import type { Duplex } from 'node:stream'
import { DATA, ENHANCE_YOUR_CALM, ConnectionError, frameHeader } from './frames.ts'

/** Chunks up to this size are joined with other frames into one write; larger ones are written as they are. */
export const MAX_JOINED_CHUNK = 4096
/** Limit of the control frames that wait for a peer that does not read (CVE-2019-9512, CVE-2019-9515). */
const MAX_WAITING_FRAMES = 1000

/**
 * Writes the frames of a connection. Collects everything of one turn of the event loop as Latin-1 text (Latin-1 maps bytes to characters one to one,
 * and a string saves the copy into a Buffer) and writes it at once in the check phase, after all sockets of the turn were read.
 */
export class Output {
  /** Whether the socket has not yet taken what was written: only control frames may be added. */
  isBlocked = false
  /** Bytes of DATA frames of this turn. */
  turnBytes = 0
  readonly #socket: Duplex
  readonly #onTurn: () => void
  #text = ''
  #waitingFrames = 0
  #isScheduled = false
  #isCorked = false
  #isRefused = false

  /** `onTurn` is called before the write of a turn, to add the frames of streams. */
  constructor(socket: Duplex, onTurn: () => void) {
    this.#socket = socket
    this.#onTurn = onTurn
  }

  /** Writes at the end of the turn. */
  schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(endTurn, this)
  }

  /** Adds a frame that flow control does not apply to. Throws ConnectionError if too many of them wait. */
  control(type: number, flags: number, id: number, payload: string): void {
    if (this.isBlocked && ++this.#waitingFrames > MAX_WAITING_FRAMES) throw new ConnectionError(ENHANCE_YOUR_CALM, 'the peer does not read its control frames')
    this.frame(type, flags, id, payload)
  }

  frame(type: number, flags: number, id: number, payload: string): void {
    this.#text += frameHeader(payload.length, type, flags, id) + payload
    this.schedule()
  }

  /** Adds a DATA frame of a part of `chunk`. */
  data(flags: number, id: number, chunk: Buffer, from: number, to: number): void {
    const length = to - from
    this.turnBytes += length
    this.#text += frameHeader(length, DATA, flags, id)
    if (length <= MAX_JOINED_CHUNK) this.#text += chunk.toString('latin1', from, to)
    else {
      if (!this.#isCorked) {
        this.#isCorked = true
        this.#socket.cork()
      }
      this.#writeText()
      this.#isRefused = !this.#socket.write(length === chunk.length ? chunk : chunk.subarray(from, to))
    }
    this.schedule()
  }

  /** Adds a DATA frame of joined chunks, as Latin-1 text. */
  textData(flags: number, id: number, text: string): void {
    this.turnBytes += text.length
    this.frame(DATA, flags, id, text)
  }

  /** Internal: called by the scheduled write. */
  endTurn(): void {
    this.#isScheduled = false
    this.turnBytes = 0
    if (this.#socket.destroyed || this.isBlocked) return
    this.#onTurn()
    this.flush()
  }

  /** Writes what was added, unless the socket is blocked. */
  flush(): void {
    if (this.isBlocked) return
    this.#writeText()
    if (this.#isCorked) {
      this.#isCorked = false
      this.#socket.uncork()
    }
    this.isBlocked = this.#isRefused && this.#socket.writableLength > 0
    this.#isRefused = false
  }

  /** The socket has taken everything. */
  onDrain(): void {
    this.isBlocked = false
    this.#waitingFrames = 0
    this.schedule()
  }

  /** Writes everything, and then ends the socket. */
  end(): void {
    this.isBlocked = false
    this.flush()
    this.#socket.end()
  }

  #writeText(): void {
    const text = this.#text
    if (text === '') return
    this.#text = ''
    this.#isRefused = !this.#socket.write(text, 'latin1')
  }
}

function endTurn(output: Output): void {
  output.endTurn()
}
