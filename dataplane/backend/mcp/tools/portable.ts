import { createHash } from 'node:crypto'
import type { Addressed } from '../message/names.ts'

/** Names that all LLM APIs accept. */
const PORTABLE = /^[a-zA-Z0-9_-]{1,64}$/
/** Names that end like a digest. */
const DIGESTED = /^[a-zA-Z0-9_-]{0,55}_[0-9a-f]{8}$/
const MAX_STEM = 55

/**
 * A name of at most 64 letters, digits, `_` and `-` (mcp.md §4.6). It depends on nothing but the name, so it is the same in all replicas and
 * does not change with other tools.
 */
export function portableName(name: string): string {
  if (PORTABLE.test(name)) return name
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 8)
  return `${name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, MAX_STEM)}_${digest}`
}

const MAX_KNOWN = 50_000

/**
 * Names with a digest that lists contained, and their tools. The tool follows from the name alone, so entries are valid for all users and
 * sessions. Whether a user may call it is checked at each call.
 */
export class PortableNames {
  /** `null` if two tools have the name. */
  readonly #known = new Map<string, Addressed | null>()

  /** The name for clients of a tool with the name `full`, which is remembered if it differs. */
  nameOf(full: string, tool: Addressed): string {
    const name = portableName(full)
    if (name === full) return name
    const known = this.#known.get(name)
    if (known === undefined) {
      if (this.#known.size >= MAX_KNOWN) this.#known.clear()
      this.#known.set(name, tool)
    } else if (known !== null && (known.target !== tool.target || known.name !== tool.name)) this.#known.set(name, null)
    return name
  }

  /** The tool of a name in a list; `null` if there are two, undefined if none is known. */
  find(name: string): Addressed | null | undefined {
    return this.#known.get(name)
  }

  /** Whether the name may be one with a digest, so that lists have to be read if it is not known. */
  mayHaveDigest(name: string): boolean {
    return DIGESTED.test(name)
  }
}
