import type { Session } from './sessions.ts'

/** What is known about a session, for people who look at it. Nothing in it can be used as a session id. */
export interface ListedSession {
  /** `<namespace>/<name>` of the backend. */
  readonly backend: string
  /** `session`: the client has its id. `stream`: an HTTP+SSE client. `shared`: the gateway's own, for clients of 2026-07-28. */
  readonly kind: SessionKind
  /** Digest of the id, as in logs; undefined: the session has none. */
  readonly id: string | undefined
  readonly revision: string | undefined
  readonly client: { readonly name: string; readonly version: string } | undefined
  /** Since `initialize`; undefined if another process handled it. */
  readonly ageMs: number | undefined
  readonly idleMs: number
  /** Requests and streams that are open. */
  readonly open: number
  /** Whether it is bound to a user. */
  readonly isBound: boolean
  readonly targets: readonly { readonly name: string; readonly isMissing: boolean }[]
}

type SessionKind = 'session' | 'stream' | 'shared'

interface SessionSource {
  readonly size: number
  /** The most recently used ones last: at least `limit` of them, or all. */
  list(limit: number): Iterable<Session>
}

/** The sessions of one backend in this thread. */
interface BackendSessions {
  readonly nowMs: () => number
  /** Sessions of each kind, the most recently used last. */
  readonly kinds: readonly (readonly [SessionKind, SessionSource])[]
}

/** By the destinations of a gateway, then by backend. */
const published = new WeakMap<object, Map<string, BackendSessions>>()

/** Makes the sessions of a backend known. `owner`: the destinations of its gateway. */
export function publishSessions(owner: object, backend: string, sessions: BackendSessions): void {
  let own = published.get(owner)
  if (own === undefined) published.set(owner, (own = new Map()))
  own.set(backend, sessions)
}

/** The sessions of this thread, the most recently used first. `total` counts all, of which at most `limit` are listed. */
export function listSessions(owner: object, limit: number): { readonly sessions: ListedSession[]; readonly total: number } {
  const found: { readonly backend: string; readonly kind: SessionKind; readonly session: Session; readonly idleMs: number; readonly nowMs: number }[] = []
  let total = 0
  for (const [backend, { nowMs: clock, kinds }] of published.get(owner) ?? []) {
    const nowMs = clock()
    for (const [kind, source] of kinds) {
      const latest = [...source.list(limit)].slice(-limit)
      for (const session of latest) found.push({ backend, kind, session, idleMs: Math.max(0, nowMs - session.usedAtMs), nowMs })
      total += source.size
    }
  }
  const sessions = found
    .sort((a, b) => a.idleMs - b.idleMs)
    .slice(0, limit)
    .map(({ backend, kind, session: { about, logId, links, open, principal }, idleMs, nowMs }) => ({
      backend,
      kind,
      id: logId,
      revision: about.revision,
      client: about.client,
      ageMs: about.startedAtMs === undefined ? undefined : Math.max(0, nowMs - about.startedAtMs),
      idleMs,
      open,
      isBound: principal !== undefined,
      targets: [...links].map(([name, { isMissing }]) => ({ name, isMissing })),
    }))
  return { sessions, total }
}
