import { redactValue } from '../../observe/telemetry/redact.ts'
import { labelColumns } from './columns.ts'

/** Characters of a text. Longer ones are cut: clients choose some of them. */
const MAX_TEXT = 256
const STATUS = labelColumns.indexOf('status')

/** The labels of the entries of a batch, each once. */
export class BatchLabels {
  readonly #indexes = new Map<string, number>()
  /** The values of the last row as they were, because many rows in sequence have the same. */
  #last: readonly unknown[] = []
  #lastIndex = 0

  /** JSON of each `LedgerLabels`. */
  get list(): string[] {
    return [...this.#indexes.keys()]
  }

  /** Index of labels in the list. `values` are in the order of `labelColumns`; the status is a number, all others become texts. */
  indexOf(values: readonly unknown[]): number {
    if (this.#isLast(values)) return this.#lastIndex
    const labels = values.map((value, column) => (column === STATUS ? Number(value) : textOf(value)))
    const key = JSON.stringify(labels)
    let index = this.#indexes.get(key)
    if (index === undefined) this.#indexes.set(key, (index = this.#indexes.size))
    this.#last = values
    return (this.#lastIndex = index)
  }

  #isLast(values: readonly unknown[]): boolean {
    const last = this.#last
    for (let column = 0; column < values.length; column++) if (values[column] !== last[column]) return false
    return last.length > 0
  }
}

/** The text of a value for a record; null: none. */
export function textOf(value: unknown): string | null {
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  // A half of a surrogate pair at the cut would not be valid UTF-8.
  return typeof value === 'string' && value !== '' ? redactValue(value).slice(0, MAX_TEXT).toWellFormed() : null
}
