/** Notifies open sessions of changes to the tools of a target that the gateway itself serves. Kept over versions of the config. */
export class ListChanges {
  readonly #listeners = new Set<ListChangeListener>()

  /** Returns the function that removes the listener. */
  listen(listener: ListChangeListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  announce(): void {
    for (const listener of this.#listeners) listener.onChange()
  }

  /** The target was removed. */
  close(): void {
    for (const listener of this.#listeners) listener.onEnd()
    this.#listeners.clear()
  }
}

interface ListChangeListener {
  onChange(): void
  onEnd(): void
}
