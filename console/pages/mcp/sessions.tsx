import type { McpSession, McpSessions } from '#api/management/mcp.ts'
import { useResource } from '../../api/resource.ts'
import { formatAge } from '../../ui/format.ts'
import { Badge, Panel } from '../../ui/panel.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Empty } from '../../ui/states.tsx'

const INTERVAL_MS = 4000

const KINDS = { session: undefined, stream: 'HTTP+SSE', shared: 'shared' } as const

/** The sessions of clients, without their ids. */
export function Sessions() {
  const { value } = useResource<McpSessions>('/api/v1/mcp/sessions', INTERVAL_MS)
  const sessions = value?.sessions ?? []
  const hasPods = sessions.some(({ pods }) => pods.length > 0)
  return (
    <Panel title="Sessions" aside={value === undefined ? '' : sessions.length < value.total ? `${sessions.length} of ${value.total}` : `${value.total}`}>
      {sessions.length === 0 ? (
        <Empty title={value === undefined ? 'Loading' : 'No client has a session'} />
      ) : (
        <Scroll label="List of sessions" class="sessions">
          <table>
            <thead>
              <tr>
                <th>Digest</th>
                <th>Client</th>
                <th>Revision</th>
                <th>Backend</th>
                <th>Targets</th>
                <th class="num">Age</th>
                <th class="num">Last used</th>
                <th class="num">Open</th>
                {hasPods && <th>Pods</th>}
              </tr>
            </thead>
            <tbody>
              {sessions.map((session, index) => (
                <SessionRow key={session.id ?? index} session={session} hasPods={hasPods} />
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Panel>
  )
}

function SessionRow({ session, hasPods }: { readonly session: McpSession; readonly hasPods: boolean }) {
  const { id, kind, client, revision, backend, targets, ageMs, idleMs, open, isBound, pods } = session
  return (
    <tr>
      <td>
        <span class="mono">{id ?? '–'}</span> {KINDS[kind] !== undefined && <Badge>{KINDS[kind]}</Badge>} {isBound && <Badge tone="good">user</Badge>}
      </td>
      <td>{client === null ? '–' : `${client.name} ${client.version}`}</td>
      <td class="mono">{revision ?? '–'}</td>
      <td class="mono">{backend}</td>
      <td class="wrap">
        {targets.map(({ name, isMissing }) => (
          <span key={name}>
            <Badge tone={isMissing ? 'warn' : 'plain'}>{isMissing ? `${name}: missing` : name}</Badge>{' '}
          </span>
        ))}
      </td>
      <td class="num">{ageMs === null ? '–' : formatAge(ageMs)}</td>
      <td class="num">{formatAge(idleMs)}</td>
      <td class="num">{open}</td>
      {hasPods && <td class="mono">{pods.join(', ')}</td>}
    </tr>
  )
}
