import { METRIC_PREFIX } from '#api/names.ts'
import type { ConfigSnapshot } from '../../../config/store.ts'
import type { FamilyDump } from '../../../observe/telemetry/metrics/registry.ts'

/** Metrics of MCP tools that are held, with the labels backend and server. */
export const HELD_TOOLS_FAMILIES: readonly string[] = [`${METRIC_PREFIX}mcp_tools_held`]

interface HeldTools {
  /** `<namespace>/<name>`. */
  readonly backend: string
  /** Name of the target. */
  readonly server: string
  readonly count: number
}

/**
 * Returns the targets whose tools are held now. Each thread has its own numbers: the greatest is that of the latest lists, or close to it.
 *
 * @param held `HELD_TOOLS_FAMILIES` of each thread
 */
export function findHeldTools(held: readonly (readonly FamilyDump[])[], { backends }: Pick<ConfigSnapshot, 'backends'>): readonly HeldTools[] {
  const counts = new Map<string, HeldTools>()
  for (const { series, values } of held.flat())
    for (const [index, [backend = '', server = '']] of series.entries()) {
      const key = `${backend} ${server}`
      const count = Math.max(values[index] ?? 0, counts.get(key)?.count ?? 0)
      if (count > 0 && backends.has(backend)) counts.set(key, { backend, server, count })
    }
  return [...counts.values()]
}
