import type { RequestRecord } from '#api/management/requests.ts'
import { formatBytes, formatMs, formatTime } from '../../ui/format.ts'

/** A column of the live tail, apart from status and path, which have their own look. */
export interface Column {
  readonly id: string
  readonly title: string
  readonly isNumber?: boolean
  readonly text: (record: RequestRecord) => string
}

export const columns: readonly Column[] = [
  { id: 'time', title: 'Time', text: ({ timeMs }) => formatTime(timeMs) },
  { id: 'status', title: 'Status', text: ({ status }) => String(status) },
  { id: 'method', title: 'Method', text: ({ method }) => method },
  { id: 'host', title: 'Host', text: ({ host }) => host },
  { id: 'path', title: 'Path', text: ({ path }) => path },
  { id: 'duration', title: 'Duration', isNumber: true, text: ({ durationMs }) => formatMs(durationMs) },
  { id: 'upstream', title: 'Upstream', isNumber: true, text: ({ timings }) => formatMs(upstreamMs(timings)) },
  { id: 'route', title: 'Route', text: ({ route }) => route ?? '–' },
  { id: 'backend', title: 'Backend', text: ({ backend }) => backend ?? '–' },
  { id: 'endpoint', title: 'Endpoint', text: ({ endpoint }) => endpoint ?? '–' },
  { id: 'reason', title: 'Reason', text: ({ reason }) => reason },
  { id: 'retries', title: 'Retries', isNumber: true, text: ({ retries }) => String(retries) },
  { id: 'protocol', title: 'Protocol', text: ({ protocol, version }) => `${protocol} ${version}` },
  { id: 'client', title: 'Client', text: ({ client }) => client },
  { id: 'received', title: 'Received', isNumber: true, text: ({ requestBytes }) => formatBytes(requestBytes) },
  { id: 'sent', title: 'Sent', isNumber: true, text: ({ responseBytes }) => formatBytes(responseBytes) },
  { id: 'listener', title: 'Listener', text: ({ gateway, listener }) => `${gateway ?? ''}.${listener ?? ''}` },
  { id: 'pod', title: 'Pod', text: ({ pod }) => pod ?? '–' },
]

/** Time between the start of the upstream call and the response head of the upstream. */
const upstreamMs = ({ upstreamMs: start, responseHeadMs: end }: RequestRecord['timings']): number | null =>
  start === null || end === null ? null : end - start

const WIDE = ['time', 'status', 'method', 'host', 'path', 'duration', 'route', 'endpoint', 'reason']
const NARROW = ['status', 'method', 'path', 'duration']

/** Columns of a first visit. */
export const defaultColumns = (isNarrow: boolean): readonly string[] => (isNarrow ? NARROW : WIDE)

/** The ids of a stored choice; undefined if it is none. */
export function readChoice(text: string | null): readonly string[] | undefined {
  try {
    const ids: unknown = JSON.parse(text ?? '')
    const known = Array.isArray(ids) ? columns.map(({ id }) => id).filter((id) => ids.includes(id)) : []
    return known.length > 0 ? known : undefined
  } catch {
    return undefined
  }
}
