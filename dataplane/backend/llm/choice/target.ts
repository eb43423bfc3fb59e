import { createHash } from 'node:crypto'
import type { BackendFull, NamedLLMProvider } from '#gen/config/types.ts'
import type { OnEviction } from '../../../net/destination/destinations.ts'
import { mergeBackend } from '../../../config/merge.ts'
import type { ServiceConfig } from '../../forward/service.ts'
import type { Destination } from '../../../net/upstream/destination.ts'
import { endEviction, newProviderState, type ProviderState } from './candidates.ts'
import { compileGuards, type PromptGuards } from '../guards/index.ts'
import { createProvider } from '../providers/index.ts'
import type { Provider } from '../providers/types.ts'
import { compileSettings, mergeAi, type LlmSettings } from '../settings/settings.ts'

/** One provider of a backend, with everything that its requests need. */
export interface LlmTarget {
  readonly name: string
  readonly provider: Provider
  readonly destination: Destination
  readonly settings: LlmSettings
  readonly guards: PromptGuards | undefined
  /** Replaces path and query of every request. */
  readonly path: string | undefined
  readonly state: ProviderState
  /** Differs between configurations of provider, guards and transformations; part of the keys of cached responses. */
  readonly cacheVersion: string | undefined
}

/** Name of a provider that is not in a group (part 2: `sectionName: backend`). */
const SINGLE_PROVIDER_NAME = 'backend'
const HTTPS_PORT = 443

/** The states of the providers of one backend, by provider name. */
export interface ProviderStates {
  readonly byName: Map<string, ProviderState>
  readonly onEviction: OnEviction | undefined
  /** The states are for copies of requests: workers do not share them, and reports do not show them. */
  readonly isCopy?: boolean
}

/** Compiles the groups of a backend, highest priority first. Skips providers of unknown kind. Removes states of providers that are not configured any more. */
export function compileTargets(config: ServiceConfig, states: ProviderStates): LlmTarget[][] {
  const { provider, groups } = config.backend.ai ?? {}
  const named: readonly (readonly NamedLLMProvider[])[] =
    provider === undefined ? (groups ?? []).map((group) => group.providers) : [[{ ...provider, name: SINGLE_PROVIDER_NAME }]]
  const targets = named.map((group) => group.flatMap((one) => compileTarget(one, config, states) ?? []))
  const names = new Set(targets.flat().map(({ name }) => name))
  for (const [name, state] of states.byName) {
    if (names.has(name)) continue
    states.byName.delete(name)
    endEviction(state)
  }
  return targets
}

/** Servers that implement the API of OpenAI, as the only provider of a backend: a Service, an InferencePool or an address. */
export function compileServerTarget(config: ServiceConfig, name: string, destination: Destination, states: ProviderStates): LlmTarget[] {
  const provider = createProvider({ providerA: {} })
  if (provider === undefined) return []
  const settings = compileSettings(mergeAi(config.sections))
  const guards = compileGuards(settings.section.promptGuard, config)
  const state = stateOf(config, states, name, name)
  return [{ name, provider, destination, settings, guards, path: undefined, state, cacheVersion: settings.cache && digest([name, settings.section]) }]
}

function stateOf(service: ServiceConfig, { byName, onEviction, isCopy }: ProviderStates, key: string, name: string): ProviderState {
  let state = byName.get(name)
  if (state === undefined) {
    const shared = isCopy === true ? undefined : service.state.shared?.health.open(`provider ${key} ${name}`)
    byName.set(name, (state = newProviderState((event) => onEviction?.(key, { ...event, endpoint: name }), shared)))
  }
  return state
}

const digest = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('base64')

function compileTarget(config: NamedLLMProvider, service: ServiceConfig, states: ProviderStates): LlmTarget | undefined {
  const { name, host, port, path, policies } = config
  const provider = createProvider(config)
  if (provider === undefined) return undefined
  const { backend, outer, destinations } = service
  const inline: BackendFull[] = [backend.policies, policies].filter((section) => section !== undefined)
  const isOwnHost = host === undefined
  const destination = destinations.forPart({
    backend: backend.key,
    section: name,
    host: host ?? provider.host,
    port: port ?? (isOwnHost ? provider.port : undefined) ?? HTTPS_PORT,
    inline: mergeBackend(inline),
    // The credentials of the process have the lowest precedence.
    outer: isOwnHost && provider.defaultAuth !== undefined ? { auth: provider.defaultAuth, ...outer } : outer,
    isTlsDefault: provider.isTls ?? isOwnHost,
  })
  const settings = compileSettings(mergeAi([...service.sections, ...service.sectionsOf(name), ...inline]))
  const state = stateOf(service, states, backend.key, name)
  if (states.isCopy !== true) destination.measured = state
  state.isDown = destination.settings.health?.active && (() => destination.isDown)
  return {
    name,
    provider,
    destination,
    settings,
    guards: compileGuards(settings.section.promptGuard, service),
    path,
    state,
    cacheVersion: settings.cache && digest([backend.key, config, settings.section]),
  }
}
