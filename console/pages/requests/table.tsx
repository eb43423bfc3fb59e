import type { VNode } from 'preact'
import { useMemo } from 'preact/hooks'
import type { RequestRecord } from '#api/management/requests.ts'
import { overview } from '../../api/live.ts'
import { Badge, toneOfStatus } from '../../ui/panel.tsx'
import { curlOf } from '../../ui/sample-request.ts'
import { Scroll } from '../../ui/scroll.tsx'
import { Empty } from '../../ui/states.tsx'
import { shownColumns } from './column-menu.tsx'
import type { Column } from './columns.ts'

/** Rows that are drawn; the page keeps more for the time after a filter is cleared. */
const MAX_ROWS = 100

interface TailTableProps {
  readonly records: readonly RequestRecord[]
  readonly selected: RequestRecord | undefined
  readonly isFiltered: boolean
  readonly onSelect: (record: RequestRecord) => void
}

export function TailTable({ records, selected, isFiltered, onSelect }: TailTableProps) {
  const columns = shownColumns()
  const ids = columns.map(({ id }) => id).join()
  // A row that did not change keeps its node, which Preact then skips: under load, batches of new rows arrive twice a second.
  const nodes = useMemo(() => new WeakMap<RequestRecord, VNode>(), [ids, selected?.id])
  if (records.length === 0) return <NoRequest isFiltered={isFiltered} />
  const rowOf = (record: RequestRecord): VNode => {
    const known = nodes.get(record)
    if (known !== undefined) return known
    const row = <Row key={record.id} record={record} columns={columns} isSelected={selected?.id === record.id} onSelect={onSelect} />
    nodes.set(record, row)
    return row
  }
  return (
    <div class="panel">
      <Scroll label="Live requests" isList={false} class="tail">
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
          <tbody>{records.slice(0, MAX_ROWS).map(rowOf)}</tbody>
        </table>
      </Scroll>
    </div>
  )
}

interface RowProps {
  readonly record: RequestRecord
  readonly columns: readonly Column[]
  readonly isSelected: boolean
  readonly onSelect: (record: RequestRecord) => void
}

function Row({ record, columns, isSelected, onSelect }: RowProps) {
  return (
    <tr class={`is-link ${isSelected ? 'is-selected' : ''}`} onClick={() => onSelect(record)}>
      {columns.map((column, index) => (
        <Cell key={column.id} column={column} record={record} isFirst={index === 0} />
      ))}
    </tr>
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
  const command = overview.value && curlOf(overview.value)
  return (
    <div class="panel">
      <Empty title="No request since this page was opened">
        <p>Requests appear here as soon as they finish.{command !== undefined && ' Send one:'}</p>
        {command !== undefined && <code>{command}</code>}
      </Empty>
    </div>
  )
}
