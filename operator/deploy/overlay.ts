import { withCode } from '#api/messages/code.ts'
import type { KubernetesResourceOverlay, ProxyParametersSpec } from '#gen/v1alpha1/types.ts'
import { isList, isObject, type Json, type JsonObject } from './patch/json.ts'
import { patchObject } from './patch/patch.ts'
import type { DeployObject, LevelParameters } from './types.ts'

export type OverlaidField = 'deployment' | 'service' | 'serviceAccount' | 'podDisruptionBudget' | 'horizontalPodAutoscaler'

/** Overlays of GatewayClass and Gateway. */
export interface OverlayLevels {
  readonly class?: Pick<ProxyParametersSpec, OverlaidField>
  readonly gateway?: Pick<ProxyParametersSpec, OverlaidField>
}

/** Overlays of the objects of MCP servers. */
export const serverOverlays = ({ class: ofClass, gateway }: LevelParameters): OverlayLevels => ({
  ...(ofClass?.mcp && { class: ofClass.mcp }),
  ...(gateway?.mcp && { gateway: gateway.mcp }),
})

type OverlayResult =
  | { readonly ok: true; readonly object: DeployObject; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly message: string }

/** The overlays of one object, those of the GatewayClass first. */
export function listOverlays(parameters: OverlayLevels, field: OverlaidField): { readonly level: string; readonly overlay: KubernetesResourceOverlay }[] {
  const levels = [
    { level: 'GatewayClass', overlay: parameters.class?.[field] },
    { level: 'Gateway', overlay: parameters.gateway?.[field] },
  ]
  return levels.flatMap(({ level, overlay }) => (overlay ? [{ level, overlay }] : []))
}

/**
 * Applies both levels' overlays, one after the other: metadata key by key, spec as a strategic merge patch (operator.md §3.3).
 *
 * @param section where the overlays are in `spec`, for messages: '' or `mcp.`
 */
function applyOverlays(object: DeployObject, parameters: OverlayLevels, field: OverlaidField, section = ''): OverlayResult {
  let current = object
  const warnings: string[] = []
  for (const { level, overlay } of listOverlays(parameters, field)) {
    const where = `${section}${field} overlay of the ${level}`
    current = mergeMetadata(current, overlay)
    if (overlay.spec === undefined) continue
    if (object.kind === 'ServiceAccount') {
      warnings.push(`${where}: spec: unknown field, ignored; a ServiceAccount has no spec`)
      continue
    }
    // Custom resources are JSON, and so are the objects of cdk8s.
    const result = patchObject(object.kind, current as JsonObject, { spec: nullDeleted(overlay.spec as Json) })
    if (!result.ok) return { ok: false, message: `${where}: ${result.errors.join('; ')}` }
    current = result.object as unknown as DeployObject
    warnings.push(...result.warnings.map((warning) => `${where}: ${warning}`))
  }
  return { ok: true, object: current, warnings }
}

const kindOf: Readonly<Record<OverlaidField, string>> = {
  deployment: 'Deployment',
  service: 'Service',
  serviceAccount: 'ServiceAccount',
  podDisruptionBudget: 'PodDisruptionBudget',
  horizontalPodAutoscaler: 'HorizontalPodAutoscaler',
}

/** Overlays several objects. Collects what is ignored, and what is wrong: such an object stays as it is. */
export class Overlays {
  readonly warnings: string[] = []
  readonly mistakes: string[] = []
  readonly #levels: OverlayLevels
  readonly #section: string

  /** @param section see `applyOverlays` */
  constructor(levels: OverlayLevels, section = '') {
    this.#levels = levels
    this.#section = section
  }

  apply(object: DeployObject, field: OverlaidField): DeployObject {
    const result = applyOverlays(object, this.#levels, field, this.#section)
    if (!result.ok) {
      this.mistakes.push(result.message)
      return object
    }
    this.warnings.push(...result.warnings)
    return result.object
  }
}

/** Returns the mistakes and unknown fields of all overlays of a ProxyParameters, with their paths. */
export function checkOverlays(parameters: ProxyParametersSpec): string[] {
  const sections: readonly (readonly [section: string, overlays: OverlayLevels])[] = [
    ['', { gateway: parameters }],
    ['mcp.', serverOverlays({ gateway: parameters })],
  ]
  return sections.flatMap(([section, overlays]) =>
    (Object.entries(kindOf) as [OverlaidField, string][]).flatMap(([field, kind]) => {
      const result = applyOverlays({ apiVersion: '', kind, metadata: { name: '', namespace: '' } }, overlays, field, section)
      return (result.ok ? result.warnings : [result.message]).map((message) =>
        withCode(message.replace(/^([\w.]+) overlay of the Gateway: /, 'spec.$1.'), result.ok ? 'PX1023' : 'PX1022'),
      )
    }),
  )
}

/**
 * Replaces values `{$patch: delete}` by null, which removes the field (part 3, rule 3). kubectl leaves an empty object, which an API server
 * rejects in a probe or a volume source.
 */
function nullDeleted(value: Json): Json {
  if (isList(value)) return value.map(nullDeleted)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, isObject(child) && child['$patch'] === 'delete' ? null : nullDeleted(child)]))
}

function mergeMetadata(object: DeployObject, { metadata }: KubernetesResourceOverlay): DeployObject {
  if (!metadata) return object
  const { labels, annotations } = metadata
  return {
    ...object,
    metadata: {
      ...object.metadata,
      ...(labels ? { labels: { ...object.metadata.labels, ...labels } } : {}),
      ...(annotations ? { annotations: { ...object.metadata.annotations, ...annotations } } : {}),
    },
  }
}
