import { isDeepStrictEqual } from 'node:util'
import { CONTROLLER_NAME, FIELD_MANAGER, GATEWAY_CLASS, GATEWAY_GROUP } from '#api/names.ts'
import type { ObjectRef } from '../source/gateway-api.ts'
import type { KubeConnection } from './connection.ts'
import { objectPath } from './resources.ts'
import type { ClusterSource } from './source.ts'

const DESCRIPTION = 'Gateways that Proxy Service serves'

/**
 * Makes GatewayClass `proxy`, and puts it right again when it was deleted or changed (operator.md §4.1). A class of that name that
 * belongs to another controller is left alone: rejects, and says so.
 */
export async function assertGatewayClass(connection: KubeConnection, source: ClusterSource, parametersRef: ObjectRef | undefined): Promise<void> {
  const collection = source.collectionOf('GatewayClass')
  if (collection === undefined) return
  const spec = { controllerName: CONTROLLER_NAME, description: DESCRIPTION, ...(parametersRef ? { parametersRef } : {}) }
  const live = source.find('GatewayClass', '', GATEWAY_CLASS)?.object as { spec: { controllerName: string } } | undefined
  if (live && isDeepStrictEqual(live.spec, spec)) return
  if (live && live.spec.controllerName !== CONTROLLER_NAME)
    throw new Error(`GatewayClass ${GATEWAY_CLASS} belongs to controller ${live.spec.controllerName}; delete it to let it be made anew`)
  await connection.request(
    'PATCH',
    `${objectPath(collection, '', GATEWAY_CLASS)}?${new URLSearchParams({ fieldManager: FIELD_MANAGER, force: 'true' }).toString()}`,
    {
      body: { apiVersion: `${GATEWAY_GROUP}/${collection.split('/')[3]}`, kind: 'GatewayClass', metadata: { name: GATEWAY_CLASS }, spec },
      contentType: 'application/apply-patch+yaml',
    },
  )
}
