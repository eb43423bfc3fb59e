import { GATEWAY_GROUP } from '#api/names.ts'
import type { DeployGateway, DeployObject, OwnerReference } from './types.ts'

/** Kinds that are deleted when they are no longer wanted (operator.md §3.4): those that are not always made. The operator may delete no others. */
const prunedKinds: readonly string[] = ['PodDisruptionBudget', 'HorizontalPodAutoscaler']

/** The fields that are read of a live object. */
export interface LiveObject {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly ownerReferences?: readonly OwnerReference[]
  }
}

/**
 * Returns the objects of `live` to delete after `desired` was applied: owned by this Gateway, and no longer desired. Labels do not count,
 * because overlays and users may change them.
 */
export function selectPruned<T extends LiveObject>(gateway: DeployGateway, desired: readonly DeployObject[], live: readonly T[]): T[] {
  const { namespace } = gateway.metadata
  const wanted = new Set(desired.map(({ kind, metadata }) => `${kind}/${metadata.name}`))
  return live.filter(
    ({ kind, metadata }) =>
      prunedKinds.includes(kind) && metadata.namespace === namespace && isOwnedBy(metadata.ownerReferences, gateway) && !wanted.has(`${kind}/${metadata.name}`),
  )
}

/** A Gateway that was deleted and created again with the same name has another uid. */
function isOwnedBy(owners: readonly OwnerReference[] = [], { metadata }: DeployGateway): boolean {
  return owners.some(
    (owner) =>
      owner.controller === true &&
      owner.kind === 'Gateway' &&
      owner.apiVersion.startsWith(`${GATEWAY_GROUP}/`) &&
      owner.name === metadata.name &&
      owner.uid === metadata.uid,
  )
}
