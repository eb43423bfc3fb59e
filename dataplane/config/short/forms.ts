import type { ConfigFile, GatewayRef } from '#gen/config/types.ts'
import type { Path } from './expansion.ts'
import { formatPath, type SchemaProblem } from '../validate.ts'
import { expandLlm } from './llm.ts'
import { expandMcp } from './mcp.ts'

/** A file in the long form. */
export interface LongForm {
  readonly file: ConfigFile
  readonly problems: readonly SchemaProblem[]
  /** Path in the written file of a path in the long form. */
  originOf(path: Path): Path
}

/**
 * Replaces the sections `llm` and `mcp` by listeners, backends and policies behind those of the file. `written` is the file with the real names of vendors,
 * which problems name.
 */
export function expandShortForms(file: ConfigFile, gateway: GatewayRef, written: ConfigFile): LongForm {
  const { llm, mcp, ...rest } = file
  if (llm === undefined && mcp === undefined) return { file, problems: [], originOf: (path) => path }
  const hasHttpSettings = file.policies?.some(({ frontend }) => frontend?.http !== undefined) === true
  const expansions = [llm && expandLlm(llm, { gateway, hasHttpSettings, written: written.llm?.models ?? {} }), mcp && expandMcp(mcp)].filter(
    (expansion) => expansion !== undefined,
  )
  const long: ConfigFile = { ...rest }
  const origins = new Map<string, Path>()
  for (const section of ['binds', 'backends', 'secrets', 'policies'] as const) {
    const own: readonly unknown[] = file[section] ?? []
    const added = expansions.flatMap((expansion): readonly { readonly value: unknown; readonly path: Path }[] => expansion[section])
    if (added.length === 0) continue
    for (const [index, { path }] of added.entries()) origins.set(formatPath([section, own.length + index]), path)
    Object.assign(long, { [section]: [...own, ...added.map(({ value }) => value)] })
  }
  return {
    file: long,
    problems: expansions.flatMap(({ problems }) => problems),
    originOf(path) {
      const origin = origins.get(formatPath(path.slice(0, 2)))
      // A short form has one listener, whose fields it has itself.
      const isListener = path[0] === 'binds' && path[2] === 'listeners' && (path[4] === 'tls' || path[4] === 'policies')
      return origin !== undefined && isListener ? [origin[0] ?? '', ...path.slice(4)] : (origin ?? path)
    },
  }
}
