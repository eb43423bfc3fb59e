import type { ConfigFile } from '#gen/config/types.ts'
import type { SchemaProblem } from '../validate.ts'

export type Path = SchemaProblem['path']

/** Objects of the long form, with the path of the short form that each comes from. */
export interface Expansion {
  readonly binds: readonly Expanded<'binds'>[]
  readonly backends: readonly Expanded<'backends'>[]
  readonly secrets: readonly Expanded<'secrets'>[]
  readonly policies: readonly Expanded<'policies'>[]
  readonly problems: readonly SchemaProblem[]
}

type Section = 'binds' | 'backends' | 'secrets' | 'policies'
type Item<S extends Section> = NonNullable<ConfigFile[S]>[number]

/** An object of the long form, and the path of its source. */
interface Expanded<S extends Section> {
  readonly value: Item<S>
  readonly path: Path
}
