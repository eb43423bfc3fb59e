import { readText } from '../docs/tree.ts'

/** What the source files of one directory may import. */
export interface Entry {
  /** Directories whose values and types may be imported. */
  readonly imports?: readonly string[]
  /** Directories of which only types may be imported. */
  readonly types?: readonly string[]
  /** npm packages and `node:` modules; absent: all Node modules and no package. */
  readonly packages?: readonly string[]
  /** No clock, randomness, environment, timer or I/O; of Node only what `packages` lists. */
  readonly pure?: boolean
}

/** `docs/adr/house.json`. */
export interface Table {
  /** The rooms of `dataplane`, from the program to the ground: a file imports from its own room and from those below it only. */
  readonly rooms: readonly string[]
  /** Key: a directory, or one file, by its path in the repository. The longest key that fits a file holds for it. */
  readonly directories: Readonly<Record<string, Entry>>
  /** What tests, and code that only tests use, may import besides; by the longest key that fits. */
  readonly tests: Readonly<Record<string, readonly string[]>>
}

export const readTable = (): Table => JSON.parse(readText('docs/adr/house.json')) as Table

/** The longest of `keys` that is the path, or a directory above it. */
export function longestKey(keys: Iterable<string>, path: string): string | undefined {
  let found: string | undefined
  for (const key of keys) if ((path === key || path.startsWith(`${key}/`)) && key.length > (found?.length ?? 0)) found = key
  return found
}
