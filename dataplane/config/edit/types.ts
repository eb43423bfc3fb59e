import type { ConfigFileOptions } from '../file/problem.ts'
import type { DiffLine } from './diff.ts'
import type { EditSection } from './fields.ts'
import type { Path } from './text.ts'

/** A change of an API key. A created or rotated key is stored as the digest of the key. */
export interface KeyChange {
  readonly key: {
    /** Index of the entry of `secrets`. */
    readonly secret: number
    readonly name: string
    readonly action: 'create' | 'rotate' | 'revoke'
    readonly keyHash?: string | undefined
    readonly expires?: string | undefined
    readonly metadata?: Readonly<Record<string, unknown>> | undefined
  }
}

/** A change of a field: its YAML; null removes it. */
interface FieldChange {
  readonly path: Path
  readonly text: string | null
}

export type EditChange = FieldChange | KeyChange

/** A field that may be changed, as it is written, without credentials; null: the file does not have it. */
export interface FieldText {
  readonly section: EditSection
  readonly path: Path
  readonly text: string | null
}

/** The API keys of a Secret of the file. */
export interface KeyList {
  readonly secret: number
  readonly name: string
  readonly entries: readonly {
    readonly name: string
    readonly state: 'valid' | 'expired' | 'invalid'
    readonly expires: string | null
    readonly metadata: Readonly<Record<string, unknown>>
  }[]
}

/** Input of the program `editor.ts`. */
export interface EditorInput {
  readonly path: string
  readonly options: ConfigFileOptions
  /** Undefined: what the file has. */
  readonly changes?: readonly EditChange[]
}

/** Output of the program `editor.ts`. */
export interface EditorOutput {
  /** Digest of the file that was read. */
  readonly revision: string
  readonly fields?: readonly FieldText[]
  readonly keys?: readonly KeyList[]
  /** The changed file; undefined if a change cannot be made. Holds credentials. */
  readonly text?: string
  /** Without credentials. */
  readonly diff?: readonly DiffLine[]
  /** Why the changed file, or a change, is invalid. */
  readonly problems: readonly string[]
  /** Values that cannot work, which the file did not have before. */
  readonly warnings: readonly string[]
}
