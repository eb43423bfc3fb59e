import { isAddressRange } from '#api/address.ts'
import { GROUP } from '#api/names.ts'
import type { ProxyParametersSpec, UpstreamsSpec } from '#gen/v1alpha1/types.ts'
import { mergeParameters } from './merge.ts'
import { failParameters, type DeployFailure, type DeployGateway, type DeployGatewayClass, type LevelParameters } from './types.ts'

/** Finds ProxyParameters by namespace and name. */
type FindParameters = (namespace: string, name: string) => { readonly spec: ProxyParametersSpec } | undefined

const isOurs = (ref: { readonly group: string; readonly kind: string }): boolean => ref.group === GROUP && ref.kind === 'ProxyParameters'

/** Follows parametersRef of the GatewayClass and of the Gateway; neither needs a ReferenceGrant (operator.md §3.1). */
export function resolveParameters(
  gateway: DeployGateway,
  gatewayClass: DeployGatewayClass,
  find: FindParameters,
): { readonly ok: true; readonly parameters: LevelParameters } | DeployFailure {
  const className = gatewayClass.metadata.name
  const { namespace } = gateway.metadata
  const gatewayKey = `${namespace}/${gateway.metadata.name}`
  let parameters: LevelParameters = {}

  const ref = gatewayClass.spec.parametersRef
  if (ref) {
    if (!isOurs(ref)) return failParameters(`GatewayClass ${className} references parameters of a type other than ProxyParameters: ${ref.name}`, 'PX1020')
    if (!ref.namespace) return failParameters(`parametersRef of GatewayClass ${className} has no namespace; name that of ProxyParameters ${ref.name}`, 'PX1020')
    const found = find(ref.namespace, ref.name)
    if (!found) return failParameters(`for GatewayClass ${className}, ProxyParameters ${ref.namespace}/${ref.name} not found`, 'PX1020')
    parameters = { class: found.spec }
  }

  const own = gateway.spec.infrastructure?.parametersRef
  if (own) {
    if (!isOurs(own)) {
      return failParameters(`infrastructure.parametersRef on Gateway ${gatewayKey} references unsupported type: group=${own.group} kind=${own.kind}`, 'PX1020')
    }
    const found = find(namespace, own.name)
    if (!found) return failParameters(`ProxyParameters ${namespace}/${own.name} not found for Gateway ${gatewayKey}`, 'PX1020')
    parameters = { ...parameters, gateway: found.spec }
  }
  return { ok: true, parameters }
}

/** Registries and repositories of images that plugins may come from. The Gateway's list replaces that of its class. */
export function permittedPluginImages({ class: ofClass = {}, gateway = {} }: LevelParameters): readonly string[] {
  return gateway.plugins?.images ?? ofClass.plugins?.images ?? []
}

/**
 * Parameters of a Gateway for MCP servers of a namespace: those of the Gateway itself hold in its own namespace only, because they can change the pods of servers at will.
 */
export function parametersFor(gateway: string, parameters: LevelParameters, namespace: string): LevelParameters {
  const { class: ofClass } = parameters
  return gateway.startsWith(`${namespace}/`) ? parameters : ofClass === undefined ? {} : { class: ofClass }
}

/** Registries and repositories of images that MCP servers may run. The Gateway's list replaces that of its class. */
export function permittedServerImages({ class: ofClass = {}, gateway = {} }: LevelParameters): readonly string[] {
  return gateway.mcp?.images ?? ofClass.mcp?.images ?? []
}

/** Whether plugins with isolation InProcess may run: `plugins.inProcess`, else the same field of rawConfig. The Gateway's value overrides that of its class. */
export function permitsInProcess({ class: ofClass = {}, gateway = {} }: LevelParameters): boolean {
  const raw = (gateway.rawConfig ?? ofClass.rawConfig) as
    | { readonly config?: { readonly plugins?: { readonly inProcess?: unknown } | null } | null }
    | undefined
  return (gateway.plugins?.inProcess ?? ofClass.plugins?.inProcess ?? raw?.config?.plugins?.inProcess) === true
}

/** Destinations that the data plane of a Gateway permits: the typed fields over those of rawConfig, as they are rendered. */
export function permittedUpstreams(parameters: LevelParameters): Required<UpstreamsSpec> {
  const { rawConfig, upstreams } = mergeParameters(parameters)
  const raw = (rawConfig as { readonly config?: { readonly upstreams?: Partial<Record<keyof UpstreamsSpec, unknown>> | null } | null }).config?.upstreams
  const textsOf = (list: unknown): string[] => (Array.isArray(list) ? list.filter((text) => typeof text === 'string') : [])
  return {
    addresses: textsOf(upstreams.addresses ?? raw?.addresses).filter(isAddressRange),
    identityHosts: textsOf(upstreams.identityHosts ?? raw?.identityHosts),
  }
}
