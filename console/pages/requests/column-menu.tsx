import { signal } from '@preact/signals'
import { columns, defaultColumns, readChoice } from './columns.ts'

const KEY = 'requests.columns'

const stored = (): readonly string[] | undefined => {
  try {
    return readChoice(localStorage.getItem(KEY))
  } catch {
    // The browser blocks storage.
    return undefined
  }
}

const chosen = signal(stored() ?? defaultColumns(globalThis.matchMedia('(max-width: 820px)').matches))

/** The columns to show, in their order. */
export const shownColumns = () => columns.filter(({ id }) => chosen.value.includes(id))

function toggle(id: string): void {
  const next = columns.map((column) => column.id).filter((each) => (each === id ? !chosen.value.includes(id) : chosen.value.includes(each)))
  if (next.length === 0) return
  chosen.value = next
  try {
    localStorage.setItem(KEY, JSON.stringify(next))
  } catch {
    // The choice lasts until the page is closed.
  }
}

export function ColumnMenu() {
  return (
    <details class="menu">
      <summary class="button">Columns</summary>
      <fieldset>
        <legend>Columns</legend>
        {columns.map(({ id, title }) => (
          <label key={id}>
            <input type="checkbox" checked={chosen.value.includes(id)} onChange={() => toggle(id)} />
            {title}
          </label>
        ))}
      </fieldset>
    </details>
  )
}
