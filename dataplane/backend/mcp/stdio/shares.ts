import { UpstreamError } from '../../../net/upstream/types.ts'

/** Sessions with programs in one thread. */
const MAX_OPEN = 128

/** A session with a program. */
interface OpenSession {
  /** No request waits for its response. */
  readonly isIdle: boolean
  close(error: UpstreamError): void
}

/** The client of each open session of this thread, the most recently used last. */
const open = new Map<OpenSession, string>()

/**
 * Makes room for a session of a client. At the limit, a client with more sessions than any other loses one: the one without a request that was
 * not used for the longest time, else the oldest of all if the client has fewer. Throws an UpstreamError if there is none.
 */
export function makeRoom(client: string): void {
  if (open.size < MAX_OPEN) return
  const counts = new Map<string, number>()
  for (const holder of open.values()) counts.set(holder, (counts.get(holder) ?? 0) + 1)
  const own = counts.get(client) ?? 0
  const most = Math.max(...counts.values())
  // Who has the most takes from itself only.
  const isLargest = (holder: string): boolean => (own === most ? holder === client : counts.get(holder) === most)
  const candidates = [...open].filter(([, holder]) => isLargest(holder)).map(([connection]) => connection)
  const victim = candidates.find(({ isIdle }) => isIdle) ?? (most > own + 1 ? candidates[0] : undefined)
  if (victim === undefined) throw new UpstreamError('connect', `${MAX_OPEN} processes run, and none of this client is idle`)
  open.delete(victim)
  victim.close(new UpstreamError('reset', `the session was ended for another: ${MAX_OPEN} processes run`))
}

/** Counts an open session for a client. */
export const hold = (connection: OpenSession, client: string): void => void open.set(connection, client)

/** Records that the client of a session sent a message. */
export function touch(connection: OpenSession): void {
  const client = open.get(connection)
  if (client === undefined) return
  open.delete(connection)
  open.set(connection, client)
}

/** The session has ended, though its process may still be closing. */
export const release = (connection: OpenSession): void => void open.delete(connection)
