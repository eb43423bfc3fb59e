import { createHash } from 'node:crypto'
import { PluginSyntaxError, stripTypes } from '#api/plugin/syntax.ts'
import type { ResolvedPluginSource } from '#gen/config/types.ts'
import { keyOf, type ConfigMap } from '../../source/objects.ts'

/** Source of a plugin as a message, and its first syntax error. */
interface PluginSource {
  readonly message: ResolvedPluginSource
  readonly problem: string | undefined
}

const known = new WeakMap<ConfigMap, Map<string, PluginSource>>()

/** Reads a key of a ConfigMap as the source of a plugin, once per object. Undefined if the ConfigMap does not have the key. */
export function readPluginSource(map: ConfigMap, key: string): PluginSource | undefined {
  const code = Object.hasOwn(map.data ?? {}, key) ? map.data?.[key] : undefined
  if (code === undefined) return undefined
  let sources = known.get(map)
  if (sources === undefined) known.set(map, (sources = new Map()))
  let source = sources.get(key)
  if (source === undefined) {
    const file = `${keyOf(map)}/${key}`
    const digest = createHash('sha256').update(code).digest('hex')
    sources.set(key, (source = { message: { code, file, digest }, problem: findSyntaxError(code, file) }))
  }
  return source
}

function findSyntaxError(code: string, file: string): string | undefined {
  try {
    stripTypes(code, file)
    return undefined
  } catch (error) {
    if (error instanceof PluginSyntaxError) return error.message
    throw error
  }
}
