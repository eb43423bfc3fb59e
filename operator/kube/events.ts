import type { Clock } from '../serve/debounce.ts'
import type { Gateway } from '../source/objects.ts'
import type { KubeConnection } from './connection.ts'

/** Minimum time between two Events with the same message. */
const QUIET_MS = 10 * 60_000
const MAX_MESSAGE = 1024

/** Returns a function that records a Warning Event for a Gateway. It rejects if the API server rejects the Event. */
export function createGatewayEvents(
  connection: KubeConnection,
  clock: Clock,
  now: () => Date,
): (gateway: Gateway, reason: string, message: string) => Promise<void> {
  const recorded = new Map<string, number>()
  return async (gateway, reason, message) => {
    const { namespace, name, uid } = gateway.metadata
    const key = `${namespace}/${name} ${reason} ${message}`
    for (const [each, at] of recorded) if (clock.now() - at > QUIET_MS) recorded.delete(each)
    if (recorded.has(key)) return
    recorded.set(key, clock.now())
    const time = `${now().toISOString().slice(0, 19)}Z`
    await connection.request('POST', `/api/v1/namespaces/${namespace}/events`, {
      body: {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { namespace, generateName: `${name.slice(0, 200)}-` },
        involvedObject: { apiVersion: gateway.apiVersion, kind: 'Gateway', namespace, name, ...(uid === undefined ? {} : { uid }) },
        type: 'Warning',
        reason,
        message: message.slice(0, MAX_MESSAGE),
        source: { component: 'proxy-operator' },
        firstTimestamp: time,
        lastTimestamp: time,
        count: 1,
      },
    })
  }
}
