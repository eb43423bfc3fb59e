import type { SessionSharing } from '../mcp/session/sharing.ts'
import { SharedCells } from '../runtime/shared-cells.ts'

/** Cells for sessions: 4 MiB if all are in use. Separate from others, because clients choose how many there are. */
export const SESSION_CELLS = 65_536

/** Words of a cell: the number of the worker thread that holds the session, or 0; whether the session ended. */
const HOLDER = 0
const ENDED = 1

/** Which worker thread holds a session, and which sessions have ended. `number` is that of this thread; a replacement has another one. */
export class SharedSessions implements SessionSharing {
  readonly #cells: SharedCells
  readonly #number: number

  constructor(memory: SharedArrayBuffer, number: number) {
    this.#cells = new SharedCells(memory)
    this.#number = number
  }

  claim(id: string): void {
    this.#set(id, HOLDER, this.#number)
  }

  release(id: string): void {
    if (this.holderOf(id) === this.#number) this.#set(id, HOLDER, 0)
  }

  end(id: string): void {
    this.#set(id, ENDED, 1)
  }

  hasEnded(id: string): boolean {
    return this.#get(id, ENDED) === 1
  }

  /** Number of the thread that holds a session; 0: none. */
  holderOf(id: string): number {
    return this.#get(id, HOLDER)
  }

  #set(id: string, word: number, value: number): void {
    const cell = this.#cells.open(id, () => undefined)
    if (cell !== undefined) Atomics.store(cell.content, word, BigInt(value))
  }

  #get(id: string, word: number): number {
    const cell = this.#cells.find(id)?.touch()
    return cell === undefined ? 0 : Number(Atomics.load(cell.content, word))
  }
}
