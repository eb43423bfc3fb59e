import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { RequestBatch, RequestRecord } from '#api/management/requests.ts'
import { stream } from '../../api/client.ts'
import { stats } from '../../api/live.ts'
import { formatNumber } from '../../ui/format.ts'
import { History } from '../../ui/history.tsx'
import { PageHead } from '../../ui/panel.tsx'
import { ColumnMenu } from './column-menu.tsx'
import { Details } from './details.tsx'
import { addBatch, emptyTail } from './records.ts'
import { TailTable } from './table.tsx'

/** The filter in the input, and the one of the stream, which follows with Enter or a pause in typing. */
const typed = signal('')
const filter = signal('')
const filterError = signal('')
const isPaused = signal(false)
const tail = signal(emptyTail)
const selected = signal<RequestRecord | undefined>(undefined)
/** Node whose history is shown: a key of the stats. */
const scope = signal('total')

const TYPING_MS = 400

function applyFilter(text: string): void {
  if (filter.value === text) return
  filter.value = text
  tail.value = emptyTail
}

/** The live tail, while it is not paused. */
function useTail(isStopped: boolean): void {
  const expression = filter.value
  useEffect(() => {
    if (isStopped) return undefined
    filterError.value = ''
    const query = expression === '' ? '' : `?filter=${encodeURIComponent(expression)}`
    return stream<RequestBatch>(`/api/v1/requests/stream${query}`, 'requests', {
      onValue: (batch) => (tail.value = addBatch(tail.value, batch)),
      onFailure: (message) => (filterError.value = message.replace(/^filter: /, '')),
    })
  }, [isStopped, expression])
}

/** `p` pauses and resumes; Escape closes the details. */
function useKeys(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isEditing = event.target instanceof HTMLElement && /^(?:INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)
      if (event.key === 'Escape') selected.value = undefined
      if (event.key === 'p' && !isEditing && !event.ctrlKey && !event.metaKey && !event.altKey) isPaused.value = !isPaused.value
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
}

export function RequestsPage() {
  // Rows that move away under the pointer cannot be compared with the open one.
  useTail(isPaused.value || selected.value !== undefined)
  useKeys()
  return (
    <>
      <PageHead title="Requests">
        <State />
        <span class="grow" />
        <Scope />
        <button type="button" aria-pressed={isPaused.value} onClick={() => (isPaused.value = !isPaused.value)}>
          {isPaused.value ? 'Resume' : 'Pause'} <kbd aria-hidden="true">p</kbd>
        </button>
        <button type="button" onClick={() => (tail.value = emptyTail)}>
          Clear
        </button>
        <ColumnMenu />
      </PageHead>
      <History of={scope.value} />
      <Filter />
      <LiveTable />
      {selected.value && <Details key={selected.value.id} record={selected.value} onClose={() => (selected.value = undefined)} onFilter={setFilter} />}
    </>
  )
}

const select = (record: RequestRecord): void => void (selected.value = selected.value?.id === record.id ? undefined : record)

/** The only part of the page besides its state that a batch of the tail renders again. */
function LiveTable() {
  return <TailTable records={tail.value.records} selected={selected.value} isFiltered={filter.value !== ''} onSelect={select} />
}

function setFilter(text: string): void {
  typed.value = text
  selected.value = undefined
  applyFilter(text)
}

function State() {
  const { seen, skipped } = tail.value
  const state = selected.value ? 'held while a request is open' : isPaused.value ? 'paused' : 'live'
  return (
    <p class="muted tail-state">
      <span class={state === 'live' ? 'is-live' : ''}>{state}</span>
      {seen > 0 && ` · ${formatNumber(seen)} seen`}
      {skipped > 0 && ` · ${formatNumber(skipped)} left out under load`}
    </p>
  )
}

function Scope() {
  const keys = (stats.value?.rows ?? []).map(({ key }) => key).filter((key) => key !== 'total')
  return (
    <select aria-label="Numbers of" value={scope.value} onChange={({ currentTarget }) => (scope.value = currentTarget.value)}>
      <option value="total">all requests</option>
      {[...new Set([...keys, ...(scope.value === 'total' ? [] : [scope.value])])].sort().map((key) => (
        <option key={key} value={key}>
          {key}
        </option>
      ))}
    </select>
  )
}

function Filter() {
  useEffect(() => {
    const timer = setTimeout(() => applyFilter(typed.value.trim()), TYPING_MS)
    return () => clearTimeout(timer)
  }, [typed.value])
  return (
    <div class="filter">
      <input
        data-search
        class="mono"
        aria-label="Filter in CEL"
        aria-invalid={filterError.value !== ''}
        aria-describedby="filter-help"
        placeholder="Filter in CEL: response.code >= 500"
        spellcheck={false}
        autocomplete="off"
        value={typed.value}
        onInput={({ currentTarget }) => (typed.value = currentTarget.value)}
        onKeyDown={({ key }) => key === 'Enter' && applyFilter(typed.value.trim())}
      />
      <p id="filter-help" class={filterError.value === '' ? 'muted' : 'is-bad'} role="status">
        {filterError.value === '' ? (
          <>
            Variables are those of the access log, such as <code>request.path</code>, <code>response.code</code>, <code>source.address</code>.
          </>
        ) : (
          filterError.value
        )}
      </p>
    </div>
  )
}
