import { GATEWAY_NAME_LABEL, objectName } from '../deploy/metadata.ts'
import type { Outcome } from '../provision/provision.ts'
import type { Gateway } from '../source/objects.ts'
import type { Snapshot } from '../source/snapshot.ts'
import { addressesOf } from '../status/addresses.ts'
import { withDeploymentFault } from '../status/deployment.ts'
import type { ObjectStatus } from '../model/translation.ts'

/**
 * The statuses to write: those of translation and, for a Gateway, its addresses and the outcome of its deployment. A Gateway whose
 * objects were not applied yet (`outcomeOf` is undefined) gets none, so that a condition does not become True and then False.
 */
export function placeStatuses(
  statuses: readonly ObjectStatus[],
  snapshot: Snapshot,
  outcomeOf: (gateway: string) => Outcome | undefined,
): readonly ObjectStatus[] {
  return statuses.flatMap((status) => {
    if (status.kind !== 'Gateway' || status.namespace === undefined) return [status]
    const outcome = outcomeOf(`${status.namespace}/${status.name}`)
    if (!outcome) return []
    const gateway: Gateway | undefined = snapshot.get('Gateway', status.namespace, status.name)
    const placed = gateway ? withAddresses(status, gateway, snapshot) : status
    return [outcome.ok ? placed : withDeploymentFault(placed, outcome)]
  })
}

/** Addresses are known from the Service of the data planes, which is named and labelled after its Gateway (operator.md §2.1). */
function withAddresses(status: ObjectStatus, gateway: Gateway, snapshot: Snapshot): ObjectStatus {
  const name = objectName(gateway)
  const service = snapshot.get('Service', gateway.metadata.namespace, name)
  const own = service?.metadata.labels?.[GATEWAY_NAME_LABEL] === name ? service : undefined
  return { ...status, status: { ...status.status, addresses: addressesOf(gateway, own) } }
}
