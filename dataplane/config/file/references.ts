import type { BackendRef, ConfigFile, GatewayRef } from '#gen/config/types.ts'
import type { DialRules } from '#api/address.ts'
import { describeRefusedHost } from './addresses.ts'
import type { ConfigMessage } from '../store.ts'
import type { SchemaProblem } from '../validate.ts'
import { walkDefinitions } from './walk.ts'

/** A destination of a policy or filter, such as that of a mirror, and its place in the long form. */
export interface Reference {
  readonly ref: BackendRef
  readonly path: SchemaProblem['path']
}

/**
 * Finds the references of policies and filters, and replaces the names of `backends` in them by the keys of their messages. Backends of
 * routes are not among them: their form differs, and `flattenFile` resolves them.
 *
 * @param file in the long form; changed in place
 */
export function resolveReferences(file: ConfigFile, { namespace }: GatewayRef): readonly Reference[] {
  const names = new Set(file.backends?.map(({ name }) => name))
  const references: Reference[] = []
  walkDefinitions('ConfigFile', file, (definition, at, path) => {
    if (definition !== 'BackendRef') return
    const ref = at as BackendRef
    if (ref.backend !== undefined && names.has(ref.backend)) ref.backend = `${namespace}/${ref.backend}`
    references.push({ ref, path: [...path] })
  })
  return references
}

/** References that no message of the file has the key of. */
export function findDanglingReferences(references: readonly Reference[], messages: readonly ConfigMessage[]): readonly SchemaProblem[] {
  const keys = new Set(messages.map(({ kind, message }) => `${kind} ${message.key}`))
  return references.flatMap(({ ref: { backend, service }, path }) => {
    if (backend !== undefined && !keys.has(`backend ${backend}`))
      return [{ path: [...path, 'backend'], text: `${backend} is not the name of one of backends; requests to it fail`, code: 'PX3010' as const }]
    if (service !== undefined && !keys.has(`service ${service}`))
      return [{ path: [...path, 'service'], text: `${service} is not the key of one of services; requests to it fail`, code: 'PX3010' as const }]
    return []
  })
}

/** References to addresses that the data plane does not connect to. */
export function findRefusedReferences(references: readonly Reference[], rules: DialRules): readonly SchemaProblem[] {
  return references.flatMap(({ ref: { address }, path }) => {
    const [, host = '', port = ''] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(address ?? '') ?? []
    const problem = host === '' ? undefined : describeRefusedHost(host, Number(port), rules)
    return problem === undefined ? [] : [{ path: [...path, 'address'], text: problem, code: 'PX1361' as const }]
  })
}
