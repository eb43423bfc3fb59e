import { parse } from 'yaml'
import type { LevelParameters } from './types.ts'

/** Istio's own settings: where they are, and in which entry. */
export const MESH_CONFIG = { namespace: 'istio-system', name: 'istio', entry: 'mesh' } as const

/** Whether data planes are part of the mesh and the parameters leave its trust domain open. */
export function isTrustDomainOpen({ class: ofClass, gateway }: LevelParameters): boolean {
  const meshes = [ofClass?.mesh, gateway?.mesh].filter((mesh) => mesh !== undefined)
  return meshes.length > 0 && meshes.every((mesh) => !mesh.trustDomain)
}

/** `trustDomain` of Istio's mesh settings, where they are readable and name one (operator.md §2.7). */
export function readTrustDomain(text: string | undefined): string | undefined {
  try {
    const settings: unknown = parse(text ?? '')
    const { trustDomain } = (typeof settings === 'object' && settings !== null ? settings : {}) as { trustDomain?: unknown }
    return typeof trustDomain === 'string' && trustDomain !== '' ? trustDomain : undefined
  } catch {
    return undefined
  }
}
