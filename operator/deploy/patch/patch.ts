import { conform } from './conform.ts'
import type { JsonObject } from './json.ts'
import { mergeMap } from './map.ts'
import { findShape } from './shape.ts'

/** `kind` is one of Deployment, Service, ServiceAccount, PodDisruptionBudget, HorizontalPodAutoscaler. */
export type PatchResult =
  | { readonly ok: true; readonly object: JsonObject; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly errors: readonly string[] }

/** Applies a strategic merge patch, and checks the result against the types of `kind`. Errors name the path and the fix. */
export function patchObject(kind: string, object: JsonObject, patch: JsonObject): PatchResult {
  const shape = findShape(kind)
  if (!shape) throw new Error(`${kind} is not a kind that can be patched`)
  const errors: string[] = []
  const merged = mergeMap(object, patch, shape, '', errors)
  if (errors.length > 0) return { ok: false, errors: [...new Set(errors)] }
  const findings = { errors, warnings: [] as string[] }
  const result = conform(merged, shape, '', findings)
  return findings.errors.length > 0 ? { ok: false, errors: findings.errors } : { ok: true, object: result, warnings: findings.warnings }
}
