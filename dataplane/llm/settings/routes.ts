import type { BackendAI, RouteType } from '#gen/config/types.ts'
import { pathOf } from '../../http/message.ts'

type Routes = NonNullable<BackendAI['routes']>

/** Returns a function from request target to route type. The longest matching path suffix wins; `*` matches any path (llm.md §3). */
export function createRouteTable(routes: Routes | undefined): (target: string) => RouteType {
  const entries = Object.entries(routes ?? {})
    .filter(([suffix]) => suffix !== '*')
    .toSorted(([a], [b]) => b.length - a.length)
  const fallback = routes?.['*'] ?? 'Completions'
  return (target) => {
    if (entries.length === 0) return fallback
    const path = pathOf(target)
    return entries.find(([suffix]) => path.endsWith(suffix))?.[1] ?? fallback
  }
}
