import { CONTROLLER_NAME } from '#api/names.ts'
import type { Clock } from '../serve/debounce.ts'
import type { KubeObject } from '../source/objects.ts'
import { ApiError, type KubeConnection } from './connection.ts'

/** An Event about an object. */
export interface RecordedEvent {
  readonly object: Pick<KubeObject, 'apiVersion' | 'kind' | 'metadata'>
  readonly type: 'Normal' | 'Warning'
  /** The reason of the condition, in UpperCamelCase. */
  readonly reason: string
  /** Cut at 1024 characters. */
  readonly message: string
}

export interface EventRecorderOptions {
  readonly connection: KubeConnection
  readonly clock: Clock
  /** Wall clock, for the times of Events. */
  readonly now: () => Date
  /** The API server rejected an Event, or events were dropped. */
  readonly onError: (error: unknown) => void
}

export interface EventRecorder {
  /** Sends an Event in the background. A repeated one increases the count of the stored Event. */
  record(event: RecordedEvent): void
  /** Events that wait to be sent. */
  pending(): number
  close(): void
}

const MAX_MESSAGE = 1024
/** A repeated Event is counted on the stored one within this time; the API server keeps Events for an hour. */
const REPEAT_MS = 10 * 60_000
const MAX_STORED = 4096
/** Events that may wait; further ones are dropped. */
const MAX_PENDING = 1000
/** Per object, as in client-go: a burst, then one Event in five minutes. */
const BURST = 25
const REFILL_MS = 5 * 60_000

interface Stored {
  readonly path: string
  count: number
  at: number
}

interface Bucket {
  tokens: number
  at: number
}

/**
 * Records Events of core/v1, one at a time. Aggregates equal ones by their count, limits the rate of each object and bounds the number of
 * waiting Events, so that neither a flapping object nor thousands of broken routes flood the API server.
 */
export function createEventRecorder({ connection, clock, now, onError }: EventRecorderOptions): EventRecorder {
  const stored = new Map<string, Stored>()
  const buckets = new Map<string, Bucket>()
  const queue: RecordedEvent[] = []
  let isSending = false
  let isClosed = false
  let dropped = 0

  const isAllowed = ({ object }: RecordedEvent): boolean => {
    const key = keyOf(object)
    const time = clock.now()
    const bucket = takeEntry(buckets, key) ?? { tokens: BURST, at: time }
    bucket.tokens = Math.min(BURST, bucket.tokens + (time - bucket.at) / REFILL_MS)
    bucket.at = time
    putEntry(buckets, key, bucket)
    if (bucket.tokens < 1) return false
    bucket.tokens -= 1
    return true
  }

  const send = async (event: RecordedEvent): Promise<void> => {
    const key = `${keyOf(event.object)} ${event.type} ${event.reason} ${event.message}`
    const time = `${now().toISOString().slice(0, 19)}Z`
    const before = takeEntry(stored, key)
    if (before !== undefined && clock.now() - before.at < REPEAT_MS) {
      const count = before.count + 1
      const isPatched = await patchEvent(connection, before.path, { count, lastTimestamp: time })
      if (isPatched) return void putEntry(stored, key, { ...before, count, at: clock.now() })
    }
    const path = await createEvent(connection, event, time)
    putEntry(stored, key, { path, count: 1, at: clock.now() })
  }
  const drain = async (): Promise<void> => {
    isSending = true
    for (let event = queue.shift(); event !== undefined && !isClosed; event = queue.shift()) await send(event).catch(onError)
    isSending = false
    if (dropped > 0 && !isClosed) onError(new Error(`${dropped} Events were dropped: more than ${MAX_PENDING} were waiting`))
    dropped = 0
  }

  return {
    record(event) {
      if (isClosed || !isAllowed(event)) return
      if (queue.length >= MAX_PENDING) {
        dropped += 1
        return
      }
      queue.push({ ...event, message: event.message.slice(0, MAX_MESSAGE) })
      if (!isSending) void drain()
    },
    pending: () => queue.length + (isSending ? 1 : 0),
    close() {
      isClosed = true
      queue.length = 0
    },
  }
}

const keyOf = ({ kind, metadata }: RecordedEvent['object']): string => `${kind}/${metadata.namespace}/${metadata.name}/${metadata.uid ?? ''}`

/** Removes an entry and returns it; putting it back makes it the newest. */
function takeEntry<T>(map: Map<string, T>, key: string): T | undefined {
  const entry = map.get(key)
  map.delete(key)
  return entry
}

function putEntry<T>(map: Map<string, T>, key: string, entry: T): void {
  map.set(key, entry)
  const [oldest] = map.keys()
  if (map.size > MAX_STORED && oldest !== undefined) map.delete(oldest)
}

/** Returns the path of the new Event. Events of cluster-scoped objects are in namespace default, as the API server requires. */
async function createEvent(connection: KubeConnection, { object, type, reason, message }: RecordedEvent, time: string): Promise<string> {
  const { namespace, name, uid } = object.metadata
  const collection = `/api/v1/namespaces/${namespace === '' ? 'default' : namespace}/events`
  const created = await connection.request<{ metadata: { name: string } }>('POST', collection, {
    body: {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace: namespace === '' ? 'default' : namespace, generateName: `${name.slice(0, 200)}-` },
      involvedObject: {
        apiVersion: object.apiVersion,
        kind: object.kind,
        ...(namespace === '' ? {} : { namespace }),
        name,
        ...(uid === undefined ? {} : { uid }),
      },
      type,
      reason,
      message,
      source: { component: CONTROLLER_NAME },
      reportingComponent: CONTROLLER_NAME,
      firstTimestamp: time,
      lastTimestamp: time,
      count: 1,
    },
  })
  return `${collection}/${created.metadata.name}`
}

/** Returns whether the Event still existed. */
async function patchEvent(connection: KubeConnection, path: string, body: object): Promise<boolean> {
  try {
    await connection.request('PATCH', path, { body, contentType: 'application/merge-patch+json' })
    return true
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return false
    throw error
  }
}
