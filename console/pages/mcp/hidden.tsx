import { Panel } from '../../ui/panel.tsx'
import type { HiddenItem } from './client.ts'
import { Scroll } from '../../ui/scroll.tsx'

/** What an identity does not see, with the rule or setting that says no. */
export function Hidden({ title, items }: { readonly title: string; readonly items: readonly HiddenItem[] }) {
  if (items.length === 0) return null
  return (
    <Panel title={title} aside={`${items.length}`}>
      <Scroll label={`${title}: list`} class="hidden-items">
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th>Origin</th>
              <th>Why not</th>
            </tr>
          </thead>
          <tbody>
            {items.map(({ name, target, reason }) => (
              <tr key={`${target} ${name} ${reason}`}>
                <td class="mono">{name}</td>
                <td>{target === '' ? '–' : target}</td>
                <td class="wrap">{reason}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Panel>
  )
}
