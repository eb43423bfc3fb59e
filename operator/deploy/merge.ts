import type {
  EnvVar,
  Image,
  MeshSpec,
  PluginsSpec,
  ProxyLogging,
  ProxyParametersSpec,
  ResourceRequirements,
  ShutdownSpec,
  UpstreamsSpec,
} from '#gen/v1alpha1/types.ts'
import type { LevelParameters } from './types.ts'

/** Typed fields of both levels, the Gateway's over the GatewayClass's (operator.md §3.2). */
export interface MergedParameters {
  readonly image: Image
  readonly logging: ProxyLogging
  readonly rawConfig: Readonly<Record<string, unknown>>
  /** In order, each name once per level. */
  readonly env: readonly EnvVar[]
  readonly resources: ResourceRequirements
  readonly shutdown: ShutdownSpec
  /** Absent: no mesh. */
  readonly mesh?: MeshSpec
  readonly plugins: PluginsSpec
  readonly upstreams: UpstreamsSpec
}

type Quantities = Record<string, number | string>
/** As the API server answers: numbers would look changed for ever. */
const toStrings = (quantities: Quantities): Record<string, string> => Object.fromEntries(Object.entries(quantities).map(([key, value]) => [key, String(value)]))

const DEFAULT_SHUTDOWN: ShutdownSpec = { min: 10, max: 60 }
const DEFAULT_REQUESTS: Quantities = { cpu: '100m', memory: '128Mi' }

export function mergeParameters({ class: ofClass = {}, gateway = {} }: LevelParameters): MergedParameters {
  const levels: readonly ProxyParametersSpec[] = [ofClass, gateway]
  const meshes = levels.flatMap(({ mesh }) => (mesh ? [mesh] : []))
  return {
    image: mergeLeaves(
      levels.map(({ image }) => image),
      (value) => value !== undefined,
    ),
    logging: mergeLeaves(
      levels.map(({ logging }) => logging),
      Boolean,
    ),
    rawConfig: gateway.rawConfig ?? ofClass.rawConfig ?? {},
    env: mergeEnv(ofClass.env ?? [], gateway.env ?? []),
    resources: mergeResources(levels),
    shutdown: gateway.shutdown ?? ofClass.shutdown ?? DEFAULT_SHUTDOWN,
    plugins: mergeLeaves(
      levels.map(({ plugins }) => plugins),
      (value) => value !== undefined,
    ),
    upstreams: mergeLeaves(
      levels.map(({ upstreams }) => upstreams),
      (value) => value !== undefined,
    ),
    ...(meshes.length > 0 ? { mesh: mergeLeaves(meshes, Boolean) } : {}),
  }
}

/** Leaf by leaf, the last that counts. */
function mergeLeaves<T extends object>(levels: readonly (T | undefined)[], isSet: (value: unknown) => boolean): T {
  const leaves = levels.flatMap((level) => Object.entries(level ?? {}).filter(([, value]) => isSet(value)))
  return Object.fromEntries(leaves) as T
}

/** Merges by name; entries of the Gateway come last. Of equal names in one list the last counts, as in a container. */
function mergeEnv(ofClass: readonly EnvVar[], gateway: readonly EnvVar[]): EnvVar[] {
  const byName = new Map<string, EnvVar>()
  for (const variable of [...ofClass, ...gateway]) {
    byName.delete(variable.name)
    byName.set(variable.name, variable)
  }
  return [...byName.values()]
}

function mergeResources(levels: readonly ProxyParametersSpec[]): ResourceRequirements {
  const resources = levels.map((level) => level.resources)
  const limits = mergeQuantities(
    {},
    resources.map((each) => each?.limits),
  )
  const requests = mergeQuantities(
    DEFAULT_REQUESTS,
    resources.map((each) => each?.requests),
  )
  const claims = resources[1]?.claims ?? resources[0]?.claims
  return {
    ...(Object.keys(limits).length > 0 ? { limits: toStrings(limits) } : {}),
    ...(Object.keys(requests).length > 0 ? { requests: toStrings(requests) } : {}),
    ...(claims && claims.length > 0 ? { claims } : {}),
  }
}

/** Merges by key; an empty map clears all entries. */
function mergeQuantities(defaults: Quantities, levels: readonly (Quantities | undefined)[]): Quantities {
  let merged = defaults
  for (const level of levels) if (level) merged = Object.keys(level).length === 0 ? {} : { ...merged, ...level }
  return merged
}
