import { listOverlays } from './overlay.ts'
import type { LevelParameters } from './types.ts'

/**
 * Whether a Gateway can have several data plane pods: by `replicas` of the deployment overlays, or by a HorizontalPodAutoscaler. The overlay of
 * the Gateway wins over that of its class.
 */
export function hasReplicas(parameters: LevelParameters): boolean {
  if (parameters.class?.horizontalPodAutoscaler !== undefined || parameters.gateway?.horizontalPodAutoscaler !== undefined)
    return (numberIn(parameters, 'horizontalPodAutoscaler', 'maxReplicas') ?? Infinity) > 1
  return (numberIn(parameters, 'deployment', 'replicas') ?? 1) > 1
}

function numberIn(parameters: LevelParameters, field: 'deployment' | 'horizontalPodAutoscaler', name: string): number | undefined {
  const values = listOverlays(parameters, field).map(({ overlay }) => overlay.spec?.[name])
  const value = values.findLast((each) => each !== undefined)
  return typeof value === 'number' ? value : undefined
}
