import { stringify } from 'yaml'
import type { RenderResult } from './types.ts'

/** Readers compare hashes for equality only. */
const shorten = (value: unknown): unknown => (typeof value === 'string' && /^[0-9a-f]{64}$/.test(value) ? value.slice(0, 8) : value)

/** All objects. */
export function showObjects(result: RenderResult): string {
  return stringify(result.ok ? result.objects : result, (_, value: unknown) => shorten(value), { lineWidth: 0 })
}

/** By kind, the paths whose values `result` has and `base` has not; null where it is the other way round. */
export function showChanges(base: RenderResult, result: RenderResult): string {
  if (!result.ok || !base.ok) return showObjects(result)
  const before = new Map(base.objects.map((object) => [roleOf(object), flatten(object)]))
  const after = new Map(result.objects.map((object) => [roleOf(object), flatten(object)]))
  const changes: Record<string, Record<string, unknown>> = {}
  for (const role of new Set([...before.keys(), ...after.keys()])) {
    const [was, is] = [before.get(role) ?? new Map<string, unknown>(), after.get(role)]
    const changed: Record<string, unknown> = {}
    for (const [path, value] of is ?? []) if (JSON.stringify(was.get(path)) !== JSON.stringify(value)) changed[path] = value
    if (is) for (const path of was.keys()) if (!is.has(path)) changed[path] = null
    if (!is || Object.keys(changed).length > 0) changes[role] = is ? changed : { absent: true }
  }
  return stringify(
    { changes, ...(result.notes.length > 0 ? { notes: result.notes } : {}), ...(result.warnings.length > 0 ? { warnings: result.warnings } : {}) },
    { lineWidth: 0 },
  )
}

const roleOf = (object: { readonly kind: string; readonly metadata: { readonly name: string }; readonly data?: object }): string =>
  object.kind === 'ConfigMap' && object.metadata.name.endsWith('-xds-ca')
    ? 'ConfigMap xds-ca'
    : object.kind === 'Secret' && 'token' in (object.data ?? {})
      ? 'Secret admin-token'
      : object.kind

/** Leaves by path; items of a list go by their names, which are a leaf of their own: `containers: [sidecar, proxy]`. */
function flatten(value: unknown, path = '', leaves = new Map<string, unknown>()): Map<string, unknown> {
  if (typeof value !== 'object' || value === null) return leaves.set(path, shorten(value))
  if (Array.isArray(value)) {
    const names = value.map(nameOf)
    if (names.includes(undefined)) return leaves.set(path, value)
    leaves.set(path, names)
    for (const [index, item] of value.entries()) flatten(item, `${path}[${names[index]}]`, leaves)
    return leaves
  }
  const entries = Object.entries(value)
  if (entries.length === 0) leaves.set(path, {})
  for (const [key, child] of entries) flatten(child, path === '' ? key : `${path}.${key}`, leaves)
  return leaves
}

function nameOf(item: unknown): string | number | undefined {
  if (typeof item !== 'object' || item === null) return undefined
  if ('uid' in item) return undefined
  const { mountPath, port, containerPort, name } = item as { mountPath?: string; port?: number; containerPort?: number; name?: string }
  return mountPath ?? port ?? containerPort ?? name
}
