import type { RequestBatch, RequestRecord } from '#api/management/requests.ts'

/** Records that the page keeps. */
const MAX_RECORDS = 500

export interface Tail {
  /** Newest first. */
  readonly records: readonly RequestRecord[]
  readonly seen: number
  readonly skipped: number
}

export const emptyTail: Tail = { records: [], seen: 0, skipped: 0 }

/** A tail with a batch on top. The counts go on while the records are bounded. */
export function addBatch(tail: Tail, { records, seen, skipped }: RequestBatch): Tail {
  return {
    records: records.length === 0 ? tail.records : [...records.toReversed(), ...tail.records].slice(0, MAX_RECORDS),
    seen: tail.seen + seen,
    skipped: tail.skipped + skipped,
  }
}

export interface Phase {
  readonly label: string
  readonly startMs: number
  readonly durationMs: number
  readonly tone: 'plain' | 'accent' | 'good'
}

/** How the time of a request was spent, in order. Phases that did not take place are left out. */
export function phasesOf({ durationMs, timings: { upstreamMs, responseHeadMs, answeredMs } }: Pick<RequestRecord, 'durationMs' | 'timings'>): Phase[] {
  const head = answeredMs ?? responseHeadMs ?? durationMs
  const phase = (label: string, from: number, to: number, tone: Phase['tone']): Phase => ({ label, startMs: from, durationMs: Math.max(0, to - from), tone })
  if (upstreamMs === null) return [phase('Gateway', 0, head, 'plain'), ...(head < durationMs ? [phase('Response body', head, durationMs, 'good')] : [])]
  const upstreamEnd = responseHeadMs ?? head
  return [
    phase('Routing and policies', 0, upstreamMs, 'plain'),
    phase('Upstream until response head', upstreamMs, upstreamEnd, 'accent'),
    phase('Policies on the response', upstreamEnd, head, 'plain'),
    phase('Response body', head, durationMs, 'good'),
  ]
}

/** A CEL filter for requests like this one. */
export function filterLike({ method, path, status, host }: RequestRecord): string {
  return [
    `request.method == ${JSON.stringify(method)}`,
    `request.host == ${JSON.stringify(host)}`,
    `request.path == ${JSON.stringify(path.replace(/\?.*$/s, ''))}`,
    ...(status > 0 ? [`response.code == ${status}`] : []),
  ].join(' && ')
}
