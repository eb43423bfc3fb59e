import type { RequestRecord } from '#api/management/requests.ts'
import { shellWord } from '../../api/draft.ts'
import { overview } from '../../api/live.ts'
import { Badge, toneOfStatus } from '../../ui/panel.tsx'
import { Empty } from '../../ui/states.tsx'
import { shownColumns } from './column-menu.tsx'
import type { Column } from './columns.ts'

/** Rows that are drawn; the page keeps more for the time after a filter is cleared. */
const MAX_ROWS = 150

interface TailTableProps {
  readonly records: readonly RequestRecord[]
  readonly selected: RequestRecord | undefined
  readonly isFiltered: boolean
  readonly onSelect: (record: RequestRecord) => void
}

export function TailTable({ records, selected, isFiltered, onSelect }: TailTableProps) {
  if (records.length === 0) return <NoRequest isFiltered={isFiltered} />
  const columns = shownColumns()
  return (
    <div class="panel">
      <div class="scroll tail" tabIndex={0} role="region" aria-label="Live requests">
        <table>
          <thead>
            <tr>
              {columns.map(({ id, title, isNumber }) => (
                <th key={id} scope="col" class={isNumber === true ? 'num' : ''}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {records.slice(0, MAX_ROWS).map((record) => (
              <tr key={record.id} class={`is-link ${selected?.id === record.id ? 'is-selected' : ''}`} onClick={() => onSelect(record)}>
                {columns.map((column, index) => (
                  <Cell key={column.id} column={column} record={record} isFirst={index === 0} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  )
}

interface CellProps {
  readonly column: Column
  readonly record: RequestRecord
  readonly isFirst: boolean
}

/** The first cell holds the button that opens the details; a click anywhere in the row does the same. */
function Cell({ column: { id, isNumber, text }, record, isFirst }: CellProps) {
  const content = id === 'status' ? <Badge tone={toneOfStatus(record.status)}>{text(record)}</Badge> : text(record)
  const name = isNumber === true ? 'num' : id === 'path' || id === 'host' ? `is-${id}` : ''
  return (
    <td class={name} title={id === 'path' || id === 'host' ? text(record) : undefined}>
      {isFirst ? (
        <button type="button" class="cell">
          {content}
          <span class="only-read"> details</span>
        </button>
      ) : (
        content
      )}
    </td>
  )
}

function NoRequest({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered)
    return (
      <div class="panel">
        <Empty title="No request matches the filter yet">
          <p>Requests that finish from now on are compared with it.</p>
        </Empty>
      </div>
    )
  const { listeners = [], routes = [] } = overview.value ?? {}
  const listener = listeners.find(({ protocol }) => protocol === 'HTTP')
  const host = routes.find((route) => listener !== undefined && route.listeners.includes(listener.key))?.hostnames[0]?.replace(/^\*\./, 'www.')
  return (
    <div class="panel">
      <Empty title="No request since this page was opened">
        <p>Requests appear here as soon as they finish. Send one:</p>
        <code>
          curl -i {host === undefined ? '' : `-H ${shellWord(`host: ${host}`)} `}http://127.0.0.1:{listener?.port ?? 8080}/
        </code>
      </Empty>
    </div>
  )
}
