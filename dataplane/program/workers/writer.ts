import type { LineWriter } from '../../observe/telemetry/writer.ts'

const FLUSH_MS = 100
const FLUSH_SIZE = 32 * 1024

/** Collects lines and passes them to the main thread in batches, which writes them: lines of several workers never mix. */
export class RelayWriter implements LineWriter {
  /** The main thread counts dropped lines. */
  readonly dropped = 0
  readonly #send: (text: string) => void
  #waiting = ''
  #timer: NodeJS.Timeout | undefined

  constructor(send: (text: string) => void) {
    this.#send = send
  }

  write(line: string): boolean {
    this.#waiting += line
    if (this.#waiting.length >= FLUSH_SIZE) this.flushSync()
    else this.#timer ??= setTimeout(() => this.flushSync(), FLUSH_MS).unref()
    return true
  }

  flush(): Promise<void> {
    this.flushSync()
    return Promise.resolve()
  }

  flushSync(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#waiting === '') return
    this.#send(this.#waiting)
    this.#waiting = ''
  }
}
