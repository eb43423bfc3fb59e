import type {
  BackendFull,
  BackendRef,
  McpTarget,
  McpTargetSelector,
  McpView,
  MCPBackend,
  ResolvedMcpGrpc,
  ResolvedMcpOpenApi,
  ResolvedMcpTargets,
} from '#gen/config/types.ts'
import { mergeBackend } from '../../../config/merge.ts'
import type { ServiceConfig } from '../../forward/service.ts'
import { isSensitiveHeader } from '../../../observe/telemetry/redact.ts'
import { issuedSecrets } from '../../../runtime/issued-secrets.ts'
import type { Destination } from '../../../net/upstream/destination.ts'
import { compileMcpAuthentication, type McpAuthentication } from '../auth/index.ts'
import { compileToolGuards, type ToolGuards } from '../guards/tool-guards.ts'
import { ToolPins } from '../pins/tool-pins.ts'
import { NameClashes } from './clashes.ts'
import { compileItemRules, type ItemRules } from './authorize.ts'
import { GrpcSource } from './grpc-source.ts'
import { ListChanges } from './list-changes.ts'
import type { Naming } from '../message/names.ts'

import { compileForeignOrigin, type IsForeignOrigin } from './origin.ts'
import { compileMatch, compileSelection, type ViewMatch, type ViewSelection } from './views.ts'
import { PortableNames } from '../tools/portable.ts'
import { ToolIndexes } from '../tools/search-index.ts'
import { compileToolView, type ToolView } from '../tools/view.ts'

type TargetProtocol = 'StreamableHTTP' | 'SSE' | 'Stdio'

/** One MCP server behind a backend. */
export interface Target {
  readonly name: string
  readonly protocol: TargetProtocol
  readonly path: string
  readonly destination: Destination
  /** The target has several possible endpoints: a session stays with the endpoint that it started on. */
  readonly isPinned: boolean
  /** Clients without sessions get one of the gateway: the server is not asked for the revision without sessions. */
  readonly hasSessionsOnly?: boolean
  /** Rules of this target only. */
  readonly rules: ItemRules | undefined
  /** Selection and changes of its tools. */
  readonly tools: ToolView | undefined
  /** Guards of arguments and results of its tools. */
  readonly guards: ToolGuards | undefined
  /** Set if the target is an HTTP API whose operations are tools. `path` is its base path. */
  readonly openapi?: OpenApiTarget | undefined
  /** Set if the target is a gRPC server whose methods are tools. */
  readonly grpc?: GrpcTarget | undefined
  /** Set if the target is a program, which runs once for each session. `destination` is not used. */
  readonly program?: Program | undefined
}

/** A program that speaks MCP over stdio (mcp.md §2.2). Its identity stays the same while command and environment do. */
export interface Program extends Pick<ServiceConfig['state'], 'log' | 'monotonicMs'> {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** An HTTP API as an MCP server (mcp.md §2.1). */
interface OpenApiTarget {
  readonly api: ResolvedMcpOpenApi
  readonly changes: ListChanges
}

/** A gRPC server as an MCP server (mcp.md §2.3). */
interface GrpcTarget {
  readonly api: ResolvedMcpGrpc
  readonly source: GrpcSource
  readonly changes: ListChanges
}

/** One version of an MCP backend's config, compiled. */
export interface McpConfig {
  /** `<namespace>/<name>`. */
  readonly key: string
  /** In the order of the config, which is also the order of merged lists. */
  readonly targets: readonly Target[]
  readonly targetOf: ReadonlyMap<string, Target>
  readonly naming: Naming
  /** The number of targets is not one, so results are merged. */
  readonly isMultiplexing: boolean
  readonly isStateful: boolean
  readonly isFailOpen: boolean
  /** Rules of the backend, from all levels. */
  readonly rules: ItemRules | undefined
  /** Names of tools for LLM APIs; undefined if names are unchanged. */
  readonly portable: PortableNames | undefined
  /** With `toolSearch`: indexes of tools; undefined if clients see all tools. */
  readonly toolIndexes: ToolIndexes | undefined
  /** Pins of tools; undefined if all tools are approved. */
  readonly pins: ToolPins | undefined
  /** Logs names that several targets offer. */
  readonly clashes: NameClashes
  /** Tools of the view; undefined if it has all. */
  readonly offersTool: ViewSelection['offersTool']
  /** Views of the backend. If there are any, requests that match none are rejected. */
  readonly views: readonly View[]
  /** The backend or one of its targets restricts items: it has rules, guards, pins, or a selection of tools. */
  readonly hasRules: boolean
  readonly isForeignOrigin: IsForeignOrigin
  /** Runs before everything else. Taken from the most specific level only. */
  readonly authentication: McpAuthentication | undefined
  /** Why all requests are rejected, for logs. */
  readonly broken: string | undefined
}

/** A named part of a backend, for some paths or hosts. */
interface View {
  readonly name: string
  readonly match: ViewMatch
  readonly config: McpConfig
}

const defaultPaths: Readonly<Record<TargetProtocol, string>> = { StreamableHTTP: '/mcp', SSE: '/sse', Stdio: '/' }
/** Contains neither `_` nor `+`, which separate the target's name from that of an item. The API server checks the same. */
const TARGET_NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/

/** Compiles one version of a backend's config. `previous` is the version before it. */
export function compileMcp(config: ServiceConfig, previous?: McpConfig): McpConfig {
  const { key, mcp } = config.backend
  const targets = (mcp?.targets ?? []).flatMap((entry) => {
    if (entry.openapi !== undefined) return [apiTarget(config, entry, entry.openapi, previous?.targetOf.get(entry.name)?.openapi)]
    if (entry.grpc !== undefined) return [grpcTarget(config, entry, entry.grpc, previous?.targetOf.get(entry.name)?.grpc)]
    if (entry.command !== undefined) return [programTarget(config, entry, entry.command, previous?.targetOf.get(entry.name)?.program)]
    return entry.static === undefined
      ? (entry.selector?.targets ?? []).map((found) => selectedTarget(config, entry, found))
      : [staticTarget(config, entry, entry.static)]
  })
  const rules = compileItemRules(sectionsOf(config), config.state)
  const base: McpConfig = {
    key,
    targets,
    targetOf: new Map(targets.map((target) => [target.name, target])),
    naming: namingOf(mcp?.prefixMode ?? 'Conditional', targets.length),
    isMultiplexing: targets.length !== 1,
    isStateful: mcp?.sessionRouting !== 'Stateless',
    isFailOpen: mcp?.failureMode === 'FailOpen',
    rules,
    portable: mcp?.toolNames === 'Portable' ? (previous?.portable ?? new PortableNames()) : undefined,
    toolIndexes: mcp?.toolSearch === 'Enabled' ? (previous?.toolIndexes ?? new ToolIndexes()) : undefined,
    pins: pinsOf(config, previous),
    clashes: previous?.clashes ?? new NameClashes(key, config.state.log),
    hasRules:
      rules !== undefined ||
      mcp?.toolPins !== undefined ||
      targets.some((target) => target.rules !== undefined || target.tools !== undefined || target.guards !== undefined),
    isForeignOrigin: compileForeignOrigin(mcp?.allowOrigins),
    authentication: authenticationOf(config),
    broken: problemOf(config, targets),
    offersTool: undefined,
    views: [],
  }
  const views = (mcp?.views ?? []).map((view): View => {
    const known = previous?.views.find(({ name }) => name === view.name)?.config
    return { name: view.name, match: compileMatch(view), config: viewOf(base, mcp?.prefixMode, view, known) }
  })
  return views.length === 0 ? base : { ...base, views }
}

/** The config of a view: as if the backend had its targets and tools only. */
function viewOf(base: McpConfig, prefixMode: MCPBackend['prefixMode'], view: McpView, previous: McpConfig | undefined): McpConfig {
  const { offersTarget, offersTool } = compileSelection(view)
  const targets = base.targets.filter(({ name }) => offersTarget(name))
  return {
    ...base,
    targets,
    targetOf: new Map(targets.map((target) => [target.name, target])),
    naming: namingOf(prefixMode ?? 'Conditional', targets.length),
    isMultiplexing: targets.length !== 1,
    // Names depend on the number of targets.
    portable: base.portable && (previous?.portable ?? new PortableNames()),
    offersTool,
    hasRules: base.hasRules || offersTool !== undefined,
  }
}

/** Pins that did not change keep what they know of the servers. */
function pinsOf({ backend, state }: ServiceConfig, previous: McpConfig | undefined): ToolPins | undefined {
  const section = backend.mcp?.toolPins
  const known = previous?.pins
  if (section !== undefined && known?.isOf(section) === true) return known
  known?.close()
  return section && new ToolPins(section, backend.key, state)
}

function namingOf(mode: NonNullable<MCPBackend['prefixMode']>, count: number): Naming {
  const isMultiplexing = count !== 1
  return {
    prefixesNames: mode === 'Always' || (mode === 'Conditional' && isMultiplexing),
    prefixesUris: mode === 'Always' || isMultiplexing,
    looksUp: mode === 'Never' && isMultiplexing,
  }
}

function sectionsOf({ sections, backend }: ServiceConfig): readonly BackendFull[] {
  return backend.policies === undefined ? sections : [...sections, backend.policies]
}

function authenticationOf(config: ServiceConfig): McpAuthentication | undefined {
  const section = sectionsOf(config).findLast(({ mcp }) => mcp?.authentication !== undefined)?.mcp?.authentication
  return section && compileMcpAuthentication(section, config.destinations, config.state)
}

/** Adds a missing leading slash. */
function pathOf(path: string | undefined, protocol: TargetProtocol): string {
  if (path === undefined || path === '') return defaultPaths[protocol]
  return path.startsWith('/') ? path : `/${path}`
}

/** The guards of the most specific level. `own` are the policies of one target, weakest first. */
function guardsOf(config: ServiceConfig, own: readonly Pick<BackendFull, 'mcp'>[]): ToolGuards | undefined {
  const section = [...sectionsOf(config), ...own].findLast(({ mcp }) => mcp?.toolGuards !== undefined)?.mcp?.toolGuards
  return section && compileToolGuards(section, config)
}

const toolsOf = ({ tools }: McpTargetSelector): ToolView | undefined => tools && compileToolView(tools)

function staticTarget(
  config: ServiceConfig,
  entry: McpTargetSelector,
  { host, port, path, protocol = 'StreamableHTTP', policies }: McpTarget,
  isGrpc = false,
): Target {
  const { name } = entry
  const { backend, outer, destinations, sectionsOf: attachedTo, state } = config
  const own = [...attachedTo(name), ...(policies === undefined ? [] : [policies])]
  const inline: BackendFull | undefined = backend.policies === undefined && policies === undefined ? undefined : { ...backend.policies, ...policies }
  return {
    name,
    protocol,
    path: pathOf(path, protocol),
    destination: destinations.forPart({ backend: backend.key, section: name, host, port, inline, outer, isTlsDefault: false, isGrpc }),
    isPinned: false,
    rules: compileItemRules(own, state),
    tools: toolsOf(entry),
    guards: guardsOf(config, own),
  }
}

/** An API is at the static host, whose policies apply, or at a Service. Its calls are not bound to an endpoint, because they need no session. */
function placeOf(config: ServiceConfig, entry: McpTargetSelector, { service = '', port = 0 }: Partial<BackendRef> = {}, isGrpc = false): Target {
  const { name, static: host } = entry
  const target =
    host === undefined
      ? selectedTarget(config, entry, { name, service, port, protocol: 'StreamableHTTP' }, isGrpc)
      : staticTarget(config, entry, { ...host, protocol: 'StreamableHTTP' }, isGrpc)
  return { ...target, isPinned: false }
}

function apiTarget(config: ServiceConfig, entry: McpTargetSelector, api: ResolvedMcpOpenApi, previous: OpenApiTarget | undefined): Target {
  return { ...placeOf(config, entry, api.backend), path: api.path, openapi: { api, changes: previous?.changes ?? new ListChanges() } }
}

function grpcTarget(config: ServiceConfig, entry: McpTargetSelector, api: ResolvedMcpGrpc, previous: GrpcTarget | undefined): Target {
  const place = placeOf(config, entry, api.backend, true)
  const changes = previous?.changes ?? new ListChanges()
  const server = JSON.stringify([api.backend, entry.static?.host, entry.static?.port])
  const { log, monotonicMs } = config.state
  const state = { log, monotonicMs, backend: config.backend.key, target: entry.name }
  const source = previous?.source.isOf(api, server) === true ? previous.source : new GrpcSource(api, server, changes, state)
  return { ...place, path: '', grpc: { api, source, changes } }
}

/** A program. Its processes go on while the command is the same. */
function programTarget(config: ServiceConfig, entry: McpTargetSelector, command: readonly string[], previous: Program | undefined): Target {
  const { log, monotonicMs } = config.state
  const inherited = entry.inheritEnv === true ? ownEnvironment() : {}
  // Those of `entry` are known: they are written into the config.
  for (const [name, value] of Object.entries(inherited)) if (isSensitiveHeader(name)) issuedSecrets.add(value)
  const program: Program = { command, env: { ...inherited, ...entry.env }, log, monotonicMs }
  const isSame = previous !== undefined && JSON.stringify([previous.command, previous.env]) === JSON.stringify([command, program.env])
  const target = staticTarget(config, entry, { host: '127.0.0.1', port: 1 })
  return { ...target, protocol: 'Stdio', path: '', program: isSame ? previous : program }
}

const ownEnvironment = (): Record<string, string> =>
  Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))

/** Notifies the sessions of a new version of the config in which tools of APIs changed. */
export function announceChanges(previous: McpConfig, { targetOf }: McpConfig): void {
  for (const { name, openapi, grpc } of previous.targets) {
    const changes = openapi?.changes ?? grpc?.changes
    if (changes === undefined) continue
    const next = targetOf.get(name)
    if ((next?.openapi?.changes ?? next?.grpc?.changes) !== changes) changes.close()
    else if (openapi?.api !== next?.openapi?.api && listOf(openapi) !== listOf(next?.openapi)) changes.announce()
    else if (grpc?.source !== next?.grpc?.source) changes.announce()
  }
}

const listOf = (target: OpenApiTarget | undefined): string =>
  JSON.stringify(target && [target.api.response === undefined, target.api.tools.map(({ definition }) => definition)])

/**
 * Policies of the Service override those of the backend, so that one of several targets can differ. A policy on the selector's entry
 * (`sectionName`) applies to all targets that the selector found.
 */
function selectedTarget(
  config: ServiceConfig,
  entry: McpTargetSelector,
  { name, service, port, path, protocol, sessionsOnly = false }: ResolvedMcpTargets['targets'][number],
  isGrpc = false,
): Target {
  const { backend, sections, sectionsOf: attachedTo, destinations, state } = config
  const weaker = mergeBackend([...sections, ...attachedTo(entry.name), ...(backend.policies === undefined ? [] : [backend.policies])])
  return {
    name,
    protocol,
    path: pathOf(path, protocol),
    destination: destinations.forServicePart(service, port, weaker, isGrpc),
    isPinned: true,
    hasSessionsOnly: sessionsOnly,
    rules: compileItemRules(attachedTo(entry.name), state),
    tools: toolsOf(entry),
    guards: guardsOf(config, attachedTo(entry.name)),
  }
}

/** A policy that cannot be enforced: all requests are rejected. */
function problemOf(config: ServiceConfig, targets: readonly Target[]): string | undefined {
  const bad = targets.find(({ name }) => !TARGET_NAME.test(name))
  if (bad !== undefined) return `MCP target name "${bad.name}" is not a DNS name: use lower-case letters, digits, - and .`
  const names = new Set(targets.map(({ name }) => name))
  if (names.size !== targets.length) return 'two MCP targets have the same name'
  // Requests are for the backend as a whole, so clients could not be challenged for a token of one target.
  const own = (config.backend.mcp?.targets ?? []).find(
    (entry) => entry.static?.policies?.mcp?.authentication !== undefined || config.sectionsOf(entry.name).some(({ mcp }) => mcp?.authentication !== undefined),
  )
  if (own !== undefined) return `mcp.authentication of target ${own.name} cannot be enforced: set it on the backend`
  return undefined
}
