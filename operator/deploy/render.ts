import { withCode } from '#api/messages/code.ts'
import { chooseAddress } from './address.ts'
import { synthesize, type Parts } from './chart.ts'
import { renderConfig } from './config.ts'
import { autoscalerOf, budgetOf } from './dependents.ts'
import { sha256Hex } from './hash.ts'
import { formatImage } from './image.ts'
import { chooseKeys, type GatewayKey } from './keys.ts'
import { mergeParameters } from './merge.ts'
import { describeMetadata, xdsCaName } from './metadata.ts'
import { listOverlays, Overlays, type OverlaidField } from './overlay.ts'
import { listPorts } from './ports.ts'
import { failParameters, type DeployFailure, type DeployInput, type DeployObject, type RenderResult } from './types.ts'
import { readXdsCa } from './xds-ca.ts'

/** Every object of a Gateway, in the order to apply: typed parameters, then overlays, each of the GatewayClass first (part 3, merge order). */
export function renderGateway(input: DeployInput): RenderResult {
  const { ports, notes } = listPorts(input)
  const parts = collectParts(input, ports)
  if ('ok' in parts) return parts
  if (ports.length === 0) {
    return {
      ok: false,
      condition: 'Programmed',
      reason: 'Invalid',
      message: withCode(`no listener has a usable port${notes.length > 0 ? `: ${notes.join('; ')}` : ''}`, 'PX1021'),
    }
  }

  const base = synthesize(parts)
  const overlays = new Overlays(input.parameters)
  const serviceAccount = overlays.apply(base.serviceAccount, 'serviceAccount')
  const service = overlays.apply(base.service, 'service')
  const deployment = overlays.apply(base.deployment, 'deployment')
  const isAsked = (field: OverlaidField): boolean => listOverlays(input.parameters, field).length > 0
  const budget = isAsked('podDisruptionBudget') ? [overlays.apply(budgetOf(deployment), 'podDisruptionBudget')] : []
  const autoscaler = isAsked('horizontalPodAutoscaler') ? [overlays.apply(autoscalerOf(deployment), 'horizontalPodAutoscaler')] : []
  const { warnings, mistakes } = overlays
  if (mistakes.length > 0) return failParameters(mistakes.join('; '), 'PX1022')

  const rolled = annotatePod(deployment, parts.pod.keys)
  const { configMap, xdsCa, secrets } = base
  const objects = [serviceAccount, configMap, ...(xdsCa ? [xdsCa] : []), service, rolled, ...budget, ...autoscaler, ...secrets]
  return { ok: true, objects, notes, warnings }
}

/** Takes every decision that may fail before an object is made. */
function collectParts(input: DeployInput, ports: readonly number[]): Parts | DeployFailure {
  const { gateway, settings } = input
  const address = chooseAddress(gateway)
  if (!address.ok) return address
  const parameters = mergeParameters(input.parameters)
  const image = formatImage(parameters.image, settings.image)
  if (typeof image !== 'string') return image

  const ca = settings.xds.isTls ? readXdsCa(input.xdsSecret) : undefined
  if (ca && !ca.ok) return ca
  const keys = chooseKeys(input, new Set(parameters.env.map(({ name }) => name)))
  if ('ok' in keys) return keys

  const config = renderConfig(parameters.rawConfig, parameters.logging, parameters.plugins, parameters.upstreams)
  const checksums = { 'checksum/config': sha256Hex(config), ...(ca ? { 'checksum/xds-ca': sha256Hex(ca.pem) } : {}) }
  return {
    metadata: describeMetadata(input),
    parameters,
    settings,
    pod: { image, keys, checksums, ...(ca ? { xdsCa: xdsCaName(gateway) } : {}) },
    ports,
    config,
    ...(address.ip === undefined ? {} : { ip: address.ip }),
    ...(ca ? { ca: ca.pem } : {}),
  }
}

interface Workload {
  readonly template?: { readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> } }
}

/** Applied after overlays, because a new key must always roll the pods. */
function annotatePod(deployment: DeployObject, keys: readonly GatewayKey[]): DeployObject {
  if (keys.length === 0) return deployment
  const checksums = Object.fromEntries(keys.map(({ name, value }) => [`checksum/${name}`, sha256Hex(value)]))
  const spec = (deployment['spec'] ?? {}) as Workload
  const metadata = { ...spec.template?.metadata, annotations: { ...spec.template?.metadata?.annotations, ...checksums } }
  return { ...deployment, spec: { ...spec, template: { ...spec.template, metadata } } }
}
