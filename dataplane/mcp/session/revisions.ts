/** What identifies a target. Another server under the same name is another target. */
interface Target {
  readonly name: string
  readonly protocol: string
  readonly path: string
  readonly destination: { readonly name: string }
}

/** What is known about the protocol revisions of the targets of one backend, for all clients of this process (mcp.md §13.3). */
export class Revisions {
  readonly #isModern = new Map<string, boolean>()

  /** Whether the target speaks the revision without sessions; undefined if that is unknown. */
  isModern(target: Target): boolean | undefined {
    return target.protocol === 'SSE' ? false : this.#isModern.get(keyOf(target))
  }

  set(target: Target, isModern: boolean): void {
    if (this.#isModern.size >= MAX_TARGETS) this.#isModern.clear()
    this.#isModern.set(keyOf(target), isModern)
  }

  /** The target behaved otherwise: its revision is discovered again. */
  forget(target: Target): void {
    this.#isModern.delete(keyOf(target))
  }
}

/** Targets come and go with the config. */
const MAX_TARGETS = 1000

const keyOf = ({ name, path, destination }: Target): string => `${name} ${destination.name} ${path}`
