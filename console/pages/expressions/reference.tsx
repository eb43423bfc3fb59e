import { useState } from 'preact/hooks'
import { Panel } from '../../ui/panel.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Empty } from '../../ui/states.tsx'
import type { Entry } from './completion.ts'

/** Text whose parts in backticks are code. */
const withCode = (text: string) => text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))

export function Reference({ entries, onInsert }: { readonly entries: readonly Entry[]; readonly onInsert: (text: string) => void }) {
  const [search, setSearch] = useState('')
  const words = search.toLowerCase().split(/\s+/)
  const shown = entries.filter(({ label, description }) => words.every((word) => `${label} ${description}`.toLowerCase().includes(word)))
  return (
    <Panel
      title="Variables and functions"
      aside={
        <input
          data-search
          type="search"
          aria-label="Search variables and functions"
          placeholder="Search"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      }
    >
      {shown.length === 0 && <Empty title="Nothing has this name in this phase" />}
      <Scroll label="List of variables and functions" class="reference">
        <table>
          <tbody>
            {shown.map(({ text, label, type, description }) => (
              <tr key={`${type} ${label}`}>
                <td>
                  <button type="button" class="quiet mono" onClick={() => onInsert(text)}>
                    {label}
                  </button>
                </td>
                <td class="muted">{type}</td>
                <td class="wrap">{withCode(description)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Panel>
  )
}
