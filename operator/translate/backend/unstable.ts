import { findUnstable } from '#api/cel/index.ts'
import { withCode } from '#api/messages/code.ts'
import type { Backend, FieldTransformation, Policy, Route } from '#gen/config/types.ts'
import type { Message } from './unguarded.ts'

/** Fields of requests that neither the model nor a prompt cache reads. */
const OTHER_FIELDS: ReadonlySet<string> = new Set(['user', 'metadata', 'safety_identifier', 'seed', 'service_tier', 'store'])

/**
 * For each object, as `<kind> <namespace>/<name>`, the transformations of LLM requests that give another prompt for the same conversation with each request
 * (llm.md §12).
 */
export function findUnstableTransformations(messages: Iterable<Message>): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, Set<string>>()
  for (const each of messages) {
    const owner = ownerOf(each)
    if (owner === undefined) continue
    for (const { field, expression } of transformationsOf(each.message)) {
      const unstable = OTHER_FIELDS.has(field) ? [] : findUnstable(expression)
      if (unstable.length === 0) continue
      const text = `ai.transformations: ${field} uses ${unstable.join(', ')}, so that each request has another history: prompt caches miss, and signed thinking is rejected; use values that stay the same in a conversation`
      found.set(owner, (found.get(owner) ?? new Set()).add(withCode(text, 'PX1369')))
    }
  }
  return new Map([...found].map(([owner, texts]) => [owner, [...texts]]))
}

function ownerOf({ kind, message }: Message): string | undefined {
  if (kind === 'backend') return `ProxyBackend ${(message as Backend).key}`
  if (kind === 'policy') return describe((message as Policy).policy)
  return kind === 'route' ? describe((message as Route).route) : undefined
}

const describe = (owner: { readonly kind: string; readonly namespace: string; readonly name: string }): string =>
  `${owner.kind} ${owner.namespace}/${owner.name}`

/** The transformations of all `ai` sections in a message. */
function transformationsOf(value: unknown): FieldTransformation[] {
  if (Array.isArray(value)) return value.flatMap(transformationsOf)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, member]: [string, unknown]) => {
    const own = key === 'ai' && typeof member === 'object' && member !== null && 'transformations' in member ? member.transformations : []
    return [...(Array.isArray(own) ? (own as FieldTransformation[]) : []), ...transformationsOf(member)]
  })
}
