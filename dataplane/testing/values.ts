import type { ValueStore } from '../runtime/value-store.ts'

/** A ValueStore in memory, for tests. */
export class FakeValues implements ValueStore {
  readonly values = new Map<string, Buffer>()
  /** Keys for which reads and writes fail. */
  fails: (key: string) => boolean = () => false

  get(key: string, maxBytes: number): Promise<Buffer | undefined | null> {
    if (this.fails(key)) return Promise.resolve(null)
    const value = this.values.get(key)
    return Promise.resolve(value !== undefined && value.length <= maxBytes ? value : undefined)
  }

  set(key: string, value: Buffer): void {
    if (!this.fails(key)) this.values.set(key, value)
  }

  remove(key: string): void {
    if (!this.fails(key)) this.values.delete(key)
  }
}
