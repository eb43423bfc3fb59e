import { MCP_PORT } from '#api/config/short-form-ports.ts'
import { dirname, resolve } from 'node:path'
import type { ConfigFile, FileBind, FileRoute, FileTls, GatewayRef, ProcessConfig, ShortLLM, ShortMCP } from '#gen/config/types.ts'
import { ownHeaders } from '../../http/own-headers.ts'
import { readListen, type Place } from './listen.ts'
import type { Expansion, Path } from './expansion.ts'
import { formatPath, type SchemaProblem } from '../validate.ts'
import { expandGuardrails, expandKeys } from './access.ts'
import { expandLlm } from './llm.ts'
import { expandMcp, type ReadOpenApi } from './mcp.ts'

/** A file in the long form. */
export interface LongForm {
  readonly file: ConfigFile
  readonly problems: readonly SchemaProblem[]
  /** Values that cannot work, although the file is valid. */
  readonly warnings: readonly SchemaProblem[]
  /** Path in the written file of a path in the long form. */
  originOf(path: Path): Path
}

export interface ShortFormOptions {
  readonly gateway: GatewayRef
  /** The file with the real names of vendors, which problems name. */
  readonly written: ConfigFile
  /** Path of the file. */
  readonly path: string
  readonly readOpenApi: ReadOpenApi
}

/** Paths of the MCP servers on a port that they share with models: the endpoint, and the documents of its authorization. */
const mcpPaths = ['/mcp', '/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-authorization-server/mcp']

/** Replaces the short forms by listeners, backends, secrets and policies behind those of the file. */
export function expandShortForms(file: ConfigFile, { gateway, written, path, readOpenApi }: ShortFormOptions): LongForm {
  const { llm, mcp, models, keys, guardrails, listen, https, log, ledger, ...rest } = file
  if ([llm, mcp, models, keys, guardrails, listen, https, log, ledger].every((section) => section === undefined))
    return { file, problems: [], warnings: [], originOf: (at) => at }
  const problems: SchemaProblem[] = []
  const report = (at: Path, text: string): void => void problems.push({ path: at, text, code: 'PX3008' })
  if (models !== undefined && llm !== undefined) report(['models'], 'is not used with llm; write the models as llm.models, or remove llm')
  const section = llm ?? (models && { models })
  for (const [field, value] of Object.entries({ listen, https }))
    if (value !== undefined && section === undefined && mcp === undefined) report([field], 'is that of models and mcp, which the file does not have; use binds')
  if (guardrails !== undefined && section === undefined)
    report(['guardrails'], 'are those of models, which the file does not have; use policies.mcp.toolGuards of a server')
  const place = listen === undefined ? undefined : readListen({ listen }, (field, text) => report([field], text))
  const isShared = place !== undefined && section !== undefined && mcp !== undefined && !hasPlace(section) && !hasPlace(mcp)
  if (isShared) {
    const fix = 'applies to the port, which models and mcp share because of listen'
    if (llm?.policies !== undefined) report(['llm', 'policies'], `${fix}; give mcp a listen of its own`)
    if (llm?.tls !== undefined) report(['llm', 'tls'], `${fix}; use https`)
    if (mcp.tls !== undefined) report(['mcp', 'tls'], `${fix}; use https`)
    if (mcp.policies?.phase === 'PreRouting') report(['mcp', 'policies', 'phase'], `${fix}; give mcp a listen of its own`)
  }
  const hasHttpSettings = file.policies?.some(({ frontend }) => frontend?.http !== undefined) === true
  const at = llm === undefined ? ['models'] : ['llm', 'models']
  const [llmPart, mcpPart] = [
    section &&
      expandLlm(withDefaults(section, place, https), {
        gateway,
        hasHttpSettings,
        written: (llm === undefined ? written.models : written.llm?.models) ?? {},
        at,
      }),
    mcp && expandMcp(withDefaults(mcp, place, https), { readOpenApi, keys: new Set(Object.keys(keys ?? {})) }),
  ]
  const access = [keys && expandKeys(keys, gateway), guardrails && expandGuardrails(guardrails, gateway)].filter((part) => part !== undefined)
  const binds = isShared && llmPart && mcpPart ? [joinBinds(llmPart, mcpPart)] : [...placed(llmPart, section, place), ...placed(mcpPart, mcp, place)]
  const parts = [llmPart, mcpPart].filter((part) => part !== undefined)
  const added = {
    binds,
    backends: parts.flatMap(({ backends }) => backends),
    secrets: [...parts, ...access].flatMap(({ secrets }) => secrets),
    policies: [...parts, ...access].flatMap(({ policies }) => policies),
  }
  const config = withSettings(rest.config, { log, ledger }, path, report)
  const long: ConfigFile = { ...rest, ...(config && { config }) }
  const origins = new Map<string, Path>()
  for (const name of ['binds', 'backends', 'secrets', 'policies'] as const) {
    const own: readonly unknown[] = file[name] ?? []
    if (added[name].length === 0) continue
    for (const [index, { path: origin }] of added[name].entries()) origins.set(formatPath([name, own.length + index]), origin)
    Object.assign(long, { [name]: [...own, ...added[name].map(({ value }) => value)] })
  }
  return {
    file: long,
    problems: [...problems, ...[...parts, ...access].flatMap((part) => part.problems)],
    warnings: access.flatMap(({ warnings }) => warnings),
    originOf: (longPath) => originOf(longPath, origins, file),
  }
}

const hasPlace = ({ listen, port, addresses }: ShortLLM | ShortMCP): boolean => [listen, port, addresses].some((field) => field !== undefined)

/** A section with the address and the certificate of the file, unless it has its own. */
function withDefaults<S extends ShortLLM | ShortMCP>(section: S, place: Place | undefined, tls: FileTls | undefined): S {
  return { ...(!hasPlace(section) && place), ...(tls && { tls }), ...section }
}

/** The binds of a section, whose place is the field that says where they listen. */
function placed(part: Expansion | undefined, section: ShortLLM | ShortMCP | undefined, place: Place | undefined): Expansion['binds'] {
  const isOfFile = place !== undefined && section !== undefined && !hasPlace(section)
  return (part?.binds ?? []).map(({ path, value }) => ({
    path: isOfFile ? ['listen'] : section?.listen === undefined ? path : [path[0] ?? '', 'listen'],
    value,
  }))
}

/** The listener of the models, with the MCP servers at a path of it. */
function joinBinds(llm: Expansion, mcp: Expansion): Expansion['binds'][number] {
  const [bind] = llm.binds
  const [listener] = bind?.value.listeners ?? []
  const [other] = mcp.binds[0]?.value.listeners ?? []
  const toShared = (route: FileRoute): FileRoute => ({
    ...route,
    matches: mcpPaths.map((value) => ({ path: { type: 'PathPrefix', value } })),
    filters: { requestHeaders: [{ remove: [ownHeaders.model] }] },
    ...(other?.policies && { policies: other.policies }),
  })
  const value: FileBind = {
    ...bind?.value,
    port: bind?.value.port ?? MCP_PORT,
    listeners: [{ ...listener, routes: [...(other?.routes ?? []).map(toShared), ...(listener?.routes ?? [])] }],
  }
  return { path: ['listen'], value }
}

/** Settings of the process, with those that are written at the top of the file. */
function withSettings(
  config: ProcessConfig | undefined,
  { log, ledger }: { readonly log: ConfigFile['log'] | undefined; readonly ledger: string | undefined },
  path: string,
  report: (at: Path, text: string) => void,
): ProcessConfig | undefined {
  if (log !== undefined && config?.logging?.format !== undefined) report(['log'], 'is not used with config.logging.format; remove one of them')
  if (ledger !== undefined && config?.ledger !== undefined) report(['ledger'], 'is not used with config.ledger; remove one of them')
  if (log === undefined && ledger === undefined) return config
  return {
    ...config,
    ...(log !== undefined && { logging: { ...config?.logging, format: log } }),
    ...(ledger !== undefined && { ledger: { sqlite: { path: resolve(dirname(path), ledger) } } }),
  }
}

function originOf(path: Path, origins: ReadonlyMap<string, Path>, { https }: ConfigFile): Path {
  const origin = origins.get(formatPath(path.slice(0, 2)))
  if (origin === undefined) return path
  const [section, , , , field] = path
  // A short form has one listener, whose fields it has itself.
  if (section === 'binds' && path[2] === 'listeners') {
    if (field === 'tls') return https === undefined ? [origin[0] ?? '', ...path.slice(4)] : ['https', ...path.slice(5)]
    if (field === 'policies') return [origin[0] ?? '', ...path.slice(4)]
  }
  // The policies of a model are written on it.
  if (section === 'backends' && path[2] === 'policies') return [...origin, ...path.slice(2)]
  return origin
}
