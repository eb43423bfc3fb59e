import type { Deployed } from '../provision/provision.ts'
import type { Gateway, KubeObject } from '../source/objects.ts'
import type { Snapshot } from '../source/snapshot.ts'
import { addressesOf } from '../status/addresses.ts'
import { withDeploymentFault, withRollout, withWarnings } from '../status/deployment.ts'
import { changeKind } from '../status/kind.ts'
import type { ObjectStatus } from '../model/translation.ts'

type PlaceStatuses = (statuses: readonly ObjectStatus[], snapshot: Snapshot, deployedOf: (gateway: string) => Deployed | undefined) => readonly ObjectStatus[]

/**
 * Makes a function that returns the statuses to write: those of translation and, for a Gateway, its addresses and the outcome of its deployment.
 * A Gateway whose objects were not applied yet (`deployedOf` is undefined) gets none, so that a condition does not become True and then False.
 * A status keeps its identity as long as nothing that it depends on changes: the writer compares by it.
 */
export function createStatusPlacement(): PlaceStatuses {
  const known = new WeakMap<ObjectStatus, { readonly inputs: readonly unknown[]; readonly result: ObjectStatus }>()
  return (statuses, snapshot, deployedOf) =>
    changeKind(statuses, 'Gateway', (status) => {
      const { namespace = '', name } = status
      const deployed = deployedOf(`${namespace}/${name}`)
      const gateway = snapshot.get('Gateway', namespace, name)
      if (!deployed || !gateway) return []
      const inputs = [gateway.spec, gateway.metadata, deployed.outcome, deployed.service, deployed.rollout]
      const last = known.get(status)
      if (last?.inputs.every((input, index) => input === inputs[index]) === true) return last.result
      const result = placeStatus(status, gateway, deployed)
      known.set(status, { inputs, result })
      return result
    })
}

function placeStatus(status: ObjectStatus, gateway: Gateway, { outcome, rollout, service }: Deployed): ObjectStatus {
  const addresses = addressesOf(gateway, service)
  const warned = withWarnings({ ...status, status: { ...status.status, addresses } }, outcome.warnings, gateway.metadata.generation)
  return outcome.ok ? withRollout(warned, addresses.length > 0, rollout) : withDeploymentFault(warned, outcome)
}

/** ProxyParameters of a Gateway and of its class, as far as they exist. */
export function listParameters(snapshot: Snapshot, { metadata, spec }: Gateway): KubeObject[] {
  const own = spec.infrastructure?.parametersRef
  const ofClass = snapshot.get('GatewayClass', '', spec.gatewayClassName)?.spec.parametersRef
  return [
    (own && snapshot.get('ProxyParameters', metadata.namespace, own.name)) ?? [],
    (ofClass && snapshot.get('ProxyParameters', ofClass.namespace ?? '', ofClass.name)) ?? [],
  ].flat()
}
