import type { LocalRef } from '../../source/gateway-api.ts'
import type { ReferenceGrant } from '../../source/objects.ts'
import type { Snapshot } from '../../source/snapshot.ts'

/** The referring object: kind and namespace. */
export interface Referrer {
  readonly group: string
  readonly kind: string
  readonly namespace: string
}

export interface Grants {
  /** Whether `from` may refer to `to` in `namespace`: always in its own namespace, else only with a ReferenceGrant there. */
  permits(from: Referrer, to: LocalRef, namespace: string): boolean
}

export function readGrants(snapshot: Snapshot): Grants {
  const isGranted = (grant: ReferenceGrant, from: Referrer, to: LocalRef): boolean =>
    grant.spec.from.some((each) => each.group === from.group && each.kind === from.kind && each.namespace === from.namespace) &&
    grant.spec.to.some((each) => each.group === to.group && each.kind === to.kind && (each.name === undefined || each.name === '' || each.name === to.name))
  return {
    permits: (from, to, namespace) =>
      from.namespace === namespace || snapshot.inNamespace('ReferenceGrant', namespace).some((grant) => isGranted(grant, from, to)),
  }
}
