import type { SessionSharing } from '../../backend/mcp/session/sharing.ts'
import { allocateCells, SharedCells } from '../../runtime/shared-cells.ts'

/** Memory of SharedSessions: two tables, so that sessions that end take no cells from those that a worker holds. */
export interface SessionMemory {
  readonly holders: SharedArrayBuffer
  readonly ended: SharedArrayBuffer
}

/** Cells of each table: 4 MiB if all are in use. Apart from the cells of limits, because clients choose how many there are. */
const SESSION_CELLS = 65_536

/** Session ids do not start like this. */
const CHANGES = 'changes '

export const allocateSessions = (): SessionMemory => ({ holders: allocateCells(SESSION_CELLS), ended: allocateCells(SESSION_CELLS) })

/** Which worker thread holds a session, and which sessions have ended. `number` is that of this thread; a replacement has another one. */
export class SharedSessions implements SessionSharing {
  readonly #holders: SharedCells
  readonly #ended: SharedCells
  readonly #number: number

  constructor({ holders, ended }: SessionMemory, number: number) {
    this.#holders = new SharedCells(holders)
    this.#ended = new SharedCells(ended)
    this.#number = number
  }

  claim(id: string): void {
    this.#hold(id, this.#number)
  }

  release(id: string): void {
    if (this.holderOf(id) === this.#number) this.#hold(id, 0)
  }

  end(id: string): void {
    this.#ended.open(id, () => undefined)
  }

  hasEnded(id: string): boolean {
    return this.#ended.find(id) !== undefined
  }

  bumpChanges(name: string): void {
    const cell = this.#ended.open(CHANGES + name, () => undefined)
    if (cell !== undefined) Atomics.add(cell.content, 0, 1n)
  }

  changesOf(name: string): number {
    const cell = this.#ended.find(CHANGES + name)?.touch()
    return cell === undefined ? 0 : Number(Atomics.load(cell.content, 0))
  }

  /** Number of the thread that holds a session; 0: none. */
  holderOf(id: string): number {
    const cell = this.#holders.find(id)?.touch()
    return cell === undefined ? 0 : Number(Atomics.load(cell.content, 0))
  }

  #hold(id: string, number: number): void {
    const cell = this.#holders.open(id, () => undefined)
    if (cell !== undefined) Atomics.store(cell.content, 0, BigInt(number))
  }
}
