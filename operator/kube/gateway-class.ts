import { isDeepStrictEqual } from 'node:util'
import { CONTROLLER_NAME, FIELD_MANAGER, GATEWAY_CLASS, GATEWAY_GROUP } from '#api/names.ts'
import type { Clock } from '../serve/debounce.ts'
import type { ObjectRef } from '../source/gateway-api.ts'
import type { KubeConnection } from './connection.ts'
import { objectPath } from './resources.ts'
import type { ClusterSource } from './source.ts'

const DESCRIPTION = 'Gateways that Proxy Service serves'
/** When the class is looked at again after it could not be put right. */
const RETRY_MS = 15_000

export interface GatewayClassOptions {
  readonly connection: KubeConnection
  readonly source: ClusterSource
  readonly clock: Clock
  readonly isLeader: () => boolean
  readonly parametersRef: ObjectRef | undefined
  /** Runs the work and counts it. */
  readonly measure: (work: () => Promise<void>) => Promise<void>
  readonly onError: (error: unknown) => void
}

/** Looks after GatewayClass `proxy`: `check` puts it right where this replica leads, and is repeated after a failure. */
export function keepGatewayClass({ connection, source, clock, isLeader, parametersRef, measure, onError }: GatewayClassOptions): {
  check(): void
  close(): void
} {
  let isChecking = false
  let cancelRetry = (): void => {}
  const check = (): void => {
    if (!isLeader() || !source.isSynced() || isChecking) return
    isChecking = true
    measure(() => assertGatewayClass(connection, source, parametersRef))
      .catch((error: unknown) => {
        onError(error)
        cancelRetry()
        cancelRetry = clock.after(RETRY_MS, check)
      })
      .finally(() => (isChecking = false))
  }
  return { check, close: () => cancelRetry() }
}

/**
 * Creates GatewayClass `proxy`, and restores it after a deletion or change (operator.md §4.1). Rejects if a class of that name belongs to
 * another controller, and does not change it.
 */
async function assertGatewayClass(connection: KubeConnection, source: ClusterSource, parametersRef: ObjectRef | undefined): Promise<void> {
  const collection = source.collectionOf('GatewayClass')
  if (collection === undefined) return
  const spec = { controllerName: CONTROLLER_NAME, description: DESCRIPTION, ...(parametersRef ? { parametersRef } : {}) }
  const live = source.find('GatewayClass', '', GATEWAY_CLASS)?.object as { spec: { controllerName: string } } | undefined
  if (live && isDeepStrictEqual(live.spec, spec)) return
  if (live && live.spec.controllerName !== CONTROLLER_NAME)
    throw new Error(`GatewayClass ${GATEWAY_CLASS} belongs to controller ${live.spec.controllerName}; delete it, and the operator creates it again`)
  await connection.request(
    'PATCH',
    `${objectPath(collection, '', GATEWAY_CLASS)}?${new URLSearchParams({ fieldManager: FIELD_MANAGER, force: 'true' }).toString()}`,
    {
      body: { apiVersion: `${GATEWAY_GROUP}/${collection.split('/')[3]}`, kind: 'GatewayClass', metadata: { name: GATEWAY_CLASS }, spec },
      contentType: 'application/apply-patch+yaml',
    },
  )
}
