import { compareAge } from '../../source/snapshot.ts'
import type { Lookup } from '../common/dependencies.ts'
import type { PolicyState } from './proxy-policy.ts'
import type { ResolvedTarget } from './policy-targets.ts'

/** Fields that merge by part: each part is won or lost alone (traffic.md §4). */
const partwise = new Set(['traffic.rateLimit', 'traffic.headerModifiers', 'backend.ai', 'backend.mcp'])
/** Fields whose rules are taken together: none is ever lost. */
const united = new Set(['traffic.authorization', 'traffic.budgets', 'frontend.networkAuthorization', 'backend.mcp.authorization'])

/** Fields of a policy that merge as a whole. PreRouting and PostRouting never meet. */
function fieldsOf({ sections }: PolicyState): string[] {
  return sections.flatMap(({ section, resolved }) =>
    Object.entries(resolved.body).flatMap(([field, value]) => {
      if (field === 'phase') return []
      const name = `${section}.${field}`
      const phase = 'phase' in resolved.body && resolved.body.phase === 'PreRouting' ? ' (PreRouting)' : ''
      return partwise.has(name) ? Object.keys(value as object).map((part) => `${name}.${part}${phase}`) : [`${name}${phase}`]
    }),
  )
}

/** The policies of each target: `<kind>/<namespace>/<name>` -> policies, the strongest (oldest) first. */
export type PolicyIndex = Lookup<readonly { readonly policy: PolicyState; readonly target: ResolvedTarget }[]>

export function indexPolicies(policies: readonly PolicyState[]): ReadonlyMap<string, readonly { policy: PolicyState; target: ResolvedTarget }[]> {
  const byAge = policies.toSorted((a, b) => compareAge(a.policy, b.policy))
  return Map.groupBy(
    byAge.flatMap((policy) => policy.targets.map((target) => ({ policy, target }))),
    ({ target }) => target.node,
  )
}

/** Where several policies set one field on one target the oldest wins (traffic.md D4); the others' status says so. */
export function findOverrides(index: ReturnType<typeof indexPolicies>): void {
  for (const entries of index.values()) {
    const owners = new Map<string, PolicyState>()
    for (const { policy, target } of entries) {
      const part = target.target.section ?? target.target.port ?? ''
      const standing = { losses: [] as string[], isUsed: false }
      policy.standings.set(target, standing)
      for (const field of fieldsOf(policy)) {
        const id = `${part}\u0000${field}`
        const owner = owners.get(id)
        if (owner && owner !== policy && !united.has(field.replace(' (PreRouting)', '')))
          standing.losses.push(`${field} of ${target.node.replace('/', ' ')} is set by ${owner.key}`)
        else {
          owners.set(id, policy)
          standing.isUsed = true
        }
      }
    }
  }
}
