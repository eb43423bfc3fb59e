/** What identifies a target. Another server under the same name is another target. */
interface Target {
  readonly name: string
  readonly protocol: string
  /** Set if the target is an HTTP API, which the gateway serves as one of the older revisions. */
  readonly openapi?: unknown
  /** As openapi, for a gRPC server. */
  readonly grpc?: unknown
  readonly hasSessionsOnly?: boolean
  readonly path: string
  readonly destination: { readonly name: string }
}

/** Protocol revisions of a target: those with sessions only, that without too, or only that one. */
type Known = 'legacy' | 'modern' | 'modern-only'

/** What is known about the protocol revisions of the targets of one backend, for all clients of this process (mcp.md §13.3). */
export class Revisions {
  readonly #known = new Map<string, Known>()

  /** Whether the target speaks the revision without sessions; undefined if that is unknown. */
  isModern(target: Target): boolean | undefined {
    if (target.protocol !== 'StreamableHTTP' || target.openapi !== undefined || target.grpc !== undefined || target.hasSessionsOnly === true) return false
    const known = this.#known.get(keyOf(target))
    return known && known !== 'legacy'
  }

  /** Whether the target rejected `initialize`. */
  isModernOnly(target: Target): boolean {
    return this.#known.get(keyOf(target)) === 'modern-only'
  }

  set(target: Target, known: Known): void {
    if (this.#known.size >= MAX_TARGETS) this.#known.clear()
    this.#known.set(keyOf(target), known)
  }

  /** The target behaved otherwise: its revision is discovered again. */
  forget(target: Target): void {
    this.#known.delete(keyOf(target))
  }
}

/** Targets come and go with the config. */
const MAX_TARGETS = 1000

const keys = new WeakMap<Target, string>()

function keyOf(target: Target): string {
  const known = keys.get(target)
  if (known !== undefined) return known
  const { name, path, destination } = target
  const key = `${name} ${destination.name} ${path}`
  keys.set(target, key)
  return key
}
